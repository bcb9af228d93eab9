"""Models with patterns: every question beside enumeration, training, penalties, files, growth, the command line."""

from __future__ import annotations

import itertools
import json
import math
import pickle
import re
from collections.abc import Hashable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import crfkit
from crfkit import CRF, LBFGS, TRON, Affixes, Bigrams, Checkpoint, Growth, Newton, Ngrams, Pattern, Patterns
from crfkit.errors import (
    ArgumentError,
    FileFormatError,
    NotLoadedError,
    SizeLimitError,
    UnsavableError,
    UnsupportedError,
)
from crfkit.models import (
    CheckpointMismatchError,
    heaviest_features,
    heaviest_patterns,
    transition_weights,
    trellis_sizes,
)
from crfkit.models.kinds.patterns import PatternPotentials
from tests.cli.commands import run

LABELS = ("B", "I", "O")
STRUCTURE = Patterns(["B I* O", Pattern("!O .", when="w=a"), "^. O", "O B$"])
# The same in the language of `re`, by the names of the weights: (expression, whether it may match from begin to end).
MATCHES: dict[str, tuple[str, Any]] = {
    "B I* O": ("BI*O", lambda x, begin, end: True),
    "!O . when w=a": ("[^O].", lambda x, begin, end: x[begin]["w"] == "a"),
    "^. O": (".O", lambda x, begin, end: begin == 0),
    "O B$": ("OB", lambda x, begin, end: end == len(x)),
}


def data(n: int, seed: int = 0) -> tuple[list[list[dict[str, str]]], list[list[str]]]:
    """Random sequences of up to 4 words; the label depends on the word, and on labels further back."""
    random = np.random.default_rng(seed)
    X = [[{"w": str(w)} for w in random.choice(list("abc"), size=random.integers(1, 5))] for _ in range(n)]
    y: list[list[str]] = []
    for x in X:
        labels: list[str] = []
        for i, position in enumerate(x):
            back = LABELS.index(labels[i - 2]) if i > 1 else 0
            labels.append(LABELS[(ord(position["w"]) + back + random.integers(0, 2)) % 3])
        y.append(labels)
    return X, y


X, Y = data(30)


def fitted(structure: Patterns = STRUCTURE, **settings: Any) -> CRF:
    return CRF(structure=structure, **{"l2": 0.5, "n_threads": 1, **settings}).fit(X, Y)


@pytest.fixture(scope="module")
def crf() -> CRF:
    return fitted()


class Oracle:
    """A trained model by the names of its weights: every label sequence listed and scored."""

    def __init__(self, model: CRF) -> None:
        self.features: dict[Hashable, dict[str, float]] = {
            label: dict(heaviest_features(model, label, 100)) for label in LABELS
        }
        self.arcs = {(before, after): weight for before, after, weight in transition_weights(model)}
        self.patterns = dict(heaviest_patterns(model, 100))

    def score(self, x: Sequence[dict[str, str]], y: Sequence[Hashable]) -> float:
        total = sum(
            self.features[label].get(f"w:{position['w']}", 0.0) for position, label in zip(x, y, strict=True)
        )
        total += sum(self.arcs.get(pair, 0.0) for pair in itertools.pairwise((None, *y, None)))
        word = "".join(map(str, y))
        for begin, end in itertools.combinations(range(len(word) + 1), 2):
            for name, (expression, fits) in MATCHES.items():
                if fits(x, begin, end) and re.fullmatch(expression, word[begin:end]):
                    total += self.patterns[name]
        return total

    def table(self, x: Sequence[dict[str, str]]) -> dict[tuple[Hashable, ...], float]:
        """The probability of every label sequence."""
        scores: dict[tuple[Hashable, ...], float] = {
            y: self.score(x, y) for y in itertools.product(LABELS, repeat=len(x))
        }
        total = math.fsum(map(math.exp, scores.values()))
        return {y: math.exp(score) / total for y, score in scores.items()}


def test_every_question_beside_enumeration(crf: CRF) -> None:
    oracle = Oracle(crf)
    new, labels = data(6, seed=1)
    best, marginals = crf.predict(new), crf.predict_marginals(new)
    k_best, log_p = crf.predict_nbest(new, 5), crf.log_probability(new, labels)
    for n, x in enumerate(new):
        p = oracle.table(x)
        assert p[tuple(best[n])] == pytest.approx(max(p.values()))
        assert log_p[n] == pytest.approx(math.log(p[tuple(labels[n])]))
        found = [probability for probability, _ in k_best[n]]
        assert found == pytest.approx(sorted(p.values(), reverse=True)[:5])
        assert all(p[tuple(y)] == pytest.approx(probability) for probability, y in k_best[n])
        for position, label in itertools.product(range(len(x)), LABELS):
            wanted = math.fsum(q for y, q in p.items() if y[position] == label)
            assert marginals[n][position, LABELS.index(label)] == pytest.approx(wanted)
    samples = crf.sample(new[:1], 2000, random_state=0)[0]
    frequency = np.mean([y == samples[0] for y in samples])
    assert frequency == pytest.approx(oracle.table(new[0])[tuple(samples[0])], abs=0.05)


def test_allowed_labels_and_partial_labels(crf: CRF) -> None:
    oracle = Oracle(crf)
    new = [x for x in data(10, seed=2)[0] if len(x) > 2][:3]
    allowed = [[{"B", "O"}, *[None] * (len(x) - 1)] for x in new]
    log_p = crf.log_probability(
        new, [[None, {"I", "O"}, *[None] * (len(x) - 2)] for x in new], allowed=allowed
    )
    for n, x in enumerate(new):
        p = {y: q for y, q in oracle.table(x).items() if y[0] in ("B", "O")}
        inside = math.fsum(q for y, q in p.items() if y[1] in ("I", "O"))
        assert log_p[n] == pytest.approx(math.log(inside / math.fsum(p.values())))
        [best] = crf.predict([x], allowed=[allowed[n]])
        assert p[tuple(best)] == pytest.approx(max(p.values()))


def test_bigrams_hold_with_patterns() -> None:
    structure = Patterns(["B I* O", "O B O"], bigrams="observed")
    crf = fitted(structure)
    assert isinstance(crf.structure_, Patterns)
    seen = {pair for labels in Y for pair in itertools.pairwise(labels)}
    drawn = crf.sample(data(20, seed=3)[0], 20, random_state=0)
    assert {pair for several in drawn for labels in several for pair in itertools.pairwise(labels)} <= seen
    partly = [[None if i % 2 else label for i, label in enumerate(labels)] for labels in Y]
    listed = Patterns(["B I* O"], bigrams=Bigrams.observed(Y))
    partial = CRF(structure=listed, n_threads=1).fit(X, partly)
    assert all(pair in seen for labels in partial.predict(X) for pair in itertools.pairwise(labels))


def test_optimizers_agree_on_the_optimum() -> None:
    slow = fitted(optimizer=LBFGS(tolerance=1e-8))
    for optimizer in (TRON(tolerance=1e-8), Newton(tolerance=1e-8)):
        other = fitted(optimizer=optimizer)
        np.testing.assert_allclose(other.weights_, slow.weights_, atol=2e-4)
    assert fitted(optimizer="auto").score(X, Y) == pytest.approx(slow.score(X, Y), abs=0.05)


def test_patterns_say_more_than_a_chain() -> None:
    chain = CRF(l2=0.5, n_threads=1).fit(X, Y)
    assert fitted().log_probability(X, Y).sum() > chain.log_probability(X, Y).sum() + 1
    held = fitted(
        l2={"default": 0.5, "patterns": 1e6}, optimizer=TRON(tolerance=1e-9)
    )  # patterns that are held at 0 change nothing
    np.testing.assert_allclose(held.log_probability(X, Y), chain.log_probability(X, Y), atol=1e-3)
    with pytest.raises(ArgumentError, match="l2"):
        fitted(l2={"nosuch": 1.0})


def test_sequences_count_with_their_weights() -> None:
    tight = LBFGS(tolerance=1e-8)
    doubled = CRF(structure=STRUCTURE, optimizer=tight, n_threads=1).fit([*X, *X[:5]], [*Y, *Y[:5]])
    weighted = CRF(structure=STRUCTURE, optimizer=tight, n_threads=1)
    weighted.fit(X, Y, sample_weight=[2.0] * 5 + [1.0] * 25)
    np.testing.assert_allclose(weighted.weights_, doubled.weights_, atol=1e-4)


def test_threads_change_nothing() -> None:
    np.testing.assert_array_equal(fitted(n_threads=1).weights_, fitted(n_threads=3).weights_)


def test_patterns_with_one_name_share_a_weight() -> None:
    together = fitted(Patterns([Pattern("B B", weight="same"), Pattern("I I", weight="same"), "O O"]))
    assert together.pattern_names_ == ["same", "O O"]
    either = fitted(Patterns(["(B B)|(I I)", "O O"]))
    np.testing.assert_allclose(together.weights_, either.weights_, atol=1e-3)


# ---- files


def first_twice(x: Sequence[dict[str, str]]) -> Iterator[tuple[Any, ...]]:
    for j in range(1, len(x)):
        if x[0]["w"] == x[j]["w"]:
            yield 0, [{"B", "I"}, *[None] * (j - 1), {"B", "I"}], f"twice {x[0]['w']}", 0.5


def late(x: Sequence[dict[str, str]], t: int) -> float:
    return t / 2


EVERYTHING = Patterns(
    [
        "B I* O",
        Pattern("O .", when="w=a"),
        Ngrams([2, 3], min_count={2: 1, 3: 2}, most=20),
        Affixes(2, most={1: 3}),
        Affixes(1, of=["B", "I"], prefixes=False),
        first_twice,
        Pattern("I", when=late, weight="mine"),
    ],
    end=False,
    max_states=500,
)


def test_a_file_holds_all_of_it(tmp_path: Path) -> None:
    model = fitted(EVERYTHING)
    model.save(tmp_path / "all.crf")
    loaded = crfkit.load(tmp_path / "all.crf", functions=[first_twice, late])
    assert loaded.pattern_names_ == model.pattern_names_
    np.testing.assert_array_equal(loaded.weights_, model.weights_)
    new = data(10, seed=5)[0]
    assert loaded.predict(new) == model.predict(new)
    assert isinstance(loaded.structure, Patterns)
    assert (loaded.structure.end, loaded.structure.max_states) == (False, 500)
    again = loaded.fit(X, Y)  # the list that was asked for is all there
    assert set(again.pattern_names_) == set(model.pattern_names_)
    assert crfkit.load(tmp_path / "all.crf", trust_functions=True).predict(new) == model.predict(new)
    assert pickle.loads(pickle.dumps(model)).predict(new) == model.predict(new)
    bare = crfkit.load(tmp_path / "all.crf")
    assert heaviest_patterns(bare, 3) == heaviest_patterns(model, 3)
    with pytest.raises(NotLoadedError):
        bare.predict(new)
    expected = r"all\.crf: functions has 1 entries for the patterns, expected 2: .*first_twice.*late"
    with pytest.raises(ArgumentError, match=expected):
        crfkit.load(tmp_path / "all.crf", functions=[late])
    with pytest.raises(
        ArgumentError, match=r"all\.crf: functions has 5 for the patterns, expected a function"
    ):
        crfkit.load(tmp_path / "all.crf", functions=[late, 5])


def test_weights_that_l1_leaves_at_zero_are_left_out(tmp_path: Path) -> None:
    sparse = fitted(EVERYTHING, l1=1.0)
    assert len(sparse.pattern_names_) < len(fitted(EVERYTHING).pattern_names_)
    assert {"B I* O", "mine"} <= set(sparse.pattern_names_)  # what is written stays
    sparse.save(tmp_path / "sparse.crf")
    loaded = crfkit.load(tmp_path / "sparse.crf", functions=[first_twice, late])
    assert loaded.pattern_names_ == sparse.pattern_names_
    assert loaded.predict(X) == sparse.predict(X)


def test_functions_without_a_path_cannot_be_saved(tmp_path: Path) -> None:
    with pytest.warns(crfkit.models.UnsavableModel, match="the function '<lambda>' of its patterns"):
        model = fitted(Patterns([lambda x: [(0, ["B"], "first")]]))
    with pytest.raises(UnsavableError):
        model.save(tmp_path / "x.crf")


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (lambda s: s["patterns"]["list"].append(3), "list of patterns is damaged"),
        (lambda s: s["patterns"]["list"].append({"kind": "nosuch"}), "an entry of the kind 'nosuch'"),
        (lambda s: s["patterns"]["list"][0].update(text="B ("), "its patterns are damaged"),
        (lambda s: s["patterns"]["list"][0].update(text="nosuch"), "there is no label 'nosuch'"),
        (lambda s: s["patterns"].update(given=9), "names of its patterns do not add up"),
        (lambda s: s["patterns"].update(grow={"x": 1}), "its patterns are damaged"),
        (lambda s: s["patterns"].update(max_states=-1), "max_states"),
        (lambda s: s["patterns"]["list"][-1].update(path="x y"), "no import path"),
        (lambda s: s["patterns"]["list"].pop(), "weights, its features need"),
        (lambda s: s.update(patterns=3), "list of patterns is damaged"),
    ],
)
def test_damaged_files_are_refused(tmp_path: Path, change: Any, what: str) -> None:
    from crfkit.models.files import model_file

    path = tmp_path / "m.crf"
    fitted(EVERYTHING).save(path)
    file = model_file.decode(path.read_bytes(), "m")
    settings = json.loads(json.dumps(file.settings))
    change(settings)
    path.write_bytes(model_file.encode(file._replace(settings=settings)))
    with pytest.raises(FileFormatError, match=what):
        crfkit.load(path)


def test_damaged_runs_are_refused(tmp_path: Path) -> None:
    from crfkit.models.files import model_file

    path = tmp_path / "m.crf"
    fitted(EVERYTHING).save(path)
    file = model_file.decode(path.read_bytes(), "m")
    for name, values in (("grams.lengths", [1, 0]), ("grams.where", [9]), ("grams.labels", [200])):
        arrays = {**file.arrays, name: np.array(values, np.uint8)}
        path.write_bytes(model_file.encode(file._replace(arrays=arrays)))
        with pytest.raises(FileFormatError):
            crfkit.load(path)


# ---- training again


def test_training_goes_on_from_another_one(tmp_path: Path) -> None:
    first = fitted(EVERYTHING)
    again = CRF(structure=EVERYTHING, l2=0.5, n_threads=1).fit(X, Y, start=first)
    assert again.n_iter_ < first.n_iter_
    more = CRF(
        structure=Patterns([*EVERYTHING.patterns, "B . B"]),
        l2=0.5,
        n_threads=1,
        optimizer=LBFGS(max_iterations=1),
    )
    more.fit(X, Y, start=first)  # what both have begins with its weight
    here, there = dict(heaviest_patterns(first, 99)), dict(heaviest_patterns(more, 99))
    assert max(abs(there[name] - weight) for name, weight in here.items()) < 0.5
    stopped = CRF(structure=STRUCTURE, l2=0.5, n_threads=1, optimizer=LBFGS(max_iterations=4))
    stopped.fit(X, Y, checkpoint=Checkpoint(tmp_path / "c", every=1))
    whole = fitted()
    resumed = CRF(structure=STRUCTURE, l2=0.5, n_threads=1).fit(
        X, Y, checkpoint=Checkpoint(tmp_path / "c", resume=True)
    )
    np.testing.assert_array_equal(resumed.weights_, whole.weights_)
    other = CRF(structure=Patterns(["B"]), l2=0.5, n_threads=1)
    with pytest.raises(CheckpointMismatchError, check=lambda error: error.name == "structure"):
        other.fit(X, Y, checkpoint=Checkpoint(tmp_path / "c", resume=True))


def test_partial_fit_keeps_what_the_new_data_do_not_touch() -> None:
    model = fitted(Patterns([Pattern("B", when="w=a"), Pattern("I", when="w=c"), Ngrams(2)]))
    before = dict(heaviest_patterns(model, 99))
    some = [[{"w": "a"}, {"w": "b"}]] * 3
    model.partial_fit(some, [["B", "X"]] * 3)
    after = dict(heaviest_patterns(model, 99))
    assert set(before) <= set(after)
    assert "B X" in after
    assert after["I when w=c"] == before["I when w=c"]
    assert after["B when w=a"] != before["B when w=a"]


@pytest.mark.parametrize(
    ("settings", "what"),
    [
        ({"optimizer": TRON(), "l1": 1.0}, "TRON takes no l1 penalty"),
        ({"structure": "nosuch"}, "structure"),
    ],
)
def test_what_does_not_go_with_patterns(settings: dict[str, Any], what: str) -> None:
    with pytest.raises(ValueError, match=what):
        CRF(**{"structure": STRUCTURE, **settings}).fit(X, Y)


def pairs(x: Sequence[Any]) -> Iterator[tuple[Any, ...]]:
    for i in range(len(x) // 2):
        yield i, [{"B", "I"}, *[None] * (len(x) // 2 - 1), {"B", "I"}], f"pair {i}"


def test_too_large_a_trellis_is_refused_with_a_message() -> None:
    long = [[{"w": "a"}] * 48]
    structure = Patterns([pairs], max_states=1000)
    with pytest.raises(SizeLimitError, match="sequence 0") as complaint:
        CRF(structure=structure, n_threads=1).fit(long, [["B", "I", "O"] * 16])
    assert "shorten them" in str(complaint.value)


def test_sizes_of_trellises(crf: CRF) -> None:
    with pytest.raises(UnsupportedError):
        trellis_sizes(CRF(n_threads=1).fit(X, Y), X)
    for x, size in zip(X, trellis_sizes(crf, X), strict=True):
        assert len(size.states) == len(size.sparsity) == len(x)
        assert size.states.min() >= 3
        assert (size.sparsity > 0).all()
        assert (size.sparsity <= 1).all()


# ---- growth


def turning(n: int) -> tuple[list[list[dict[str, bool]]], list[list[str]]]:
    """B B O O B B …, begun anywhere: the next label depends on the two before it, and on nothing else."""
    y = [["BBOO"[(i + k) % 4] for i in range(6)] for k in range(n)]
    return [[{"bias": True} for _ in labels] for labels in y], y


def test_growth_finds_the_runs_that_pay() -> None:
    X, y = turning(40)
    crf = CRF(structure=Patterns(grow=Growth(order=2, per_round=4)), l2=0.1, n_threads=1).fit(X, y)
    chain = CRF(l2=0.1, n_threads=1).fit(X, y)
    assert {"B B O", "B B B", "O O B", "O O O"} & set(crf.pattern_names_)
    assert crf.log_probability(X, y).mean() > chain.log_probability(X, y).mean() + 2
    rounds = crf.growth_
    assert rounds[0].n_patterns == 0
    assert max(rounds, key=lambda r: r.log_likelihood).n_patterns == len(crf.pattern_names_)
    assert crf.structure.grow == Growth(order=2, per_round=4)  # type: ignore[attr-defined]


def test_growth_finds_nothing_where_nothing_is() -> None:
    random = np.random.default_rng(0)
    y = [list(random.choice(["B", "O"], size=5)) for _ in range(60)]
    X = [[{"bias": True} for _ in labels] for labels in y]
    crf = CRF(structure=Patterns(grow=Growth(min_gain=5.0)), n_threads=1).fit(X, y)
    assert crf.pattern_names_ == []
    assert len(crf.growth_) == 1  # no candidate gained enough to be tried
    assert crf.predict(X[:1])


def test_growth_with_a_dev_set_and_weights(tmp_path: Path) -> None:
    X, y = turning(40)
    crf = CRF(structure=Patterns(["B O B"], grow=Growth(order=2, units=0, per_round=2)), l2=0.1, n_threads=1)
    crf.fit(X, y, sample_weight=np.full(40, 0.5), dev=(X[:8], y[:8]))
    assert "B O B" in crf.pattern_names_
    assert max(len(name.split()) for name in crf.pattern_names_) == 3
    crf.save(tmp_path / "grown.crf")
    loaded = crfkit.load(tmp_path / "grown.crf")
    assert loaded.pattern_names_ == crf.pattern_names_
    assert loaded.structure == crf.structure
    with pytest.raises(ArgumentError, match="growth holds out one of 10 training sequences, got 3"):
        CRF(structure=Patterns(grow=True), n_threads=1).fit(X[:3], y[:3])


# ---- the command line


def columns(path: Path, n: int = 40) -> Path:
    _, y = turning(n)
    path.write_text(
        "\n\n".join("\n".join(f"w{i % 2} {label}" for i, label in enumerate(labels)) for labels in y) + "\n"
    )
    return path


@pytest.mark.parametrize("order", ["1", "2", "auto"])
def test_order_on_the_command_line(tmp_path: Path, order: str) -> None:
    file = columns(tmp_path / "train.txt")
    model = tmp_path / "m.crf"
    trained = run(
        "train", str(file), "--model", str(model), "--order", order, "--l2", "0.1", "--threads", "1"
    )
    assert ("round 0: 0 patterns" in trained.output) == (order == "auto")
    names = crfkit.load(model).pattern_names_
    assert bool(names) == (order != "1")
    run("tag", str(model), str(file))
    shown = run("inspect", str(model), *(["--on", str(file)] if names else []))
    assert ("heaviest patterns" in shown.output) == bool(names)
    assert ("states of a position at most" in shown.output) == bool(names)


@pytest.mark.parametrize("order", ["0", "x", "21", "-1"])
def test_bad_orders(tmp_path: Path, order: str) -> None:
    file = columns(tmp_path / "train.txt", 4)
    refused = run("train", str(file), "--model", str(tmp_path / "m.crf"), f"--order={order}", status=2)
    assert f"--order {order}: expected a number from 1 to 20, or auto" in refused.output


@pytest.mark.parametrize("more", [[], ["B I* O", Pattern("B I", when="w=a")]])
def test_common_starts_are_as_if_they_were_listed(more: list[Any]) -> None:
    model = CRF(structure=Patterns([Ngrams([3, 4]), *more]), n_threads=1).fit(X, Y)._model
    potentials = model.potentials
    assert isinstance(potentials, PatternPotentials)
    dataset, patterns = model.encode(X), potentials.patterns
    common = patterns.data(dataset)
    assert len(common.common) == 1 + bool(more)
    ptr, states, values = common.of_positions(0, dataset.n_positions)
    listed = common._replace(start_ptr=ptr, start_states=states, start_values=values, common=states[:0])
    designs = (patterns.design(d, potentials.feature_map, dataset, 1) for d in (common, listed))
    one, other = (design.trellises for design in designs)
    assert one.n_arcs == other.n_arcs
    for n in range(len(X)):
        assert one.turned(n) == other.turned(n)
        for found, expected in zip(one.sizes(n), other.sizes(n), strict=True):
            assert found.tolist() == expected.tolist()
