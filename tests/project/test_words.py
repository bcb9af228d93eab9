"""The vocabulary of the project: the words of the field, and none of the words that it has coined before.

A forbidden word is found in names as well as in comments, docstrings, messages and docs: identifiers are split at
underscores and capitals. What a word should be instead stands beside it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("core", "src", "docs", "tests", "benchmarks", "examples")
SUFFIXES = {".py", ".pyi", ".hpp", ".cpp", ".md"}

_NOUNS = "set|run|data|label|sequence|output|file|example|corpus|algorithm|loop|log|sentence|loss"
FORBIDDEN = {  # regular expression of a word or phrase, whole and in lower case → what to write
    r"rooms?": "package, memory, workspace",
    r"doors?": "interface, API",
    r"peaks?": "maximum",
    r"fired|fires|firings?": "active",
    r"book|books": "matcher",
    r"told": "given, an argument of",
    r"carried": "transferred",
    r"lessons?": "training set",
    r"ways": "paths, backends, transitions",
    r"labellings?": "label sequence",
    r"evidence": "allowed labels",
    r"tangents?": "Hessian–vector product",
    r"ado": "overhead",
    r"spoken|spoken of": "reported",
    r"clothes|streets?": "(a metaphor)",
    r"(refused?s?|said|explained|errors|message|told|ends?) in words": "with a clear message",
    r"unless said otherwise|unless told otherwise": "by default",
    r"of now": "current",
    r"sites?": "position",
    rf"a training(?! ({_NOUNS}))": "a training run",
    r"seed 0\d\d": "the paper's name",
}
ALLOWED = {  # (word, path or folder): why it may stand there
    ("book", "benchmarks/reference_"): "a type of entries of bibliographies",
    ("peak", "benchmarks"): "peak memory",
    ("peaks", "benchmarks"): "peak memory",
    ("peak", "docs/benchmarks.md"): "peak memory",
    ("peak", "README.md"): "peak memory",
    ("peak", "tests"): "peak memory",
    ("ways", "benchmarks"): "contenders of a comparison",
    ("tangent", "benchmarks/workloads.py"): "the name of a function of an earlier build",
    ("a training", "core/bindings"): "nanobind's suffix _a",
    **{
        ("evidence", place): "the name of a file format, and of what it holds"
        for place in (
            "src/crfkit/data/__init__.py",
            "src/crfkit/data/uai",
            "src/crfkit/cli/infer.py",
            "tests/data/test_uai",
            "tests/cli/test_infer.py",
            "tests/benchmarks/test_factor_graphs.py",
            "benchmarks/factor_graphs.py",
            "benchmarks/rival_pgmax.py",
            "benchmarks/belief_propagation.py",
            "benchmarks/graph_contenders.py",
            "docs/factor-graphs.md",
            "docs/reference/data.md",
            "docs/command-line.md",
            "docs/architecture.md",
            "README.md",
        )
    },
    ("book", "src/crfkit/cli/demo_data"): "a sentence of sample data",
    ("street", "docs/addresses.md"): "a part of an address",
    ("street", "benchmarks/rival_usaddress.py"): "a list of usaddress",
    ("street", "tests/benchmarks/test_addresses.py"): "a list of usaddress",
    **{
        ("site", place): "pages for a browser, and the command that builds them"
        for place in ("tests/project/test_site.py", "CONTRIBUTING.md", "README.md", "docs/architecture.md")
    },
}
PRESENT = {  # the standard names of the algorithms, where these are implemented
    "core/chain/evaluator.hpp": ["forward–backward"],
    "core/chain/viterbi.hpp": ["Viterbi"],
    "core/kernels/chain_kernels.hpp": ["forward–backward", "Viterbi"],
    "core/paths/engine.hpp": ["forward–backward", "partition function"],
    "core/paths/forward.hpp": ["forward–backward"],
    "core/paths/viterbi.hpp": ["Viterbi"],
    "src/crfkit/inference/questions.py": ["partition function", "Viterbi"],
    "src/crfkit/nn/backends/torch_chain.py": ["forward–backward", "Viterbi"],
    "docs/inference.md": ["partition function", "Viterbi", "forward–backward"],
}
NOT_READ = ("tests/project/test_words.py", "tests/models/old_files")

_PATTERN = re.compile("|".join(rf"\b(?:{word})\b" for word in FORBIDDEN))
_IDENTIFIER = re.compile(r"[_\W]+|(?<=[a-z0-9])(?=[A-Z])")


def words_of(line: str) -> str:
    """A line in lower case, with its identifiers split into words.

    >>> words_of("int n_peaks = BookState(x);")
    'int n peaks book state x '
    """
    return _IDENTIFIER.sub(" ", line).lower()


def coined(lines: Iterable[str], path: str) -> Iterator[str]:
    """`path:line: word` for every word that must not stand there."""
    for number, line in enumerate(lines, 1):
        for found in _PATTERN.finditer(words_of(line)):
            if not any(word == found[0] and path.startswith(place) for word, place in ALLOWED):
                yield f"{path}:{number}: {found[0]}"


def files() -> Iterator[Path]:
    """The source and documentation files of the project."""
    yield from (ROOT / name for name in ("README.md", "CONTRIBUTING.md"))
    for folder in FOLDERS:
        yield from (file for file in sorted((ROOT / folder).rglob("*")) if file.suffix in SUFFIXES)


def test_no_coined_words() -> None:
    found: list[str] = []
    for file in files():
        path = file.relative_to(ROOT).as_posix()
        if not path.startswith(NOT_READ):
            found += coined(file.read_text(encoding="utf-8").splitlines(), path)
    assert found == []


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("double arc_peak_ = 0;", "peak"),
        ("class BookWriter:", "book"),
        ('"""Errors are explained in words."""', "explained in words"),
        ("# the options of a training, and more", "a training"),
    ],
)
def test_coined_words_are_found(line: str, word: str) -> None:
    assert list(coined([line], "src/x.py")) == [f"src/x.py:1: {word}"]


@pytest.mark.parametrize("line", ["the notebook", "a training set", "for word in words", "always"])
def test_other_words_are_not(line: str) -> None:
    assert list(coined([line], "src/x.py")) == []


@pytest.mark.parametrize("path", PRESENT)
def test_algorithms_have_their_names(path: str) -> None:
    text = (ROOT / path).read_text(encoding="utf-8").lower()
    assert [name for name in PRESENT[path] if name.lower() not in text] == []
