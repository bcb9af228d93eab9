"""Damaged UAI files: whatever the bytes, reading gives what the format has, or an InputError, soon and in little memory."""

from __future__ import annotations

import io
import random
import time
import tracemalloc
from collections import Counter
from typing import Any

import numpy as np
import pytest

from crfkit import InputError
from crfkit.data import read_uai, read_uai_evidence, read_uai_result

MODELS = [
    b"MARKOV\n3\n2 2 3\n2\n2 0 1\n2 1 2\n\n4\n 0.25 1\n 1 0\n\n6\n 1 2 3\n 1e-3 .5 0.125\n",
    b"BAYES 2  2 3  2  1 0  2 0 1  2 0.25 0.75  6 0.5 0.25 0.25 0 1 0",
    b"MARKOV\r\n4\r\n1 2 1 2\r\n3\r\n0\r\n1 3\r\n4 0 1 2 3\r\n1 2.5 # c\r\n2 1 0\r\n4 1 1 0 1\r\n",
]
EVIDENCE = [b"2 1 0 0 1", b"1\n1 1 1\n", b"0"]
RESULTS = [b"PR\n-1.25\n", b"MAR\n2 2 0.5 0.5 3 0.25 0.25 0.5\n", b"MPE\n3 0 1 2\n"]
TOKENS = [
    b"0",
    b"1",
    b"2",
    b"-1",
    b"1e12",
    b"999999999999",
    b"2147483647",
    b"4294967297",
    b"1e400",
    b"nan",
    b"-inf",
    b"0.5",
]
TOKENS += [b"MARKOV", b"#", b"\n", b"\x00", b"\xff\xfe", b"-BEGIN-", b"1e-400", b"+", b".", b"9" * 400]
QUICK, ALL = 300, 10_000
MEMORY = 1 << 22


def mutate(text: bytes, draw: random.Random) -> bytes:
    """Some tokens or bytes replaced, removed, repeated, or the end cut off."""
    for _ in range(draw.choice([1, 1, 1, 2, 4])):
        tokens = text.split(b" ") if draw.random() < 0.5 else text.split()
        place = draw.randrange(len(tokens) or 1)
        kind = draw.randrange(6)
        if kind == 0 and tokens:
            tokens[place] = draw.choice(TOKENS)
            text = b" ".join(tokens)
        elif kind == 1 and tokens:
            del tokens[place]
            text = b" ".join(tokens)
        elif kind == 2:
            tokens.insert(place, draw.choice([*TOKENS, *tokens]))
            text = b" ".join(tokens)
        elif kind == 3:
            text = text[: draw.randrange(len(text) + 1)]
        elif kind == 4 and text:
            at = draw.randrange(len(text))
            text = text[:at] + bytes([draw.randrange(256)]) + text[at + 1 :]
        else:
            text += draw.choice([text, b" 1", b"\n0 0", b"\x1a"])
    return text


def outcome(read: Any, text: bytes, *others: Any) -> str:
    """How reading ends; every other exception than an InputError fails the test."""
    tracemalloc.reset_peak()
    try:
        found = read(io.BytesIO(text), *others)
    except InputError as error:
        return "error" if len(str(error)) < 400 else "long error"
    finally:
        assert tracemalloc.get_traced_memory()[1] < MEMORY, text
    if read is read_uai:
        assert all(not np.isnan(factor.scores).any() for factor in found.factors)
    return "read"


@pytest.mark.parametrize("n", [QUICK, pytest.param(ALL, marks=pytest.mark.slow)])
def test_mutants(n: int) -> None:
    draw = random.Random(19)
    seen: Counter[tuple[str, str]] = Counter()
    slowest = 0.0
    tracemalloc.start()
    for _ in range(n):
        began = time.process_time()
        match draw.randrange(4):
            case 0 | 1:
                seen["model", outcome(read_uai, mutate(draw.choice(MODELS), draw))] += 1
            case 2:
                text = mutate(draw.choice(EVIDENCE), draw)
                seen["evidence", outcome(read_uai_evidence, text)] += 1
                seen["model with evidence", outcome(read_uai, MODELS[0], io.BytesIO(text))] += 1
            case _:
                seen["result", outcome(read_uai_result, mutate(draw.choice(RESULTS), draw))] += 1
        slowest = max(slowest, time.process_time() - began)
    tracemalloc.stop()
    assert slowest < 1
    assert not any(how == "long error" for _, how in seen)
    for kind in ("model", "evidence", "model with evidence", "result"):
        assert seen[kind, "read"]
        assert seen[kind, "error"]
