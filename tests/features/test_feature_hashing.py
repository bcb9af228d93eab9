"""Features known by the bucket of their name: the hash against scikit-learn's, and every form of input by names."""

from __future__ import annotations

import io
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.utils import murmurhash3_32

import crfkit
from crfkit.compat import write_crfsuite
from crfkit.data import read_arrays
from crfkit.errors import ArgumentError, FileFormatError, UnsavableError, UnsupportedError
from crfkit.features import ColumnRows, Encoder, Template, Vocabulary, encode_files, encode_pairs

TEMPLATE = "U0:%x[0,0]\nU1:%x[-1,0]/%x[0,1]\nB\nB1:%x[0,0]\n"


def bucket(name: str, bits: int) -> str:
    """The name of a bucket, by scikit-learn's hash."""
    number = murmurhash3_32(name.encode(), seed=0, positive=True) % 2**bits
    return f"h{bits}:{number:0{-(-bits // 4)}x}"


def test_the_hash_is_fixed() -> None:
    names = ["", "a", "ab", "abc", "abcd", "w[0]=Zürich", "é" * 9, *(f"U{n}:x{n * n}" for n in range(300))]
    vocabulary = Vocabulary()
    assert vocabulary.name_of("w:the") == "w:the"
    for bits in (1, 4, 5, 9, 10, 20, 29, 30):
        vocabulary.hash_features(bits)
        assert [vocabulary.name_of(name) for name in names] == [bucket(name, bits) for name in names]
    vocabulary.hash_features(20)
    assert [vocabulary.name_of(name) for name in ("", "w:the", "日本")] == [
        "h20:00000",
        "h20:c8eaa",
        "h20:9f942",
    ]
    with pytest.raises(ValueError, match="bits"):
        vocabulary.hash_features(31)


ROWS = [[(f"w{(n * t) % 7}", f"c{t % 3}") for t in range(1 + n % 5)] for n in range(400)]
POSITIONS = [
    [{"w": str((n * t) % 11), "v": t / 2, "f": ["a", f"b{n % 4}"]} for t in range(1 + n % 4)]
    for n in range(90)
]
BLOCKS = [{"s": csr_matrix(np.eye(4)[[n % 4, 1]]), "w": [["x"], [f"y{n % 3}"]]} for n in range(20)]
FILE = "\n\n".join("\n".join(" ".join(row) + " L" for row in rows) for rows in ROWS).encode()


@pytest.mark.parametrize("n_threads", [1, 3])
@pytest.mark.parametrize(
    ("X", "template"),
    [
        (ROWS, Template.parse(TEMPLATE)),
        (ColumnRows.read(io.BytesIO(FILE), label_column=-1), Template.parse(TEMPLATE)),
        (POSITIONS, None),
        ([[["a", "b"], ["a", "c", "a"]]] * 100, None),
        (BLOCKS, None),
    ],
    ids=["rows", "file", "dicts", "lists", "blocks"],
)
@pytest.mark.parametrize("bits", [3, 18])
def test_features_are_those_of_their_buckets(X: Any, template: Any, bits: int, n_threads: int) -> None:
    named, hashed = Encoder(template), Encoder(template, hash_bits=bits)
    expected, found = named.fit_encode(X, n_threads), hashed.fit_encode(X, n_threads)
    for known, features, names, others in (
        (named.vocabulary, expected.states, hashed.vocabulary, found.states),
        (named.arc_vocabulary, expected.arcs, hashed.arc_vocabulary, found.arcs),
    ):
        if features is None:
            assert others is None
            continue
        assert others is not None
        buckets = [bucket(known.name(i), bits) for i in features.ids.tolist()]
        assert [names.name(i) for i in others.ids.tolist()] == buckets
        assert names.names() == list(
            dict.fromkeys(bucket(name, bits) for name in known.names())
        )  # ids by first occurrence
        assert np.array_equal(others.position_ptr, features.position_ptr)
        assert len(names) <= 2**bits
    again = hashed.encode(X, n_threads)
    assert np.array_equal(again.states.ids, found.states.ids)
    copy = pickle.loads(pickle.dumps(hashed))
    assert np.array_equal(copy.encode(X, n_threads).states.ids, found.states.ids)
    assert np.array_equal(hashed.extend_encode(X, n_threads).states.ids, found.states.ids)


Y = [[f"L{len(word) % 2}{word[-1] < '4'}" for word, _ in rows] for rows in ROWS]


def test_a_model_of_buckets(tmp_path: Path) -> None:
    crf = crfkit.CRF(features=TEMPLATE, hash_bits=6).fit(ROWS, Y)
    few = crfkit.CRF(features=TEMPLATE, hash_bits=1).fit(ROWS, Y)
    assert len(crf.encoder_.vocabulary) <= 64
    assert few.n_features_ <= 2 * 2
    path = tmp_path / "model.crf"
    crf.save(path)
    loaded = crfkit.load(path)
    assert loaded.hash_bits == 6
    new = [[("never", "seen"), ("w3", "c1")]]
    assert np.array_equal(loaded.predict_marginals(new)[0], crf.predict_marginals(new)[0])
    assert loaded.predict(ROWS) == crf.predict(ROWS)
    heaviest = crfkit.models.heaviest_features(loaded, crf.classes_[0], 3)
    assert all(weight.feature.startswith("h6:") for weight in heaviest)
    copy = pickle.loads(pickle.dumps(crf))
    assert np.array_equal(copy.predict_marginals(new)[0], crf.predict_marginals(new)[0])
    more = crfkit.CRF(features=TEMPLATE, hash_bits=6).fit(ROWS[:50], Y[:50]).partial_fit(ROWS, Y)
    assert set(more.encoder_.vocabulary.names()) == set(crf.encoder_.vocabulary.names())
    sparse = crfkit.CRF(features=TEMPLATE, hash_bits=6, l1=3.0).fit(ROWS, Y)
    sparse.save(path)
    assert crfkit.load(path).predict(ROWS) == sparse.predict(ROWS)


def test_it_is_the_model_of_features_that_are_buckets() -> None:
    """With names of buckets as features, the weights have the same bits."""
    X = [[[f"w={word}", f"c={column}"] for word, column in rows] for rows in ROWS]
    buckets = [[[bucket(name, 4) for name in position] for position in sequence] for sequence in X]
    hashed = crfkit.CRF(hash_bits=4).fit(X, Y)
    plain = crfkit.CRF().fit(buckets, Y)
    assert np.array_equal(hashed.weights_, plain.weights_)
    assert hashed.predict(X) == plain.predict(buckets)


def test_data_sets_have_buckets(tmp_path: Path) -> None:
    options: dict[str, Any] = {"features": Template.parse(TEMPLATE), "shard_size": 120, "hash_bits": 7}
    data = encode_pairs(iter(zip(ROWS, Y, strict=True)), tmp_path / "d", **options)
    assert data.n_features <= 128
    assert data.settings["hash_bits"] == 7
    crf = crfkit.CRF(l2=0.5).fit(data)
    alone = crfkit.CRF(features=TEMPLATE, l2=0.5, hash_bits=7).fit(ROWS, Y, shard_size=120)
    assert np.array_equal(crf.weights_, alone.weights_)
    stream = crfkit.CRF(features=TEMPLATE, l2=0.5, hash_bits=7)
    stream.fit(iter(zip(ROWS, Y, strict=True)), shard_size=120)
    assert np.array_equal(stream.weights_, alone.weights_)
    crf.save(tmp_path / "m")
    assert crfkit.load(tmp_path / "m").predict(ROWS) == alone.predict(ROWS)
    with pytest.raises(ArgumentError, match=r"hash_bits=7, the model has hash_bits=8"):
        crfkit.CRF(hash_bits=8).fit(data)
    file = tmp_path / "data.txt"
    file.write_bytes(FILE)
    plain = encode_files([file], tmp_path / "plain", features="pos")
    assert "hash_bits" not in plain.settings
    with pytest.raises(ArgumentError, match=r"hash_bits=None"):
        crfkit.CRF(hash_bits=8).fit(plain)
    read_arrays(data.files.shard(0), check=True)


@pytest.mark.parametrize("bits", [0, 31, 2.5, True, "many"])
def test_bad_numbers_of_bits(bits: Any, tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match=r"hash_bits is .* from 1 to 30"):
        crfkit.CRF(hash_bits=bits).fit([[["a"]]], [["A"]])
    with pytest.raises(ArgumentError, match=r"hash_bits is .* from 1 to 30"):
        encode_pairs([([["a"]], ["A"])], tmp_path / "d", hash_bits=bits)
    assert not (tmp_path / "d").exists()


def test_numbers_of_numpy(tmp_path: Path) -> None:
    """They are whole numbers like others, in files too."""
    X, y = [[["a"], ["b"]], [["a"]]], [["A", "B"], ["A"]]
    crfkit.CRF(hash_bits=np.int64(8)).fit(X, y).save(tmp_path / "m")  # type: ignore[arg-type]
    assert crfkit.load(tmp_path / "m").hash_bits == 8
    numbers: Any = {"hash_bits": np.int64(8), "min_count": np.int32(2), "shard_size": np.int64(1)}
    found = encode_pairs(zip(X, y, strict=True), tmp_path / "d", **numbers)
    assert found.n_shards == 2
    assert found.settings["hash_bits"] == 8


@pytest.mark.parametrize("name", ["min_count", "shard_size"])
@pytest.mark.parametrize("number", [0, 1.5, True, "many"])
def test_bad_counts(name: str, number: Any, tmp_path: Path) -> None:
    given: Any = {name: number}
    with pytest.raises(ArgumentError, match=f"{name} is .* at least 1"):
        encode_pairs([([["a"]], ["A"])], tmp_path / "d", **given)
    assert not (tmp_path / "d").exists()


def test_what_needs_names_is_refused(tmp_path: Path) -> None:
    X, y = [[["w=a"], ["w=b"]]], [["A", "B"]]
    with pytest.raises(ArgumentError, match=r"block 'w'.*with hash_bits, features have no blocks"):
        crfkit.CRF(hash_bits=8, l2={"w": 2.0}).fit(X, y)
    crfkit.CRF(hash_bits=8, l2={"transitions": 2.0}).fit(X, y)
    with pytest.raises(UnsupportedError, match=r"hash_bits .* not about crfkit.Segments"):
        crfkit.CRF(crfkit.Segments(), hash_bits=8).fit(X, y)
    functions = crfkit.FeatureFunctions([lambda x, before, label, i: 1.0])
    with pytest.raises(UnsupportedError, match=r"hash_bits .* not about feature functions"):
        crfkit.CRF(features=functions, hash_bits=8).fit(X, y)
    crf = crfkit.CRF(crfkit.Chain(start=False, end=False), hash_bits=8).fit(X, y)
    with pytest.raises(UnsavableError, match="hashed features"):
        write_crfsuite(crf, tmp_path / "m")
    other = crfkit.CRF(crfkit.Chain(start=False, end=False), hash_bits=9).fit(X, y)
    with pytest.raises(UnsupportedError, match="models of the same features"):
        crfkit.models.average_models([crf, other])


def test_a_file_with_impossible_bits(tmp_path: Path) -> None:
    crf = crfkit.CRF(hash_bits=8).fit([[["a"], ["b"]]], [["A", "B"]])
    crf.encoder_.hash_bits = 99
    crf.save(tmp_path / "m")
    with pytest.raises(FileFormatError, match=r"hash_bits is 99"):
        crfkit.load(tmp_path / "m")
