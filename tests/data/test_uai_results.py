"""UAI files of results."""

from __future__ import annotations

import io
import math
import re

import numpy as np
import pytest

from crfkit.data import UAIResult, read_uai_result, write_uai_result
from crfkit.errors import ArgumentError, FileFormatError


def read(text: str) -> UAIResult:
    return read_uai_result(io.BytesIO(text.encode()))


def rows(result: UAIResult) -> list[list[float]]:
    assert result.marginals is not None
    return [row.tolist() for row in result.marginals]


def test_the_partition_function_is_a_logarithm_to_base_10() -> None:
    stream = io.StringIO()
    write_uai_result(stream, log_partition=math.log(1e-3))
    assert re.fullmatch(r"PR\n-(3\.0|2\.9999999999999996)\n", stream.getvalue())
    assert read(stream.getvalue()).log_partition == pytest.approx(math.log(1e-3), abs=1e-15)
    write_uai_result(stream, log_partition=-math.inf)
    assert read("PR\n-inf\n").log_partition == -math.inf


def test_marginals() -> None:
    stream = io.StringIO()
    numbers = np.random.default_rng(0).dirichlet(np.ones(5), size=20)
    write_uai_result(stream, marginals={str(v): row for v, row in enumerate(numbers)})
    assert stream.getvalue().startswith("MAR\n20 5 0.")
    assert rows(read(stream.getvalue())) == numbers.tolist()


def test_values() -> None:
    stream = io.StringIO()
    write_uai_result(stream, values=np.array([0, 2, 1]))
    assert stream.getvalue() == "MPE\n3 0 2 1\n"
    values = read(stream.getvalue()).values
    assert values is not None
    assert values.tolist() == [0, 2, 1]


def test_one_task_at_a_time() -> None:
    with pytest.raises(ArgumentError, match="exactly one"):
        write_uai_result(io.StringIO(), values=[0], log_partition=1.0)
    with pytest.raises(ArgumentError, match="exactly one"):
        write_uai_result(io.StringIO())


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("MAR\n1\n2 2 0.1 0.9 1 1", "MAR 2 2 0.1 0.9 1 1"),
        ("MAR 1 1 2 0.5 0.5", "MAR 1 2 0.5 0.5"),
        ("MAR 1 1 1 1", "MAR 1 1 1"),
        ("MAR\n1 1 0.5\n-BEGIN-\n2 2 0.1 0.9 1 1", "MAR 2 2 0.1 0.9 1 1"),
    ],
)
def test_forms_of_marginals(text: str, plain: str) -> None:
    assert rows(read(text)) == rows(read(plain))


@pytest.mark.parametrize("text", ["MPE 2 1 0", "MPE 1 2 1 0", "MAP\n2 1 0", "MPE 2 5 5 -BEGIN- 2 1 0"])
def test_forms_of_values(text: str) -> None:
    values = read(text).values
    assert values is not None
    assert values.tolist() == [1, 0]


@pytest.mark.parametrize("text", ["PR -2", "PR\n1\n-2", "PR -1 -BEGIN- -2.0"])
def test_forms_of_the_partition_function(text: str) -> None:
    assert read(text).log_partition == pytest.approx(-2 * math.log(10))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "begins with '', expected one of PR, MAR, MPE, MAP"),
        ("PR", "the file ends too early: expected log10 Z"),
        ("PR nan", "got 'nan', expected log10 Z"),
        ("PR 2 -1", "the file has 2 samples, expected 1"),
        ("MAR 2 1 2 0.5 0.5", "the file has 2 samples, expected 1"),
        ("MAR 1000000000000 2 0.5", "1,000,000,000,000 variables do not fit in the 2 numbers"),
        ("MAR 1 1000000000000 0.5 0.5", "expected 1,000,000,000,000 probabilities of variable 0"),
        ("MAR 1 2 0.5 1.5", "variable 0: got '1.5', expected a probability of 0 … 1"),
        ("MPE 3 0 1", "expected the values of 3 variables"),
        ("MPE 2 0 -1", "got '-1'"),
        ("MPE 2 0 1 7 7", "expected the end of the file"),
    ],
)
def test_malformed_results(text: str, message: str) -> None:
    with pytest.raises(FileFormatError, match=re.escape(message)):
        read(text)
