"""UAI files: models, evidence and results, as the competitions wrote them, damaged ones too."""

from __future__ import annotations

import gzip
import io
import lzma
import math
import re
import tarfile
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from benchmarks.corpora import find_corpus

from crfkit import FactorGraph
from crfkit.data import read_uai, read_uai_evidence, write_uai
from crfkit.errors import (
    ArgumentError,
    FileFormatError,
    LabelError,
    MissingFileError,
    UnsavableError,
    UnwritableFileError,
)
from tests.oracles.factor_graphs import SHAPES, Graph, GraphOracle, draw_graph

SMALL = b"MARKOV\n3\n2 2 3\n2\n2 0 1\n2 1 2\n\n4\n 0.25 1\n 1 0\n\n6\n 1 2 3\n 1e-3 .5 0.125\n"
NETWORK = b"BAYES 2  2 3  2  1 0  2 0 1  2 0.25 0.75  6 0.5 0.25 0.25 0 1 0"


def read(text: bytes | str, evidence: bytes | dict[int, int] | None = None) -> FactorGraph:
    given = io.BytesIO(evidence) if isinstance(evidence, bytes) else evidence
    return read_uai(io.BytesIO(text.encode() if isinstance(text, str) else text), given)


def written(graph: FactorGraph, kind: str = "MARKOV") -> str:
    stream = io.StringIO()
    write_uai(graph, stream, kind)
    return stream.getvalue()


def plain(graph: FactorGraph) -> Graph:
    """A graph of tables as the oracle takes it."""
    return [len(v) for v in graph.variables], [(f.variables, f.scores) for f in graph.factors]


def same(one: FactorGraph, other: FactorGraph) -> bool:
    """Whether the variables, their values and the scores are the same, to the last bit."""
    if [len(v) for v in one.variables] != [len(v) for v in other.variables]:
        return False
    return len(one.factors) == len(other.factors) and all(
        a.variables == b.variables and np.array_equal(a.scores, b.scores)
        for a, b in zip(one.factors, other.factors, strict=True)
    )


# ---- models


def test_a_markov_network() -> None:
    graph = read(SMALL)
    assert [(v.name, len(v)) for v in graph.variables] == [("0", 2), ("1", 2), ("2", 3)]
    first, second = graph.factors
    assert first.variables == (0, 1)
    assert second.variables == (1, 2)
    assert first.scores.tolist() == [[math.log(0.25), 0], [0, -math.inf]]
    assert np.exp(second.scores).round(15).tolist() == [[1, 2, 3], [0.001, 0.5, 0.125]]


def test_a_bayesian_network() -> None:
    oracle = GraphOracle(plain(read(NETWORK)))
    assert oracle.log_partition == pytest.approx(0, abs=1e-15)
    assert oracle.of_variables[1] == pytest.approx([0.125, 0.8125, 0.0625])


@pytest.mark.parametrize(
    "text",
    [
        SMALL.replace(b"\n", b"\r\n"),
        b"\xef\xbb\xbf" + SMALL,
        b"# a comment\n" + SMALL.replace(b"\n2 0 1", b" # two factors: 7\n2 0 1") + b"# the end",
        SMALL.replace(b"\n", b"\t \x0b\x0c "),
        SMALL.replace(b"MARKOV", b"markov"),
        b"\n \n" + SMALL.rstrip(),
    ],
)
def test_white_space_and_comments(text: bytes) -> None:
    assert same(read(text), read(SMALL))


def test_packed_files(tmp_path: Path) -> None:
    (tmp_path / "m.uai.xz").write_bytes(lzma.compress(SMALL))
    (tmp_path / "m.uai.gz").write_bytes(gzip.compress(SMALL))
    (tmp_path / "m.evid.gz").write_bytes(gzip.compress(b"1 2 0"))
    assert same(read_uai(tmp_path / "m.uai.xz"), read(SMALL))
    assert same(read_uai(str(tmp_path / "m.uai.gz"), tmp_path / "m.evid.gz"), read(SMALL, {2: 0}))
    write_uai(read(SMALL), tmp_path / "n.uai.gz")
    assert same(read_uai(tmp_path / "n.uai.gz"), read(SMALL))
    (tmp_path / "m.uai.gz").write_bytes(gzip.compress(SMALL)[:-9])
    with pytest.raises(FileFormatError, match=r"m\.uai\.gz: the compressed file is damaged"):
        read_uai(tmp_path / "m.uai.gz")
    with pytest.raises(MissingFileError, match="nosuch"):
        read_uai(tmp_path / "nosuch.uai")


def test_constant_factors_and_no_variables() -> None:
    assert GraphOracle(plain(read("MARKOV 0\n\n1\n0\n1 0.5"))).log_partition == pytest.approx(math.log(0.5))
    assert read("MARKOV 0 0").variables == ()


def test_a_factor_of_many_variables_with_one_value() -> None:
    n = 70
    text = f"MARKOV {n + 1} {'1 ' * n} 2 1 {n + 1} {' '.join(map(str, range(n + 1)))} 2 0.5 0.25"
    (factor,) = read(text).factors
    assert factor.variables == (n,)
    assert np.exp(factor.scores).round(15).tolist() == [0.5, 0.25]


WRONG = [  # text, what the message has
    ("", "begins with '', expected BAYES or MARKOV"),
    ("ISING 2", "begins with 'ISING', expected BAYES or MARKOV"),
    ("MARKOV", "the file ends, expected the number of variables"),
    ("MARKOV\n2.5", ":2: got '2.5', expected the number of variables, a whole number"),
    ("MARKOV 1e12 2 2", "expected how many values each of 1,000,000,000,000 variables has"),
    ("MARKOV 1 0 0", "got '0', expected how many values each of 1 variables has"),
    ("MARKOV 2 2 1e12 0", "got '1e12'"),
    ("MARKOV 2 2 2000000000 0", "variables without a factor have 2,000,000,002 values"),
    ("MARKOV 1\n2\n1000000000000\n1 0 2 1 1", ":3: 1,000,000,000,000 factors do not fit in the 5 numbers"),
    (
        "MARKOV 2 2 2 1 3 0 1 1",
        "got '3', expected how many variables factor 0 has, a whole number of at most 2",
    ),
    ("MARKOV 2 2 2 1 2 0 2 4 1 1 1 1", "got '2', expected the variables of factor 0, whole numbers of 0 … 1"),
    ("MARKOV 2 2 2 1 2 1 1 4 1 1 1 1", "factor 0 has the variables [1, 1], expected each of them once"),
    (
        "MARKOV 2 2 2 1 2 0 1 3 1 1 1",
        "the table of factor 0 has 3 numbers, expected 2 × 2 for its 2 variables",
    ),
    ("MARKOV 2 9999999 9999999 1 2 0 1 4 1 1 1 1", "expected 9999999 × 9999999 for its 2 variables"),
    ("MARKOV 1 999999999 1 1 0 999999999 1 1", "ends too early: expected the table"),
    ("MARKOV 1 2 1 1 0 2 1", "expected the table of factor 0, 2 numbers, got 1 numbers"),
    ("MARKOV 1 2 1 1 0\n2 1\n-1", ":3: factor 0 has '-1' in its table, expected a number ≥ 0"),
    ("MARKOV 1 2 1 1 0 2 1 nan", "factor 0 has 'nan' in its table"),
    ("MARKOV 1 2 1 1 0 2 1 1e999", "factor 0 has '1e999' in its table"),
    ("MARKOV 1 2 1 1 0 2 1 1\n7 7", ":2: got '7', expected the end of the file (2 numbers too many)"),
    ("MARKOV 1 2 1 1 0 2 1\n\n1x", ":3: got '1x', expected a number"),
    ("MARKOV 1 2 1 1 0 2 1-1", "got '1-1', expected a number"),
    ("MARKOV 1 2 1 1 0 2 1 1_0", "got '1_0', expected a number"),
    ("MARKOV 1 2 1 1 0 2 1 0x1", "got '0x1', expected a number"),
    ("MARKOV 1 2 1 1 0 2 1 \x00", "expected a number"),
]


@pytest.mark.parametrize(("text", "message"), WRONG)
def test_malformed_models(text: str, message: str) -> None:
    with pytest.raises(FileFormatError, match=re.escape(message)) as caught:
        read(text)
    assert str(caught.value).startswith("<stream>")


def test_no_memory_for_what_the_file_does_not_have() -> None:
    tracemalloc.start()
    for text in [text for text, _ in WRONG if "999" in text or "1e12" in text or "000" in text]:
        with pytest.raises(FileFormatError):
            read(text)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1 << 20


# ---- evidence


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("0", {}),
        ("0\n", {}),
        ("1 0", {}),
        ("2 5 0 7 1", {5: 0, 7: 1}),
        ("1\n2 5 0 7 1\n", {5: 0, 7: 1}),
        ("1 5 0", {5: 0}),
        ("2 5 0 5 0", {5: 0}),
    ],
)
def test_both_forms_of_evidence(text: str, found: dict[int, int]) -> None:
    assert read_uai_evidence(io.BytesIO(text.encode())) == found


def test_evidence_of_neither_form_says_how_it_was_read() -> None:
    with pytest.raises(FileFormatError, match="begins with 2, and 2 numbers follow: 4 would be the observed"):
        read_uai_evidence(io.BytesIO(b"2  3 1"))


def test_several_samples() -> None:
    text = b"3\n1 0 1\n2 0 0 1 1\n0"
    assert [read_uai_evidence(io.BytesIO(text), k) for k in range(3)] == [{0: 1}, {0: 0, 1: 1}, {}]
    with pytest.raises(ArgumentError, match="3 samples, expected an argument"):
        read_uai_evidence(io.BytesIO(text))
    with pytest.raises(ArgumentError, match="got the sample 3, expected 0 … 2"):
        read_uai_evidence(io.BytesIO(text), 3)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the file ends, expected the number of observed variables"),
        ("x", "got 'x', expected a number"),
        ("2 5 0 5 1", "variable 5 has the values 0 and 1, expected one"),
        ("1 5 -1", "got '-1', expected 1 observed variables"),
        ("1 5 0.5", "got '0.5'"),
        ("1e15 5 0 3", "expected 5 observed variables"),
        ("1 1 5 0 9", "expected the end of the file"),
    ],
)
def test_malformed_evidence(text: str, message: str) -> None:
    with pytest.raises(FileFormatError, match=re.escape(message)):
        read_uai_evidence(io.BytesIO(text.encode()))


@pytest.mark.parametrize(("evidence", "message"), [("1 3 0", "no variable 3"), ("1 2 3", "expected 0 … 2")])
def test_evidence_outside_the_model(evidence: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "e.evid").write_text(evidence)
    with pytest.raises(LabelError, match=rf"e\.evid: .*{message}"):
        read_uai(io.BytesIO(SMALL), tmp_path / "e.evid")


@pytest.mark.parametrize("shape", SHAPES)
def test_evidence_restricts_the_model(shape: str) -> None:
    random_state = np.random.default_rng(7)
    for _ in range(10):
        counts, factors = draw_graph(random_state, shape, impossible=0.1)
        graph = FactorGraph.from_arrays(counts, [scope for scope, _ in factors], [t for _, t in factors])
        observed = {
            v: int(random_state.integers(counts[v]))
            for v in range(len(counts))
            if random_state.random() < 0.4
        }
        masks = [
            np.arange(n) == observed[v] if v in observed else np.ones(n, bool) for v, n in enumerate(counts)
        ]
        oracle = GraphOracle((counts, factors), masks)
        found = GraphOracle(plain(read(written(graph), observed)))
        assert found.log_partition == pytest.approx(oracle.log_partition, abs=1e-9)
        if oracle.log_partition > -math.inf:
            for a, b in zip(found.of_variables, oracle.of_variables, strict=True):
                assert a == pytest.approx(b, abs=1e-9)


# ---- writing


@pytest.mark.parametrize("scale", [1.0, 30.0, 200.0])
def test_what_was_read_is_written_to_the_last_bit(scale: float) -> None:
    random_state = np.random.default_rng(3)
    x = np.exp(scale * random_state.uniform(-1, 1, size=(40, 50)))
    x[0, :3] = 5e-324, 1.7976931348623157e308, 0
    text = f"MARKOV 2 40 50 1 2 0 1 2000 {' '.join(map(repr, x.ravel().tolist()))}"
    graph = read(text)
    assert same(read(written(graph)), graph)


def test_numbers_are_written_as_short_as_they_were() -> None:
    numbers = "0.1 0.2 0.30000000000000004 1e-300 1 0 123456.789"
    assert f"\n{numbers}\n" in written(read(f"MARKOV 1 7 1 1 0 7 {numbers}"))


def test_scores_near_zero_are_written_as_close_as_doubles_allow() -> None:
    scores = np.array([1e-17, 1e-10, -3e-12, 0.0])
    (factor,) = read(written(FactorGraph.from_arrays([4], [(0,)], [scores]))).factors
    assert factor.scores == pytest.approx(scores, abs=2.3e-16)


def test_every_kind_of_factor_is_written() -> None:
    graph = FactorGraph()
    a, b, c = graph.variable("a", "xyz"), graph.variable("b", 3), graph.variable("c", "uvw")
    graph.factor([b, a], {(1, "x"): 0.5, (2, "z"): -1.0})
    graph.count([a, b, c], [0.0, 1.0, -math.inf, 2.0])
    graph.equal([c, a])
    graph.factor([], 0.25)
    found = read(written(graph))
    for ids in np.ndindex(3, 3, 3):
        values = np.array(ids, dtype=np.int32)
        for one, other in zip(graph.factors, found.factors, strict=True):
            assert one.variables == other.variables
            assert one.score(values[list(one.variables)]) == pytest.approx(
                other.score(values[list(other.variables)]), abs=1e-15
            )


def test_bayesian_networks_are_written() -> None:
    assert written(read(NETWORK), "BAYES").split() == NETWORK.decode().split()


@pytest.mark.parametrize("score", [800.0, -800.0])
def test_scores_that_no_file_can_hold(score: float, tmp_path: Path) -> None:
    graph = FactorGraph.from_arrays([2], [(0,)], [[0.0, score]])
    with pytest.raises(UnsavableError, match=f"Factor 0: got the score {score}"):
        write_uai(graph, tmp_path / "m.uai")
    assert not (tmp_path / "m.uai").exists()


def test_what_cannot_be_written(tmp_path: Path) -> None:
    graph = read(SMALL)
    with pytest.raises(ArgumentError, match="kind 'ISING'"):
        write_uai(graph, tmp_path / "m.uai", "ISING")
    with pytest.raises(UnsavableError, match="one factor for each of its 3 variables"):
        write_uai(graph, tmp_path / "m.uai", "BAYES")
    with pytest.raises(UnsavableError, match="sum to 3"):
        write_uai(read("MARKOV 1 2 1 1 0 2 1 2"), tmp_path / "m.uai", "BAYES")
    with pytest.raises(UnwritableFileError):
        write_uai(graph, tmp_path / "nosuch" / "m.uai")
    large = FactorGraph.from_arrays([2] * 40, [], [])
    large.at_most_one(range(40))
    with pytest.raises(UnsavableError, match="its table has 1,099,511,627,776 numbers"):
        write_uai(large, tmp_path / "m.uai")


# ---- the instances of the competition of 2014


@pytest.mark.parametrize(
    "name",
    [
        "CSP_12",
        "Pedigree_12",
        *(
            pytest.param(name, marks=pytest.mark.slow)
            for name in ("DBN_12", "Grids_16", "ObjectDetection_12", "Promedus_38", "linkage_26")
        ),
    ],
)
def test_instances_are_written_as_they_were(name: str) -> None:
    path = find_corpus("uai", "uai2014-mar.tar.xz")
    if path is None:
        pytest.skip("the instances are not on this machine")
    with tarfile.open(path) as archive:
        member, observed = archive.extractfile(f"{name}.uai"), archive.extractfile(f"{name}.uai.evid")
        assert member is not None
        assert observed is not None
        text, evidence = member.read(), observed.read()
    graph = read(text)
    assert same(read(written(graph)), graph)
    numbers = [[float(word) for word in copy.split()[1:]] for copy in (text.decode(), written(graph))]
    assert numbers[0] == numbers[1]
    n_observed = len(read_uai_evidence(io.BytesIO(evidence)))
    assert len(read(text, evidence).factors) == len(graph.factors) + n_observed
