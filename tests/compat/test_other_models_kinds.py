"""Kinds of models of CRF++ and Wapiti: repeated lines, binary files, no patterns, normalised at each position.

Files are made by hand from their layout, and the answers checked against enumeration by the rules of these tools.
"""

from __future__ import annotations

import itertools
import math
import struct
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

import crfkit
from crfkit.compat import read_wapiti, write_crfsuite
from crfkit.compat.crfpp_binary import trie_keys
from crfkit.compat.crfpp_file import parse_crfpp
from crfkit.compat.wapiti_file import parse_wapiti
from crfkit.errors import (
    ArgumentError,
    FeatureError,
    FileFormatError,
    LabelError,
    TemplateError,
    UnsavableError,
    UnsupportedError,
)
from crfkit.features import WapitiPatterns, WapitiTokens
from crfkit.models import position_scores, score_nbest
from tests.compat.crfpp_binaries import binary_of, double_array
from tests.compat.test_other_models import (
    LABELS,
    PATTERNS,
    TEMPLATE,
    Reference,
    Rows,
    compare,
    crfpp_model,
    random_rows,
    wapiti_model,
)


class LocalReference(Reference):
    """The same weights, normalised at each position: p(y) = Π p(y_t | y_{t−1})."""

    def log_probabilities(self, rows: Rows) -> dict[tuple[str, ...], float]:
        active = [self.features(rows, position) for position in range(len(rows))]
        n = len(LABELS)

        def step(position: int, before: int, label: int) -> float:
            scores = [
                sum(
                    self.weights.get((f, -1, b), 0.0)
                    + (self.weights.get((f, before, b), 0.0) if position else 0.0)
                    for f in active[position]
                )
                for b in range(n)
            ]
            return scores[label] - math.log(sum(map(math.exp, scores)))

        return {
            tuple(LABELS[b] for b in y): sum(step(t, y[t - 1], y[t]) for t in range(len(y)))
            for y in itertools.product(range(n), repeat=len(rows))
        }


def sequences(rng: np.random.Generator) -> list[Rows]:
    return [random_rows(rng, n) for n in (1, 2, 4)]


@pytest.mark.parametrize("seed", range(3))
def test_lines_count_as_often_as_a_template_lists_them(seed: int) -> None:
    rng = np.random.default_rng(seed)
    template = [*TEMPLATE, "U00:%x[-1,0]", "B", "U02:bias", "B01:%x[0,1]", "B"]
    text, reference = crfpp_model(rng, template=template)
    compare(parse_crfpp(text.encode()), reference, sequences(rng))


@pytest.mark.parametrize("seed", range(3))
def test_patterns_count_as_often_as_they_are_listed(seed: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(seed)
    patterns = [*PATTERNS, "b", "u:w=%x[0,0]", "*:all", "b:tag=%x[0,1]", "b", "*:all", "u:w=%x[0,0]"]
    content, reference = wapiti_model(rng, patterns=patterns)
    model = parse_wapiti(content)
    asked = sequences(rng)
    compare(model, reference, asked)
    model.save(tmp_path / "m.crf")
    compare(crfkit.load(tmp_path / "m.crf"), reference, asked)


@pytest.mark.parametrize("number", ["{:.6e}", "{:f}", "{:.17g}"])
def test_weights_of_wapiti_may_be_decimal(number: str) -> None:
    rng = np.random.default_rng(0)
    content, reference = wapiti_model(rng, number_of=number.format)
    compare(parse_wapiti(content), reference, sequences(rng))


@pytest.mark.parametrize("seed", range(3))
def test_binary_models_are_what_their_text_says(seed: int) -> None:
    rng = np.random.default_rng(seed)
    text, _ = crfpp_model(rng, cost_factor=[1.0, 0.5][seed % 2])
    written, read = parse_crfpp(text.encode()), parse_crfpp(binary_of(text))
    assert read.classes_ == written.classes_
    assert read.n_columns_ == written.n_columns_
    assert read.features == written.features
    for part in ("vocabulary", "arc_vocabulary"):
        a, b = (getattr(model.encoder_, part).names() for model in (read, written))
        assert sorted(a) == sorted(b)
    X = sequences(rng)
    for found, expected in zip(read.predict_marginals(X), written.predict_marginals(X), strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-5)  # its weights have 24 bits


def test_the_keys_of_a_double_array_are_found() -> None:
    rng = np.random.default_rng(0)
    letters = [bytes([byte]) for byte in (1, 65, 66, 255, 254)]
    keys = {b"".join(rng.choice(letters, size=n)): k for k, n in enumerate(rng.integers(0, 6, 400))}
    units = np.frombuffer(double_array(keys), np.dtype([("base", "<i4"), ("check", "<u4")]))
    names, values = trie_keys(units, 10**6)
    assert names == sorted(keys)
    assert dict(zip(names, values.tolist(), strict=True)) == keys


def test_a_double_array_that_goes_round_in_a_circle_is_refused() -> None:
    """A chain of nodes with bases 1, 4, 7, …, each of which ends a key; the last one leads back to the first."""
    n = 50_000
    units = np.zeros(3 * n + 5, [("base", "<i4"), ("check", "<u4")])
    bases = 1 + 3 * np.arange(n)
    units["base"][bases], units["check"][bases] = -1, bases
    units["base"][bases + 2], units["check"][bases + 2] = [*bases[1:], 1], bases
    with pytest.raises(FileFormatError, match="out of proportion"):
        trie_keys(units, 10**6)
    units["base"][bases[1:]] = 0  # one key alone
    with pytest.raises(FileFormatError, match="out of proportion"):
        trie_keys(units, 10**6)


@pytest.mark.parametrize(
    ("offset", "number", "complaint"),
    [
        (16, 10**6, "it ends within its weights"),
        (20, 0, "its rows have 0 columns"),
        (20, 1, "reads column 1"),
        (24, 7, "expected a multiple of 8"),
        (24, 2**31, "it ends within its double array"),
        (28, 2**31, "it ends within its labels"),
        (28, 5, "do not end with a zero byte"),
        (8, 0xFFFFFFFF, "unusable|cost factor|damaged|UTF-8|weights"),
    ],
)
def test_damaged_binary_models_are_refused(offset: int, number: int, complaint: str) -> None:
    data = bytearray(binary_of(crfpp_model(np.random.default_rng(0))[0]))
    struct.pack_into("<I", data, offset, number)
    if offset == 8:
        struct.pack_into("<d", data, 8, math.nan)
    with pytest.raises(
        FileFormatError, match=f"mutant: not a usable binary model of CRF\\+\\+: .*({complaint})"
    ):
        parse_crfpp(bytes(data), "mutant")


def test_models_of_other_encodings_are_read_where_these_are_named() -> None:
    text, _ = crfpp_model(np.random.default_rng(0))
    text = text.replace("x\n", "ż\n", 1)
    for data in (text.encode("cp1250"), binary_of(text, "cp1250")):
        model = parse_crfpp(data, encoding="cp1250")
        assert model.classes_[0] == "ż"
        assert any("Łódź" in name for name in model.encoder_.vocabulary.names())
        with pytest.raises(FileFormatError, match="not in the encoding utf-8"):
            parse_crfpp(data)
        with pytest.raises(ArgumentError, match="encoding"):
            parse_crfpp(data, encoding="latin-99")


@pytest.mark.parametrize("seed", range(4))
def test_models_that_are_normalised_at_each_position(seed: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(seed)
    content, plain = wapiti_model(rng, "#mdl#1#")
    reference = LocalReference(plain.features, plain.weights)
    model = parse_wapiti(content)
    assert model.locally_normalised_
    asked = sequences(rng)
    compare(model, reference, asked)
    model.save(tmp_path / "m.crf")
    again = crfkit.load(tmp_path / "m.crf")
    assert again.locally_normalised_
    compare(again, reference, asked)
    rows = asked[-1]
    expected = reference.log_probabilities(rows)
    best = sorted(expected, key=expected.__getitem__, reverse=True)[:3]
    found = model.predict_nbest([rows], 3)[0]
    assert [tuple(labels) for _, labels in found] == best
    np.testing.assert_allclose([p for p, _ in found], [math.exp(expected[y]) for y in best])
    drawn = model.sample([rows], 4000, random_state=0)[0]
    share = np.mean([tuple(y) == best[0] for y in drawn])
    assert share == pytest.approx(math.exp(expected[best[0]]), abs=0.03)
    with pytest.raises(UnsavableError):
        write_crfsuite(model, tmp_path / "m.crfsuite")
    with pytest.raises(UnsupportedError):
        model.partial_fit([rows], [["x"] * len(rows)])


def test_allowed_labels_condition_a_model_that_is_normalised_at_each_position() -> None:
    rng = np.random.default_rng(7)
    content, plain = wapiti_model(rng, "#mdl#1#")
    rows = random_rows(rng, 4)
    expected = LocalReference(plain.features, plain.weights).log_probabilities(rows)
    allowed: list[set[str] | None] = [{"x", "y"}, None, {"z"}, {"y"}]
    kept = {
        y: p for y, p in expected.items() if all(a is None or b in a for a, b in zip(allowed, y, strict=True))
    }
    total = math.log(sum(map(math.exp, kept.values())))
    model = parse_wapiti(content)
    assert tuple(model.predict([rows], allowed=[allowed])[0]) == max(kept, key=kept.__getitem__)
    asked = list(kept)
    logs = model.log_probability(
        [rows] * len(asked), [list(y) for y in asked], allowed=[allowed] * len(asked)
    )
    np.testing.assert_allclose(logs, [kept[y] - total for y in asked], atol=1e-9)
    partial = model.log_probability([rows], [["x", None, {"z", "y"}, None]])
    some = [p for y, p in expected.items() if y[0] == "x" and y[2] in "zy"]
    assert partial[0] == pytest.approx(math.log(sum(map(math.exp, some))))


@pytest.mark.parametrize("kind", ["#mdl#2#", "#mdl#1#"])
def test_scores_of_positions_add_up(kind: str) -> None:
    rng = np.random.default_rng(3)
    model = parse_wapiti(wapiti_model(rng, kind)[0])
    X = [random_rows(rng, n) for n in (3, 1, 5)]
    for x, best in zip(X, score_nbest(model, X, 4), strict=True):
        for answer in best:
            scores = position_scores(model, [x], [answer.labels])[0]
            assert scores.sum() == pytest.approx(answer.score)
            assert answer.score - answer.log_partition == pytest.approx(
                model.log_probability([x], [answer.labels])[0]
            )
            if kind == "#mdl#1#":
                assert answer.log_partition == pytest.approx(0, abs=1e-12)
                assert (scores <= 0).all()
    with pytest.raises(LabelError):
        position_scores(model, X[:1], [["x", None, "y"]])


def test_scores_of_positions_are_for_plain_chains() -> None:
    X, y = [[["a"], ["b"]]], [["c=1", "c=2"]]
    with pytest.raises(UnsupportedError):
        position_scores(crfkit.CRF(facets="features").fit(X, y), X, y)
    patterns = crfkit.Patterns([crfkit.Pattern("c=1 c=2")])
    with pytest.raises(UnsupportedError):
        position_scores(crfkit.CRF(patterns).fit(X, y), X, y)


def tokens_file(head: str, features: Sequence[str], weights: Sequence[float], puts_u: int = 0) -> bytes:
    names = "".join(f"{len(name.encode())}:{name},\n" for name in features)
    numbers = "".join(f"{k}={weight!r}\n" for k, weight in enumerate(weights) if weight)
    labels = "".join(f"{len(label)}:{label},\n" for label in LABELS)
    n = sum(weight != 0 for weight in weights)
    return f"{head}{n}\n#rdr#0/0/{puts_u}\n#qrk#{len(LABELS)}\n{labels}#qrk#{len(features)}\n{names}{numbers}".encode()


@pytest.mark.parametrize("kind", ["#mdl#2#", "#mdl#1#"])
def test_models_without_patterns_take_columns_for_features(kind: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    features = ["u:a", "*:b", "b", "b:c", "u:ü", "u:never"]
    n = len(LABELS)
    weights: dict[tuple[str | bytes, int, int], float] = {}
    numbers: list[float] = []
    for feature in features:
        if feature[0] in "u*":
            for b in range(n):
                numbers.append(round(float(rng.normal()), 3))
                weights[feature, -1, b] = numbers[-1]
        if feature[0] in "b*":
            for a, b in itertools.product(range(n), repeat=2):
                numbers.append(round(float(rng.normal()), 3))
                weights[feature, a, b] = numbers[-1]
    (tmp_path / "m.wap").write_bytes(tokens_file(kind, features, numbers))
    model = read_wapiti(tmp_path / "m.wap")
    tokens = ["u:a", "*:b", "b", "b:c", "u:ü", "u:new", "b:new"]
    asked = [[list(rng.choice(tokens, size=rng.integers(0, 6))) for _ in range(k)] for k in (1, 3, 4)]
    reference = (LocalReference if kind == "#mdl#1#" else Reference)(
        lambda rows, position: rows[position], weights
    )
    compare(model, reference, asked)  # type: ignore[arg-type]
    model.save(tmp_path / "m.crf")
    compare(crfkit.load(tmp_path / "m.crf"), reference, asked)  # type: ignore[arg-type]
    with pytest.raises(FeatureError, match="sequence 0, position 1"):
        model.predict([[["u:a"], ["b", "NN"]]])
    with pytest.raises(FeatureError, match="sequence 0, position 0"):
        model.predict([[3]])


def test_features_of_maxent_models_without_patterns_have_no_letter() -> None:
    model = parse_wapiti(tokens_file("#mdl#0#", ["uthe", "ubig"], [0, 2.0, 0, 0, 0, 3.0], puts_u=1))
    assert model.predict([[["the"], ["big"], ["the", "big", "big"], []]]) == [["y", "z", "z", "x"]]


def test_maxent_models_with_patterns_take_rows_one_by_one() -> None:
    """`wapiti train --me` puts u before what patterns make, and takes each row for a sequence."""
    patterns = ["u:%x[-1,0]/%x[@1,0]", "*:%x[@-1,0]", "b:%x[0,0]", 'u:%t[1,0,"1$"]%m[0,0,"^a"]']
    features = ["uu:_x-1/the", "u*:cat", "ub:the", "uu:truea"]
    listed = "".join(f"{len(text)}:{text},\n" for text in patterns)
    named = "".join(f"{len(text)}:{text},\n" for text in features)
    content = f"#mdl#0#4\n#rdr#4/0/1\n{listed}#qrk#2\n1:p,\n1:q,\n#qrk#4\n{named}1=1.0\n3=2.0\n5=9.0\n6=0.5\n".encode()
    model = parse_wapiti(content)
    rows = ["the", "cat", "ab", "dog"]
    p = model.predict_marginals([rows])[0][:, 1]
    np.testing.assert_allclose(np.log(p / (1 - p)), [1.0, 2.0, -0.5, 0.0], atol=1e-12)
    with pytest.raises(TemplateError, match="reads a row that is 5 away"):
        WapitiPatterns.parse("u:%x[-5,0]").of_single_rows()


def test_rows_may_have_more_columns_than_a_model_reads(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    text, _ = crfpp_model(rng)
    for model in (parse_crfpp(text.encode()), parse_wapiti(wapiti_model(rng)[0])):
        rows = random_rows(rng, 4)
        ragged = [(*row, *["more"] * k) for k, row in enumerate(rows)]
        model.save(tmp_path / "m.crf")
        for read in (model, crfkit.load(tmp_path / "m.crf")):
            np.testing.assert_array_equal(
                read.predict_marginals([ragged])[0], read.predict_marginals([rows])[0]
            )
            with pytest.raises(FeatureError, match="position 1"):
                read.predict([[("a", "b", "c"), ("a",)]])
    exact = parse_wapiti(wapiti_model(rng)[0], n_columns=3)
    with pytest.raises(FeatureError):
        exact.predict([rows])
    with pytest.raises(
        FileFormatError, match="not a usable model of Wapiti: its patterns:5: the template reads column 1"
    ):
        parse_wapiti(wapiti_model(rng)[0], n_columns=1)


def test_wapiti_asks_for_columns_where_patterns_read_them(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    content, _ = wapiti_model(rng, patterns=["u:%x[0,0]", "u:before=%x[-1,1]", "b"])
    content = content.replace(b"#rdr#3/", b"#rdr#4/").replace(b"b,\n", b"b,\n16:u:first=%x[@1,2],\n", 1)
    parse_wapiti(content).save(tmp_path / "m.crf")
    short: list[tuple[str, ...]] = [("the", "D", "more"), ("Dog", "N"), ("runs",)]
    full = [(*row, "", "")[:3] for row in short]
    for model in (parse_wapiti(content), crfkit.load(tmp_path / "m.crf")):
        np.testing.assert_array_equal(model.predict_marginals([short])[0], model.predict_marginals([full])[0])
        with pytest.raises(FeatureError, match="sequence 1, position 0"):
            model.predict([short, [("the", "D")]])
        with pytest.raises(FeatureError, match="position 1"):
            model.predict([[("the", "D", "more"), ("Dog",), ("runs", "V")]])


def test_tokens_are_a_language_of_their_own() -> None:
    with pytest.raises(FeatureError):
        WapitiTokens("x")
    with pytest.raises(IndexError):
        WapitiTokens("").expand([["u"]], 1)
    X = [[["u:a", "b"], ["u:b", "b"], ["u:a", "b"]]] * 3
    y = [["p", "q", "p"]] * 3
    crf = crfkit.CRF(features=WapitiTokens(""), l2=0.1).fit(X, y)
    assert crf.predict(X) == y
    assert list(crf.encoder_.arc_vocabulary.names()) == ["b"]


def test_a_plain_feature_of_transitions_may_be_made_of_the_input_too() -> None:
    """Where the pattern finds nothing it makes `b`, which the other line gives to every transition."""
    patterns = ['b%m[0,0,"g"]', "b", "u"]
    names, weights = ["b", "bg", "u"], [1.5, -0.5, 0.25, 1.0, 4.0, 3.0, 2.0, 1.0, 0.5, 0.0]
    lines = [f"#mdl#2#{len(weights)}", f"#rdr#{len(patterns)}/0/0"]
    lines += [f"{len(pattern)}:{pattern}," for pattern in patterns]
    lines += ["#qrk#2", "1:A,", "1:B,", f"#qrk#{len(names)}", *(f"{len(name)}:{name}," for name in names)]
    lines += [f"{i}={value}" for i, value in enumerate(weights)]
    crf = parse_wapiti("\n".join([*lines, ""]).encode())
    b, bg, u = np.reshape(weights[:4], (2, 2)), np.reshape(weights[4:8], (2, 2)), np.array(weights[8:])
    X = [["x", "dog", "cat"]]
    scores = {
        (i, j, k): u[i] + u[j] + u[k] + (b + bg)[i, j] + 2 * b[j, k]
        for i in range(2)
        for j in range(2)
        for k in range(2)
    }
    total = np.logaddexp.reduce(list(scores.values()))
    for labels, score in scores.items():
        names = ["AB"[label] for label in labels]
        assert crf.log_probability(X, [names])[0] == pytest.approx(score - total, abs=1e-9)
