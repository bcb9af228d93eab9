"""Hostile model files of CRF++ and Wapiti: whatever the bytes, there is a model that answers, or an InputError.

Half of the mutants are damaged anywhere. The other half have numbers, names or lines changed and counts repaired where the
form allows it, so that the checks behind them are reached.
"""

from __future__ import annotations

import random
import re
import resource
from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest

from crfkit import CRF, InputError
from crfkit.compat.crfpp_file import parse_crfpp
from crfkit.compat.wapiti_file import parse_wapiti
from tests.compat.crfpp_binaries import binary_of
from tests.compat.test_crfsuite_fuzz import damaged
from tests.compat.test_other_models import crfpp_model, wapiti_model

NUMBERS = [
    b"0",
    b"1",
    b"2",
    b"-1",
    b"999999999",
    b"18446744073709551615",
    b"1e400",
    b"nan",
    b"0x1p+9999",
    b"",
]
NUMBER = re.compile(rb"[-0-9.]+")


def changed(data: bytes, r: random.Random) -> bytes:
    """One number, or one line, is another one."""
    if r.random() < 0.5:
        found = r.choice(list(NUMBER.finditer(data)))
        return data[: found.start()] + r.choice(NUMBERS) + data[found.end() :]
    lines = data.split(b"\n")
    at = r.randrange(len(lines))
    kind = r.randrange(4)
    if kind == 0:
        del lines[at]
    elif kind == 1:
        lines.insert(at, lines[r.randrange(len(lines))])
    elif kind == 2:
        lines[at] = lines[r.randrange(len(lines))]
    else:
        lines[at] = lines[at][:2] + r.randbytes(3) + lines[at][2:]
    return b"\n".join(lines)


def changed_numbers(data: bytes, r: random.Random) -> bytes:
    """Some 32-bit numbers of a binary file are others: small ones, those of other places, or any."""
    mutant = bytearray(data)
    for _ in range(r.choice([1, 1, 2, 8])):
        at = 4 * r.randrange(2, len(data) // 4)
        other = 4 * r.randrange(2, len(data) // 4)
        mutant[at : at + 4] = r.choice(
            [r.randrange(300).to_bytes(4, "little"), data[other : other + 4], r.randbytes(4), b"\xff" * 4]
        )
    return bytes(mutant)


def crfpp_of(data: bytes) -> CRF:
    return parse_crfpp(data, "mutant")


def wapiti_of(data: bytes) -> CRF:
    return parse_wapiti(data, "mutant")


def repaired_wapiti(data: bytes) -> bytes:
    """The same with as many weights as it has lines of them, and with lengths that are right."""
    n_weights = len(re.findall(rb"\n[0-9]+=", data))
    data = re.sub(rb"\A#mdl#([12])#[0-9]+", rb"#mdl#\1#%d" % n_weights, data)
    return re.sub(rb"\n[0-9]+:([^\n]*),(?=\n)", lambda found: b"\n%d:%s," % (len(found[1]), found[1]), data)


def repaired_crfpp(data: bytes) -> bytes:
    n_weights = len(data.rpartition(b"\n\n")[2].split())
    return re.sub(rb"maxid: [0-9]+", b"maxid: %d" % n_weights, data)


def ask(read: Callable[[bytes], CRF], data: bytes) -> str:
    """What became of a file."""
    try:
        model = read(data)
    except InputError as error:
        named = re.match(
            "mutant: not a usable (model of Wapiti|(text |binary )?model of CRF\\+\\+): ", str(error)
        )
        return "refused" if named else f"refused with {error!r}"
    rows = [tuple(["Dog", "N", *["x"] * 50][: model.n_columns_]) for _ in range(3)]
    if any(len(row) != model.n_columns_ for row in rows):
        return "read"
    assert len(model.predict([rows])[0]) == 3
    return "answered"


def check_mutants(kind: str, n: int, seed: int) -> Counter[str]:
    r, rng = random.Random(seed), np.random.default_rng(seed)
    if kind == "wapiti":
        original, read, repaired = wapiti_model(rng, f"#mdl#{seed % 2 + 1}#")[0], wapiti_of, repaired_wapiti
    elif kind == "binary":
        original, read = binary_of(crfpp_model(rng)[0]), crfpp_of
    else:
        original, read, repaired = crfpp_model(rng)[0].encode(), crfpp_of, repaired_crfpp
    assert ask(read, original) == "answered"
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    answers: Counter[str] = Counter()
    for i in range(n):
        if kind == "binary":
            mutant = changed_numbers(original, r) if i % 2 else damaged(original, r)
        else:
            mutant = repaired(changed(original, r)) if i % 2 else damaged(original, r)
        answers[ask(read, mutant)] += 1
    assert answers.keys() <= {"answered", "read", "refused"}
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    assert grown < 20 * len(original) + 2**24
    return answers


@pytest.mark.parametrize("kind", ["crf++", "binary", "wapiti"])
def test_mutants_answer_or_are_refused(kind: str) -> None:
    answers = check_mutants(kind, 600, 1)
    assert answers["refused"] > 100
    assert answers["answered"] > 50


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["crf++", "binary", "wapiti"])
def test_a_hundred_thousand_mutants(kind: str) -> None:
    assert check_mutants(kind, 100_000, 2)["answered"] > 5_000
