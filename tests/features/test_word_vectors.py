"""Word vectors: every form of file, written here by hand; dense blocks beside templates."""

from __future__ import annotations

import gzip
import struct
from pathlib import Path

import numpy as np
import pytest

from crfkit import Template, WordVectors
from crfkit.errors import FeatureError, FileFormatError, ShapeError, TemplateError, UnsupportedError
from crfkit.features import Encoder, open_resource

WORDS = ["the", "Rome", "New York", "Łódź", "the"]
MATRIX = np.array([[0.5, -1.0, 2.25], [1, 2, 3], [4, 5, 6], [7, 8, 9.5], [0, 0, 1]], dtype=np.float32)
KNOWN = {"the": [0.5, -1.0, 2.25], "Rome": [1, 2, 3], "Łódź": [7, 8, 9.5]}


def text_of(header: bool) -> str:
    lines = [f"{word} {' '.join(map(str, row))}\n" for word, row in zip(WORDS, MATRIX.tolist(), strict=True)]
    return ("5 3\n" if header else "") + "".join(lines)


def binary_of(newline: bytes) -> bytes:
    rows = (word.encode() + b" " + row.tobytes() + newline for word, row in zip(WORDS, MATRIX, strict=True))
    return b"5 3\n" + b"".join(rows)


@pytest.mark.parametrize("form", ["text", "headless", "gzip", "binary", "binary with newlines"])
def test_files_of_word2vec_and_glove(tmp_path: Path, form: str) -> None:
    path = tmp_path / ("vectors.txt.gz" if form == "gzip" else "vectors")
    words, matrix = WORDS, MATRIX
    if form.startswith("binary"):
        words = [word.replace(" ", "_") for word in WORDS]
        data = binary_of(b"\n" if "newlines" in form else b"").replace(b"New York", b"New_York")
        path.write_bytes(data)
    elif form == "gzip":
        path.write_bytes(gzip.compress(text_of(True).encode()))
    else:
        text = text_of(form == "text")
        path.write_text(text if form == "text" else text.replace("New York", "New_York"), encoding="utf-8")
    vectors = WordVectors.read(path, tmp_path / "mapped")
    assert vectors == WordVectors.load(tmp_path / "mapped")
    assert vectors.size == 3
    assert len(vectors) == 4
    for word, row in KNOWN.items():
        np.testing.assert_array_equal(vectors[word], np.array(row, dtype=np.float32))
    expected = [KNOWN["Łódź"], [0, 0, 0], KNOWN["the"]]
    np.testing.assert_array_equal(vectors.rows(["Łódź", "rome", "the"]), expected)
    assert len(WordVectors.read(path, limit=2)) == 2
    folded = WordVectors.read(path, fold_case=True)
    np.testing.assert_array_equal(folded["rOME"], KNOWN["Rome"])
    with pytest.raises(KeyError):
        vectors["rome"]
    assert words[1] in vectors
    assert not vectors.has_subwords
    assert matrix is MATRIX


def fnv(text: str) -> int:
    """fastText's hash, by signed bytes and 32-bit arithmetic of NumPy."""
    state = np.uint32(2166136261)
    with np.errstate(over="ignore"):
        for byte in np.frombuffer(text.encode(), np.int8):
            state = np.uint32((int(state) ^ int(np.uint32(np.int32(byte).view(np.uint32)))) & 0xFFFFFFFF)
            state = np.uint32(int(state) * 16777619 % 2**32)
    return int(state)


def grams(word: str, shortest: int, longest: int) -> list[str]:
    text = f"<{word}>"
    return [
        text[i : i + n]
        for n in range(shortest, longest + 1)
        for i in range(len(text) - n + 1)
        if not (n == 1 and (i == 0 or i == len(text) - 1))
    ]


def fasttext_file(words: list[str], matrix: np.ndarray, bucket: int, shortest: int, longest: int) -> bytes:
    head = struct.pack("<ii12id", 793712314, 12, 3, 5, 5, 1, 5, 1, 2, 2, bucket, shortest, longest, 100, 1e-4)
    names = struct.pack("<iiiqq", len(words), len(words), 0, 99, -1)
    names += b"".join(word.encode() + b"\0" + struct.pack("<qb", 9, 0) for word in words)
    shape = struct.pack("<?qq", False, *matrix.shape)
    return head + names + shape + matrix.astype("<f4").tobytes()


GLOVE = "the 0.1 -2 3e-2\n1990 1 2 0.5\nNew York 0 0 0\nof -1.5 .25 7\n"


@pytest.mark.parametrize(
    ("name", "text", "kind"),
    [
        ("glove.txt", GLOVE, "word vectors"),
        ("glove.txt", GLOVE.replace("\n", "\r\n"), "word vectors"),
        ("word2vec.txt", "2 2\nthe 0.5 1\nof 1 2\n", "word vectors"),
        ("cities.txt", GLOVE + "Rome\n", "lexicon"),
        ("dates.txt", "May 1 2 1990\nJune 3 4 1991\n", "lexicon"),
        ("versions.txt", "Windows 3.1\nOS 2.0\n", "lexicon"),
        ("ranks.txt", "2 2\nRome\nOslo\n", "lexicon"),
        ("one.txt", "Rome\n", "lexicon"),
        ("headline.txt", "2 2\n", "lexicon"),
        ("few.txt", "4 3\nthe 0.5 1\nof 1.5 2\n", "lexicon"),
    ],
)
def test_a_text_is_known_by_its_first_lines(tmp_path: Path, name: str, text: str, kind: str) -> None:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8", newline="")
    found = open_resource(path)
    assert kind == found.KIND
    if name == "glove.txt":
        assert isinstance(found, WordVectors)
        assert found.rows(["1990", "New York", "Oslo"]).tolist() == [[1, 2, 0.5], [0, 0, 0], [0, 0, 0]]


@pytest.mark.parametrize(("shortest", "longest"), [(1, 2), (3, 6), (0, 0)])
def test_files_of_fasttext_have_subwords(tmp_path: Path, shortest: int, longest: int) -> None:
    words, bucket = ["</s>", "Rom", "Łódź"], 11
    matrix = np.random.default_rng(1).normal(size=(len(words) + bucket, 3)).astype(np.float32)
    path = tmp_path / "model.bin"
    path.write_bytes(fasttext_file(words, matrix, bucket, shortest, longest))
    vectors = WordVectors.read(path)
    assert open_resource(path) == vectors
    for row, word in enumerate(words):
        rows = [row]
        if word != "</s>" and longest:
            rows += [len(words) + fnv(gram) % bucket for gram in grams(word, shortest, longest)]
        np.testing.assert_allclose(vectors[word], matrix[rows].mean(axis=0), rtol=1e-5, atol=1e-6)
    rows = [len(words) + fnv(gram) % bucket for gram in grams("Röm", shortest, longest)] if longest else []
    if longest:
        np.testing.assert_allclose(vectors.rows(["Röm"])[0], matrix[rows].mean(axis=0), rtol=1e-5, atol=1e-6)
    else:
        assert not vectors.has_subwords
        assert not vectors.rows(["Röm"]).any()


def test_damaged_files(tmp_path: Path) -> None:
    path = tmp_path / "model.bin"
    whole = fasttext_file(["a", "b"], np.ones((5, 3)), 3, 2, 3)
    for end in (4, 8, 40, 90, len(whole) - 1):
        path.write_bytes(whole[:end])
        with pytest.raises(FileFormatError):
            WordVectors.read(path)
    path.write_bytes(binary_of(b"")[:-5])
    with pytest.raises(FileFormatError, match="truncated or damaged"):
        WordVectors.read(path)
    path.write_bytes(whole.replace(struct.pack("<?qq", False, 5, 3), struct.pack("<?qq", True, 5, 3)))
    with pytest.raises(UnsupportedError, match="quantized"):
        WordVectors.read(path)
    path.write_text("a 1 2\nb 1\n")
    with pytest.raises(FileFormatError, match=r"model.bin:2: expected a word and 2 numbers"):
        WordVectors.read(path)
    path.write_text("3 2\na 1 2\nb 1 2\n")
    with pytest.raises(FileFormatError, match=r"model.bin: found 2 vectors, expected 3 as in its first line"):
        WordVectors.read(path)
    assert len(WordVectors.read(path, limit=2)) == 2
    path.write_text("2 2\na 1 2\nb 1 nan\n")
    with pytest.raises(FileFormatError, match=r"model.bin:3: a number is not finite"):
        WordVectors.read(path)
    with pytest.raises(ShapeError):
        WordVectors.build({"a": [1, 2], "b": [1]})


def test_dense_blocks_beside_a_template() -> None:
    vectors = WordVectors.build({"a": [1, 2], "b": [3, 4]})
    template = Template.parse(
        "word=%x[0,1]\nhere=%vector[0,0,w]\nbefore=%vector[-1,0,w]\nU2:%vector[2,0,w]\nB"
    ).bind({"w": vectors})
    X = [[("a", "x"), ("b", "y"), ("c", "z")], [("b", "x")], []]
    encoder = Encoder(template)
    dataset = encoder.fit_encode(X)
    assert encoder.vocabulary.names() == ["word=x", "word=y", "word=z"]
    assert encoder.dense_sizes == {"here": 2, "before": 2, "U2": 2}
    np.testing.assert_array_equal(dataset.dense["here"], [[1, 2], [3, 4], [0, 0], [3, 4]])
    np.testing.assert_array_equal(dataset.dense["before"], [[0, 0], [1, 2], [3, 4], [0, 0]])
    np.testing.assert_array_equal(dataset.dense["U2"], [[0, 0], [0, 0], [0, 0], [0, 0]])
    again = encoder.encode(iter([iter(X[0]), X[1]]))
    np.testing.assert_array_equal(again.dense["before"], dataset.dense["before"])
    assert template.n_columns == 2
    assert template.within_columns(1).text.startswith("here=")
    with pytest.raises(FeatureError, match="reads column 1"):
        Encoder(Template.parse("U:%x[0,0]\nv=%vector[0,1,w]").bind({"w": vectors})).fit_encode([["a"]])
    for text in ("a=%vector[0,0,w]%x[0,0]", "B:%vector[0,0,w]", "a=%vector[0,0]", "%x[0,0]%vector[0,0,w]"):
        with pytest.raises(TemplateError):
            Template.parse(text)
    with pytest.raises(FeatureError, match="two blocks named 'a'"):
        Encoder(Template.parse("a=%vector[0,0,w]\na=%vector[1,0,w]").bind({"w": vectors})).fit_encode([["a"]])
