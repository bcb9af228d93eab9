"""Training on encoded data sets, on files and on iterators: the bits of training in memory with the same shards."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import crfkit
from crfkit import (
    CRF,
    LBFGS,
    SAG,
    SGD,
    Affixes,
    Chain,
    Checkpoint,
    Growth,
    Ngrams,
    Pattern,
    Patterns,
    Segments,
)
from crfkit.data import EncodedDataset, open_dataset
from crfkit.errors import ArgumentError, FileFormatError, MissingFileError, ShapeError, UnsupportedError
from crfkit.features import Template, encode_pairs
from crfkit.models.training.checkpoint import CheckpointMismatchError
from crfkit.models.training.stored_task import StoredSequences, StoredTask
from crfkit.models.training.train import Plan
from crfkit.optimizers import OptimizationError
from tests.features.test_dataset_writer import TEMPLATE, positions, words
from tests.models.test_every_optimizer import OPTIMIZERS, Killed
from tests.models.test_resources import RESOURCES
from tests.models.test_resources import TEMPLATE as TEMPLATE_OF_RESOURCES

pytestmark = pytest.mark.filterwarnings(
    "ignore::crfkit.models.ConvergenceWarning", "ignore::crfkit.models.UninformativeData"
)
SIZE = 30
FEATURES = Template.parse(TEMPLATE)
SHORT = LBFGS(max_iterations=5)


def lists(pairs: list[tuple[Any, Any]]) -> tuple[list[Any], list[Any]]:
    return [x for x, _ in pairs], [y for _, y in pairs]


def columns(folder: Path) -> list[Path]:
    """Two column files; the labels are those of the words."""
    files = [folder / "a.txt", folder / "b.txt"]
    for seed, path in enumerate(files):
        lines = [[f"{row[0]} L{int(row[0][1:]) % 3}\n" for row in x] for x, _ in words(30, seed)]
        path.write_text("\n".join("".join(sequence) for sequence in lines))
    return files


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> EncodedDataset:
    return encode_pairs(words(60), tmp_path_factory.mktemp("data") / "d", features=FEATURES, shard_size=SIZE)


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_every_optimizer_gives_the_bits_of_training_in_memory(
    dataset: EncodedDataset, optimizer: str
) -> None:
    assert dataset.n_shards > 3
    X, y = lists(words(60))
    known = CRF(features=FEATURES, **OPTIMIZERS[optimizer], n_threads=1).fit(X, y, shard_size=SIZE)
    for n_threads in (1, 2):
        model = CRF(**OPTIMIZERS[optimizer], n_threads=n_threads).fit(dataset)
        assert model.weights_.tobytes() == known.weights_.tobytes()
        assert [r.objective for r in model.history_][1:] == [r.objective for r in known.history_][1:]
        assert model.predict(X) == known.predict(X)


@pytest.mark.parametrize(
    "structure", [Chain(), Chain(bigrams="observed", unseen="soft"), Segments()], ids=str
)
def test_large_shards_are_cut_into_the_same_blocks(structure: Any) -> None:
    pairs = words(3000)
    if isinstance(structure, Segments):
        pairs = [(x, [f"L{int(row[0][1:]) % 3}" for row in x]) for x, _ in pairs]
    known = CRF(structure, features=FEATURES, optimizer=SHORT).fit(*lists(pairs), shard_size=4000)
    model = CRF(structure, features=FEATURES, optimizer=SHORT).fit(iter(pairs), shard_size=4000)
    assert model.weights_.tobytes() == known.weights_.tobytes()


@pytest.mark.parametrize(
    "settings",
    [
        {"min_count": 3},
        {"all_possible_states": True},
        {"all_possible_states": True, "all_possible_transitions": False},
        {"all_possible_transitions": False},
        {"structure": Chain(bigrams="observed")},
        {"structure": Chain(start=False, end=False)},
        {"structure": Chain(bigrams="observed", unseen="soft")},
        {"margin": 1.5},
    ],
    ids=str,
)
def test_all_settings_of_chains(tmp_path: Path, settings: dict[str, Any]) -> None:
    pairs = words(60)
    known = CRF(features=FEATURES, optimizer=SHORT, **settings).fit(*lists(pairs), shard_size=SIZE)
    model = CRF(features=FEATURES, optimizer=SHORT, **settings).fit(iter(pairs), shard_size=SIZE)
    assert model.weights_.tobytes() == known.weights_.tobytes()
    assert model.structure_ == known.structure_
    model.save(tmp_path / "m")
    again = crfkit.load(tmp_path / "m")
    assert again.predict(lists(pairs)[0]) == known.predict(lists(pairs)[0])


@pytest.mark.parametrize("unseen", ["error", "extend"])
def test_bigrams_are_those_of_all_shards(unseen: str) -> None:
    """In the first shard alone, no label fits between A and B."""
    X = [[["a"], ["c"], ["b"]], [["a"], ["c"]], [["c"], ["b"]]] * 2
    y = [["A", None, "B"], ["A", "C"], ["C", "B"]] * 2
    bigrams = "observed" if unseen == "error" else crfkit.Bigrams([("A", "C")])
    structure = Chain(bigrams=bigrams, unseen=unseen)
    known = CRF(structure, optimizer=SHORT).fit(X, y, shard_size=3)
    model = CRF(structure, optimizer=SHORT).fit(iter(zip(X, y, strict=True)), shard_size=3)
    assert model.weights_.tobytes() == known.weights_.tobytes()
    assert model.structure_ == known.structure_


def tagged(n: int) -> list[tuple[Any, Any]]:
    """Sequences of rows with positional tags, each a word class, a number and a case; some are unknown."""
    random = np.random.default_rng(5)
    pairs = []
    for _ in range(n):
        ids = random.zipf(1.5, int(random.integers(1, 7))) % 30
        labels = [f"{'nva'[i % 3]}{'sp-'[i % 2 + (i % 7 == 0)]}{'xyz-'[i % 4]}" for i in ids.tolist()]
        y = [None if random.random() < 0.1 else label for label in labels]
        pairs.append(([(f"w{i}", "c") for i in ids], y))
    return pairs


def spans(n: int) -> list[tuple[Any, Any]]:
    """Sequences of rows with labels of spans."""
    random = np.random.default_rng(6)
    pairs = []
    for _ in range(n):
        labels: list[str] = []
        while len(labels) < 6:
            kind, length = "XYZ"[int(random.integers(3))], int(random.integers(1, 4))
            labels += ["O"] if kind == "Z" else [f"B-{kind}", *[f"I-{kind}"] * (length - 1)]
        pairs.append(([(f"w{hash_of(label, t)}", "c") for t, label in enumerate(labels)], labels))
    return pairs


def hash_of(label: str, t: int) -> int:
    return (sum(map(ord, label)) * 7 + t * t) % 23


STRUCTURES: dict[str, tuple[Any, dict[str, Any]]] = {
    "facets": (tagged, {"facets": "characters"}),
    "facets, all states": (tagged, {"facets": "characters", "all_possible_states": True}),
    "facets, bigrams": (
        tagged,
        {"facets": "characters", "structure": Chain(bigrams="observed", unseen="soft")},
    ),
    "facets, eleven kinds": (tagged, {"facets": lambda label: {f"k{k}": label[k % 3] for k in range(11)}}),
    "facets, a margin": (tagged, {"facets": "characters", "margin": 1.5}),
    "patterns": (words, {"structure": Patterns(["L0 . L2", "L1 L1 L1"])}),
    "patterns of the data": (words, {"structure": Patterns([Ngrams(3, min_count=4), Affixes(2)])}),
    "patterns, bigrams": (words, {"structure": Patterns([Ngrams(3)], bigrams="observed")}),
    "patterns, a margin": (words, {"structure": Patterns([Ngrams(3)]), "margin": 1.5}),
    "segments": (spans, {"structure": Segments()}),
    "segments, lengths": (spans, {"structure": Segments(max_length=3), "all_possible_states": True}),
    "segments, bigrams": (spans, {"structure": Segments(bigrams="observed")}),
}


@pytest.mark.parametrize("optimizer", [SHORT, SGD(max_iterations=2)], ids=["LBFGS", "SGD"])
@pytest.mark.parametrize("name", STRUCTURES)
def test_structures_that_need_numbers_alone(tmp_path: Path, name: str, optimizer: Any) -> None:
    make, settings = STRUCTURES[name]
    pairs = make(60)
    X = [x for x, _ in pairs]
    for size in (SIZE, 10_000):
        known = CRF(features=FEATURES, optimizer=optimizer, **settings).fit(*lists(pairs), shard_size=size)
        data = encode_pairs(pairs, tmp_path / str(size), features=FEATURES, shard_size=size)
        assert (data.n_shards > 3) == (size == SIZE)
        for n_threads in (1, 2):
            model = CRF(optimizer=optimizer, n_threads=n_threads, **settings).fit(data)
            assert model.weights_.tobytes() == known.weights_.tobytes()
        assert model.structure_ == known.structure_
        assert model.predict(X) == known.predict(X)
    if "kinds" not in name:
        model.save(tmp_path / "m")
        assert crfkit.load(tmp_path / "m").predict(X) == known.predict(X)


@pytest.mark.parametrize("many", [False, True])
def test_positions_of_every_kind(many: bool) -> None:
    """Values, dense blocks, and more labels than rows are taken for, which are made anew in each pass."""
    pairs = positions(40)
    if many:
        pairs = [(x, [f"{k}", f"{k + 1}", f"{k}"]) for k, (x, _) in enumerate(positions(80))]
        pairs = [([{"w": p["w"]} for p in x], y) for x, y in pairs]
    structure = Chain(bigrams="observed") if many else Chain()
    for optimizer in (SHORT, SGD(max_iterations=2)):
        known = CRF(structure, optimizer=optimizer).fit(*lists(pairs), shard_size=20)
        model = CRF(structure, optimizer=optimizer).fit(iter(pairs), shard_size=20)
        assert model.weights_.tobytes() == known.weights_.tobytes()


def test_one_shard_is_training_in_memory(tmp_path: Path) -> None:
    """Equal features are merged."""
    pairs = words(60)
    known = CRF(features=FEATURES, optimizer=SHORT).fit(*lists(pairs))
    found = encode_pairs(pairs, tmp_path / "d", features=FEATURES)
    assert found.n_shards == 1
    assert CRF(optimizer=SHORT).fit(found).weights_.tobytes() == known.weights_.tobytes()


@pytest.mark.filterwarnings("ignore::crfkit.models.UnreadColumns")
@pytest.mark.parametrize("features", ["pos", FEATURES], ids=["preset", "template"])
def test_shards_of_empty_sequences(features: Any) -> None:
    """They say nothing of the number of columns, wherever they stand."""
    some: tuple[Any, Any] = ([("a", "b"), ("c", "d")], ["X", "Y"])
    none: tuple[Any, Any] = ([], [])
    for pairs in ([some, none, some], [none, some, some], [none, none, some], [some, none, none]):
        known = CRF(features=features, optimizer=SHORT).fit(*lists(pairs), shard_size=1)
        model = CRF(features=features, optimizer=SHORT).fit(iter(pairs), shard_size=1)
        assert model.weights_.tobytes() == known.weights_.tobytes()
        assert model.n_columns_ == known.n_columns_ == 2
    other = ([("a",)], ["X"])
    with pytest.raises(ShapeError, match="have 1 column, expected 2 as before"):
        CRF(features="pos").fit(iter([some, none, other]), shard_size=1)


def test_files_and_folders(tmp_path: Path) -> None:
    files = columns(tmp_path)
    pairs = [pair for path in files for pair in crfkit.data.read_pairs(path)]
    known = CRF(features="pos", optimizer=SHORT).fit(iter(pairs), shard_size=10**6)
    model = CRF(features="pos", optimizer=SHORT).fit(files)
    assert np.allclose(model.weights_, known.weights_, rtol=0, atol=1e-6)  # two shards, one for each file
    assert model.score(*lists(pairs)) == known.score(*lists(pairs)) > 0.9
    encoded = crfkit.features.encode_files(files, tmp_path / "d", features="pos")
    for given in (encoded, encoded.path, str(encoded.path)):
        assert CRF(optimizer=SHORT).fit(given).weights_.tobytes() == model.weights_.tobytes()
    assert CRF(features="pos", optimizer=SHORT).fit(str(files[0])).score(*lists(pairs)) > 0.8


def test_dropout_has_the_bits_of_training_in_memory(dataset: EncodedDataset) -> None:
    sgd = SGD(3, rate=0.1, dropout=0.4)
    known = CRF(features=FEATURES, optimizer=sgd).fit(*lists(words(60)), shard_size=SIZE)
    assert CRF(optimizer=sgd).fit(dataset).weights_.tobytes() == known.weights_.tobytes()


def test_a_template_of_one_line(tmp_path: Path) -> None:
    one, other = columns(tmp_path)
    known = CRF(features=Template.parse("U0:%x[0,0]")).fit([one, other])
    assert np.array_equal(CRF(features="U0:%x[0,0]").fit([one, other]).weights_, known.weights_)


def test_a_file_that_is_missing_is_named(tmp_path: Path) -> None:
    one, _ = columns(tmp_path)
    for paths in ([one, tmp_path / "none.txt"], str(tmp_path / "none.txt")):
        with pytest.raises(MissingFileError, match=r"none\.txt"):
            CRF(features=FEATURES).fit(paths)


def test_an_iterator_is_not_held_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """At most the sequences of a shard, and the one that begins the next, are alive."""
    alive = most = 0

    class Counted(list):  # type: ignore[type-arg]
        def __del__(self) -> None:
            nonlocal alive
            alive -= 1

    def pairs() -> Iterator[tuple[Any, Any]]:
        nonlocal alive, most
        for x, y in words(100):
            alive += 1
            most = max(most, alive)
            yield Counted(x), y

    CRF(features=FEATURES, optimizer=LBFGS(max_iterations=1)).fit(pairs(), shard_size=SIZE)
    assert most <= SIZE + 2


@pytest.mark.parametrize("features", ["names", TEMPLATE_OF_RESOURCES])
def test_resources(tmp_path: Path, features: str) -> None:
    places = ["Rome", "Oslo", "Ada", "New York", "in", "x"]
    X = [[(places[(n * t) % 6],) for t in range(1 + n % 5)] for n in range(40)]
    y = [["L" if word[0][0].isupper() else "O" for word in x] for x in X]
    file = tmp_path / "train.txt"
    sequences = [
        "".join(f"{row[0]}\t{label}\n" for row, label in zip(*pair, strict=True))
        for pair in zip(X, y, strict=True)
    ]
    file.write_text("\n".join(sequences))
    settings: dict[str, Any] = {"features": features, "optimizer": SHORT, "resources": RESOURCES}
    known = CRF(**settings).fit(X, y, shard_size=20)
    data = crfkit.features.encode_files(
        [file],
        tmp_path / "d",
        features=features if features == "names" else Template.parse(features),
        shard_size=20,
        resources=RESOURCES,
    )
    assert data.n_shards > 3
    for given in (data, iter(zip(X, y, strict=True)), [file]):
        model = CRF(**settings).fit(given, shard_size=20)
        assert model.weights_.tobytes() == known.weights_.tobytes()
        assert model.predict(X) == known.predict(X)
    again = CRF(optimizer=SHORT, resources=RESOURCES).fit(data)
    assert again.weights_.tobytes() == known.weights_.tobytes()
    with pytest.raises(ArgumentError, match="encoded with resource 'brown'"):
        CRF().fit(data)
    other = {**RESOURCES, "cities": crfkit.Lexicon.build({"city": ["Paris"], "person": ["Ada"]})}
    with pytest.raises(ArgumentError, match="encoded with another resource 'cities'"):
        CRF(resources=other).fit(data)
    with pytest.raises(ArgumentError, match="resources has 'more'"):
        CRF(resources={**RESOURCES, "more": RESOURCES["cities"]}).fit(data)


def is_even(_: Any, i: int) -> bool:
    return i % 2 == 0


def test_structures_that_look_at_sequences_take_pairs_too(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "crfkit")
    files = columns(tmp_path)
    pairs = [pair for path in files for pair in crfkit.data.read_pairs(path)]
    gated = Patterns([Pattern("L0 L1", when=is_even)])
    known = CRF(gated, features="pos", optimizer=SHORT).fit(*lists(pairs))
    for given in (iter(pairs), files):
        model = CRF(gated, features="pos", optimizer=SHORT).fit(given)
        assert model.weights_.tobytes() == known.weights_.tobytes()
    assert "into memory, as this crfkit.Patterns(…) looks at all sequences" in caplog.text


def test_sag_refuses_shards_that_are_compiled_anew(tmp_path: Path) -> None:
    """For each sequence that it visits, in random order."""
    pairs = words(60)
    data = encode_pairs(pairs, tmp_path / "d", features=FEATURES, shard_size=SIZE)
    structure = Patterns(["L0 . L2"])
    with pytest.raises(OptimizationError, match="shards of this model are compiled anew"):
        CRF(structure, optimizer=SAG(max_iterations=2)).fit(data)
    in_memory = CRF(structure, features=FEATURES, optimizer=SAG(max_iterations=2))
    assert in_memory.fit(*lists(pairs), shard_size=SIZE).n_iter_ == 2


def test_what_does_not_go_with_an_encoded_data_set(dataset: EncodedDataset) -> None:
    for model, message in (
        (CRF(Patterns([Pattern("L0 L1", when=lambda x, i: True)])), "Patterns"),
        (CRF(Patterns(grow=Growth())), "Patterns"),
        (CRF(Segments(segment_features=[0])), "Segments"),
    ):
        with pytest.raises(UnsupportedError, match=message):
            model.fit(dataset)
    for given in ({"y": [["A"]]}, {"sample_weight": [1.0]}, {"allowed": [None]}):
        with pytest.raises(UnsupportedError, match=next(iter(given))):
            CRF().fit(dataset, **given)
    with pytest.raises(ArgumentError, match="min_count=1"):
        CRF(min_count=2).fit(dataset)
    with pytest.raises(ArgumentError, match="other features"):
        CRF(features="pos").fit(dataset)
    with pytest.raises(ArgumentError, match="shard_size"):
        CRF().fit(dataset, shard_size=SIZE + 1)
    assert CRF(features=FEATURES, optimizer=SHORT).fit(dataset, shard_size=SIZE).n_iter_ > 0


def test_a_killed_run_goes_on_with_the_same_bits(dataset: EncodedDataset, tmp_path: Path) -> None:
    def kill(progress: Any) -> None:
        if progress.iteration == 3:
            raise Killed

    kept = Checkpoint(tmp_path / "c", every=2, resume=True)
    whole = CRF(optimizer=SHORT).fit(dataset)
    with pytest.raises(Killed):
        CRF(optimizer=SHORT).fit(dataset, checkpoint=kept, callback=kill)
    other = encode_pairs(words(61), tmp_path / "d", features=FEATURES, shard_size=SIZE)
    with pytest.raises(CheckpointMismatchError, match="data"):
        CRF(optimizer=SHORT).fit(other, checkpoint=kept)
    assert CRF(optimizer=SHORT).fit(dataset, checkpoint=kept).weights_.tobytes() == whole.weights_.tobytes()


def test_ctrl_c_keeps_the_weights_so_far(dataset: EncodedDataset) -> None:
    def interrupt(progress: Any) -> None:
        if progress.iteration == 2:
            raise KeyboardInterrupt

    with pytest.warns(UserWarning, match="interrupted|Ctrl-C"):
        model = CRF(optimizer=SHORT).fit(dataset, callback=interrupt)
    assert model.n_iter_ == 2


def test_a_shard_that_is_damaged_during_training_is_named(tmp_path: Path) -> None:
    found = encode_pairs(words(60), tmp_path / "d", features=FEATURES, shard_size=SIZE)
    path = found.files.shard(2)
    data = path.read_bytes()
    path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    with pytest.raises(FileFormatError, match="shard-00002"):
        CRF(optimizer=SHORT).fit(open_dataset(found.path))


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root writes everywhere")
def test_a_folder_that_cannot_be_written_is_read(dataset: EncodedDataset) -> None:
    known = CRF(optimizer=SHORT).fit(dataset)
    dataset.path.chmod(0o555)
    try:
        assert CRF(optimizer=SHORT).fit(dataset).weights_.tobytes() == known.weights_.tobytes()
    finally:
        dataset.path.chmod(0o755)


def test_no_scratch_file_is_left_and_none_is_needed(dataset: EncodedDataset) -> None:
    """Without one, or where the disk is full, losses are made anew in each pass."""
    before = sorted(dataset.path.iterdir())
    model = CRF(optimizer=SHORT)
    task = StoredTask(model._settings(), dataset).encode(Plan(), 1)
    w = np.random.default_rng(0).normal(size=task.model.n_weights)
    assert isinstance(task, StoredSequences)
    stored = task.stored
    potentials = task.model.potentials

    def make(i: int) -> Any:
        return potentials.shard_loss(*stored.shard(i), 1)

    ptr, n = dataset.shard_ptr, potentials.n_weights
    answers = []
    for scratch in ("", str(dataset.path)):
        objective = crfkit.objective.Objective(crfkit.objective.stored_loss(ptr, make, n, scratch, 1))
        answers += [objective.value_and_gradient(w) for _ in range(2)]
        assert objective.refine()
        assert not objective.refine()
        answers.append(objective.value_and_gradient(w))
    for value, gradient in (*answers[1:2], *answers[3:5]):
        assert value == answers[0][0]
        assert np.array_equal(gradient, answers[0][1])
    assert answers[2][0] == answers[5][0] != answers[0][0]
    assert sorted(dataset.path.iterdir()) == before
    with pytest.raises(RuntimeError, match="scratch"):
        crfkit.objective.stored_loss(ptr, make, n, "/nonexistent", 1)
