"""Hostile model files of CRFsuite: whatever the bytes, there is a model that answers, or an InputError.

Half of the mutants are damaged anywhere. The other half have their numbers changed field by field, with magic and
sizes repaired, so that the checks behind them are reached.
"""

from __future__ import annotations

import random
import resource
import struct
from collections import Counter

import numpy as np
import pytest

from crfkit import CRF, LBFGS, Chain, InputError, _core
from crfkit.compat import crfsuite_bytes, pycrfsuite
from crfkit.compat.crfsuite_file import CrfsuiteModel
from crfkit.errors import FileFormatError
from crfkit.features import FeatureMap, Vocabulary
from tests.compat.test_crfsuite_file import random_corpus


@pytest.fixture(scope="module")
def original() -> bytes:
    sequences, labels = random_corpus(11, 12, 25)
    crf = CRF(Chain(start=False, end=False), optimizer=LBFGS(max_iterations=4)).fit(sequences, labels)
    return crfsuite_bytes(crf)


def damaged(data: bytes, r: random.Random) -> bytes:
    out = bytearray(data)
    kind = r.randrange(5)
    if kind == 0:
        for _ in range(r.choice([1, 1, 2, 8, 64])):
            out[r.randrange(len(out))] ^= 1 << r.randrange(8)
    elif kind == 1:
        return data[: r.randrange(len(data))]
    elif kind == 2:
        at = r.randrange(len(out))
        out[at : at + r.randrange(1, 60)] = r.randbytes(r.randrange(60))
    elif kind == 3:
        at = r.randrange(len(out))
        out[at : at + 4] = r.choice([bytes(4), b"\xff" * 4, b"\0\0\0\x80", b"\xff\xff\xff\x7f"])
    else:
        a, b = sorted(r.randrange(len(out)) for _ in range(2))
        out[a:b] = out[a:b] * 2
    return bytes(out)


def fields(data: bytes) -> list[int]:
    """Where numbers lie that say how many or where."""
    head = list(range(20, 48, 4))
    features, labels, attributes, label_lists, attribute_lists = struct.unpack_from("<5I", data, 28)
    found = [*head, features + 4, features + 8]
    n = struct.unpack_from("<I", data, features + 8)[0]
    found += [features + 12 + 20 * i + 4 * k for i in range(n) for k in range(5)]
    for table in (labels, attributes):
        _, _, _, n, index = struct.unpack_from("<5I", data, table + 4)
        found += [table + 4 * k for k in range(1, 6)] + [table + index + 4 * i for i in range(n)]
        found += [table + at + k for at in struct.unpack_from(f"<{n}I", data, table + index) for k in (0, 4)]
        found += range(table + 24, table + 24 + 2048, 4)  # where its hash tables are
        places = struct.unpack_from("<512I", data, table + 24)
        for at, n_buckets in zip(places[::2], places[1::2], strict=True):
            found += [table + at + 4 * k for k in range(2 * n_buckets)]
    for chunk in (label_lists, attribute_lists):
        found += range(chunk + 4, len(data) - 3 if chunk == attribute_lists else attribute_lists - 3, 4)
    return found


def repaired(data: bytes, r: random.Random, places: list[int]) -> bytes:
    out = bytearray(data)
    for _ in range(r.choice([1, 1, 1, 2, 4])):
        at = r.choice(places)
        (number,) = struct.unpack_from("<I", out, at)
        wanted = r.choice(
            [
                0,
                1,
                number + 1,
                number - 1,
                number * 2,
                len(data),
                len(data) - 4,
                2**31,
                2**32 - 1,
                r.randrange(300),
            ]
        )
        struct.pack_into("<I", out, at, wanted % 2**32)
    struct.pack_into("<4sI4sI", out, 0, b"lCRF", len(out), b"FOMC", 100)
    return bytes(out)


def ask(data: bytes) -> str:
    """What became of a file."""
    tagger = pycrfsuite.Tagger()
    try:
        tagger.open_inmemory(data)
        labels = tagger.tag([["w=1", "w=2"], {"w=3": 0.5}])
        assert 0.0 <= tagger.probability(labels) <= 1.0
        assert 0.0 <= tagger.marginal(labels[0], 0) <= 1.0
        answer = "answered from the file"
    except InputError as error:
        answer = f"refused with {error!r}" if "not a model of CRFsuite: " not in str(error) else "refused"
    except ValueError as error:
        answer = f"refused with {error!r}" if "has no labels" not in str(error) else "refused"
    try:
        model = CrfsuiteModel.from_bytes(data, "mutant")
        labels = model.to_crf().predict([[["w=1", "w=2"], {"w=3": 0.5}]])[0]
    except InputError as error:
        named = str(error).startswith("mutant: not a model of CRFsuite: ")
        return answer if named else f"refused with {error!r}"
    tagger.info()
    return "answered"


def check_mutants(original: bytes, n: int, seed: int) -> Counter[str]:
    r, places = random.Random(seed), fields(original)
    ask(original)  # whatever is needed once is there
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    answers: Counter[str] = Counter()
    for i in range(n):
        answers[ask(repaired(original, r, places) if i % 2 else damaged(original, r))] += 1
    assert answers.keys() <= {"answered", "answered from the file", "refused"}
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    assert grown < 20 * len(original) + 2**24
    return answers


def test_mutated_files_answer_or_are_refused(original: bytes) -> None:
    answers = check_mutants(original, 3000, seed=1)
    assert answers["answered"] > 100
    assert answers["refused"] > 100


@pytest.mark.slow
def test_a_hundred_thousand_mutated_files_answer_or_are_refused(original: bytes) -> None:
    answers = check_mutants(original, 100_000, seed=2)
    assert answers["answered"] > 1000
    assert answers["refused"] > 1000


def test_lists_that_claim_much_take_little(original: bytes) -> None:
    """Every list of attributes points at one long list: it is not followed once for each of them."""
    lists = struct.unpack_from("<5I", original, 28)[4]
    (n,) = struct.unpack_from("<I", original, lists + 8)
    out = bytearray(original)
    for i in range(n):
        struct.pack_into("<I", out, lists + 12 + 4 * i, struct.unpack_from("<I", original, lists + 12)[0])
    with pytest.raises(FileFormatError, match="has a feature of another"):
        CrfsuiteModel.from_bytes(bytes(out))


def test_labels_that_claim_much_are_refused() -> None:
    """A table of all arcs of these labels takes half a gigabyte, and the file has 300 kB."""
    one_pair = (np.array([0, 1], np.int64), np.zeros(1, np.int32))
    none, no_lists = np.zeros(0, np.int32), np.zeros(1, np.int64)
    vocabulary = Vocabulary()
    vocabulary.add("a")
    labels = [str(i) for i in range(8000)]
    layout = FeatureMap(len(labels), *one_pair, {}, none, none, no_lists, none).layout
    data = _core.write_crfsuite(layout, labels, vocabulary, np.ones(1))
    with pytest.raises(FileFormatError, match="1 weights for 8,000 labels, expected at least 62,500"):
        pycrfsuite.Tagger().open_inmemory(data)
