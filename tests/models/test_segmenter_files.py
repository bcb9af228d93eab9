"""Hostile files of word segmenters and of models of word lattices: a model that answers, or an InputError; nothing runs."""

from __future__ import annotations

import random
import re
import zlib
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from crfkit import CRF, LBFGS, InputError, Lattice, WordDictionary, WordLattice, WordSegmenter
from crfkit.errors import FileFormatError, UnsavableError
from crfkit.models.files import segmenter_file
from crfkit.models.files.loading import from_bytes
from crfkit.models.files.model_file import ModelFile, decode, encode
from crfkit.optimizers import History
from tests.models.test_model_fuzz import (
    DAMAGE,
    change_names,
    change_numbers,
    change_setting,
    change_shape,
    change_type,
    many_labels,
)

TEXTS = ["thecat 9", "", "a,bÄ漢"]
LATTICES = [
    WordLattice(2, [(0, 1, "X", ["a"]), (1, 2, "Y", {"a": 0.5}), (0, 2, ("Z", 1), [])]),
    WordLattice(0, []),
]
REWRITING = "[left rewrite]\n(D|N),*\t$1,$2\n*\t$1\n"


def without_times(crf: CRF[Any]) -> CRF[Any]:
    crf.history_ = History(record._replace(seconds=0.0) for record in crf.history_)
    return crf


@pytest.fixture(scope="module")
def originals() -> list[bytes]:
    few = LBFGS(max_iterations=5)
    words = [("the", "D,x"), ("cat", "N"), ("a,b", 'N,"q"')]
    plain = WordDictionary.build(words, ["N", "V,z"])
    rewritten = WordDictionary.build(words, ["N", "V,z"], rewriting=REWRITING, compared=1)
    files = []
    for dictionary in (plain, rewritten):
        model = WordSegmenter(dictionary, few).fit([[("the", "D,x"), ("cat", "N")], [("a,b", 'N,"q"')]])
        without_times(model.crf_)
        files.append(segmenter_file.to_bytes(model))
    structure = Lattice(["%L[0]/%R[0]", "%L?[1]/%R[0]"], boundary=("E", "*"))
    of_lattices = [
        CRF(lattice, optimizer=few).fit(LATTICES, [[0, 1], []]) for lattice in (Lattice(), structure)
    ]
    return [*files, *(without_times(crf)._to_bytes() for crf in of_lattices)]


def ask(data: bytes) -> str:
    """What became of a file."""
    try:
        model = from_bytes(data, "mutant")
    except InputError as error:
        return "refused" if re.fullmatch("mutant: .+", str(error), re.DOTALL) else f"refused with {error!r}"
    try:
        if isinstance(model, WordSegmenter):
            for text, words in zip(TEXTS, model.predict(TEXTS), strict=True):
                assert [text[word.start : word.end] for word in words] == [word.form for word in words]
            model.predict_nbest(TEXTS, 2)
            model.predict_marginals(TEXTS)
            from_bytes(segmenter_file.to_bytes(model), "again")
        else:
            model.predict(LATTICES)
            model.predict_nbest(LATTICES, 2)
            from_bytes(model._to_bytes(), "again")
    except InputError:
        return "refused later"  # no fields for a word, or another form of input
    return "answered"


def change_texts(file: ModelFile, r: random.Random) -> None:
    """Other words, unknown words or names of weights, with sizes that agree with them, or that do not."""
    kinds = [
        what
        for what in ("lexicon", "unknown", "structure", "state_features")
        if f"{what}.names" in file.arrays
    ]
    what = r.choice(kinds)
    blob = bytearray(zlib.decompress(file.arrays[f"{what}.names"].tobytes()))
    match r.randrange(4):
        case 0:
            for _ in range(r.choice([1, 5])):
                blob[r.randrange(len(blob))] = r.choice([0, 0x0A, 0x0D, 0x22, 0x2C, 0x80, 0xC3, 0xFF])
        case 1:
            blob += r.choice([b"\0", b'"' * 7, b"," * 1000, b'"' + b"x" * 200_000])
            lengths = file.arrays[f"{what}.lengths"].astype(np.uint32)
            lengths[-1] += len(blob) - file.settings["bytes"][what]
            file.arrays[f"{what}.lengths"] = lengths
            file.settings["bytes"][what] = len(blob)
        case 2:
            file.settings["bytes"][what] = r.choice([0, -1, 1, 2**40, 10**30, len(blob) + 1])
        case _:
            lengths = file.arrays[f"{what}.lengths"].copy()
            lengths[0], lengths[1:2] = lengths[0] + lengths[1:2].sum(), 0
            file.arrays[f"{what}.lengths"] = lengths
    file.arrays[f"{what}.names"] = np.frombuffer(zlib.compress(bytes(blob)), np.uint8)


LINES: list[Any] = [
    "", "#", "X", "UNIGRAM", "UNIGRAM %F[999999999999]", "UNIGRAM %", "BIGRAM %L[0", "BIGRAM %L[0]%l%r%R?[3]", "BIGRAM %x",
    "DEFAULT 1 1 99999999999", "SPACE 1 1 1", "NEW 0 0 0", "0x0..0xFFFE SPACE", "0x61..0x60 ALPHA", "0x61 NONE",
    "DEFAULT -1 -1 -1", "0x61", "[left rewrite]", "[x rewrite]", "*\t$9", "*\t$0", "(\t(", '"\t"', "*,*,*,*\t$1", 5,
    None, [],
]  # fmt: skip


def change_lines(file: ModelFile, r: random.Random) -> None:
    """Another line of a definition, one more or one less; other numbers beside them."""
    found = file.settings.get("dictionary") or file.settings["parameters"]["structure"]["lattice"]
    lists = [value for value in found.values() if isinstance(value, list) and value]
    if not lists or r.random() < 0.2:
        found[r.choice(list(found))] = r.choice([None, -1, 0, 1, 2**70, True, "x", [], [[]], {}, 0.5])
        return
    lines = r.choice(lists)
    at = r.randrange(len(lines))
    match r.randrange(3):
        case 0:
            del lines[at]
        case 1:
            lines.insert(at, r.choice(LINES))
        case _:
            lines[at] = r.choice(LINES)


CHANGES: list[Callable[[ModelFile, random.Random], None]] = [
    change_texts, change_texts, change_lines, change_lines, change_numbers, change_type, change_shape, change_names,
    change_setting, many_labels,
]  # fmt: skip


def fuzz(originals: list[bytes], seed: int, n: int) -> Counter[str]:
    r = random.Random(seed)
    outcomes: Counter[str] = Counter()
    for i in range(n):
        data = originals[i // 2 % len(originals)]
        if i % 2:
            file = decode(data)
            file = file._replace(arrays=dict(sorted(file.arrays.items())))  # in the same order every time
            r.choice(CHANGES)(file, r)
            outcomes[f"consistent: {ask(encode(file))}"] += 1
        else:
            outcomes[f"damaged: {ask(r.choice(DAMAGE)(data, r))}"] += 1
    return outcomes


@pytest.mark.filterwarnings("error", "ignore:the iteration limit ended")
def test_any_bytes_give_a_model_or_a_complaint(originals: list[bytes]) -> None:
    assert [ask(data) for data in originals] == ["answered"] * len(originals)
    outcomes = fuzz(originals, seed=0, n=1200)
    assert not [outcome for outcome in outcomes if "with" in outcome], outcomes
    for kind in ("damaged: refused", "damaged: answered", "consistent: refused", "consistent: answered"):
        assert outcomes[kind] > 15, outcomes


@pytest.mark.slow
def test_any_bytes_give_a_model_or_a_complaint_for_longer(originals: list[bytes]) -> None:
    for seed in range(1, 6):
        assert not [outcome for outcome in fuzz(originals, seed, 3000) if "with" in outcome]


def test_a_file_without_any_one_of_its_settings(originals: list[bytes]) -> None:
    for data in originals:
        for path in ((), ("parameters",), ("dictionary",)):
            for name in list(at(decode(data).settings, path)):
                file = decode(data)
                del at(file.settings, path)[name]
                assert ask(encode(file)) in ("refused", "answered"), name


def at(settings: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        settings = settings.get(name, {})
    return settings


def test_what_no_file_can_hold() -> None:
    dictionary = WordDictionary.build([("the", "D")], ["N"])
    with pytest.raises(UnsavableError, match="not trained"):
        segmenter_file.to_bytes(WordSegmenter(dictionary))
    with pytest.raises(UnsavableError, match="write_mecab"):
        segmenter_file.to_bytes(WordSegmenter(dictionary).fit([[("the", "D")]]).with_costs())


def test_the_crf_of_another_dictionary(originals: list[bytes]) -> None:
    file, other = decode(originals[0]), decode(originals[2])
    with pytest.raises(FileFormatError, match="templates"):
        from_bytes(
            encode(
                ModelFile(
                    file.type,
                    {
                        **other.settings,
                        "dictionary": file.settings["dictionary"],
                        "bytes": {**file.settings["bytes"], **other.settings["bytes"]},
                    },
                    {**file.arrays, **other.arrays},
                )
            ),
            "m",
        )
