"""What people may give that is unusual, but has a meaning: patterns listed twice, long inputs, numbers of NumPy."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import crfkit
from crfkit import CRF, Ngrams, Pattern, Patterns
from crfkit.errors import SizeLimitError, UnsavableError
from crfkit.features import pattern_map
from crfkit.models import trellis_sizes
from crfkit.structures import size_words

Loose: Any = crfkit  # so that arguments of other types can be given

X = [[{"w": w} for w in words] for words in ("abca", "bcab", "cabc", "ab")]
Y = [["B", "I", "E", "O"], ["O", "B", "I", "E"], ["O", "O", "B", "E"], ["B", "E"]]


def fitted(*patterns: Any, **settings: Any) -> CRF:
    return CRF(structure=Patterns(patterns, **settings), l2=0.5, n_threads=1).fit(X, Y)


def first_is_a(x: Sequence[dict[str, str]], t: int) -> bool:
    return x[t]["w"] == "a"


@pytest.mark.parametrize(
    "write",
    [
        lambda blank: Pattern(f"B{blank}I"),
        lambda blank: Pattern(f"B{blank}I* E"),
        lambda blank: Pattern(f"B{blank}I", when=f"w=a{blank}& !w[1]=c"),
        lambda blank: Pattern(f"B{blank}.", when=first_is_a),
        lambda blank: Pattern(f"B{blank}I", weight="mine"),
    ],
)
def test_a_pattern_counts_once_however_often_it_is_listed(write: Callable[[str], Pattern]) -> None:
    once, twice = fitted(write(" ")), fitted(write(" "), write(" "), write("  "))
    assert once.pattern_names_ == twice.pattern_names_
    np.testing.assert_array_equal(once.weights_, twice.weights_)


def test_labels_that_differ_in_blanks_have_patterns_of_their_own() -> None:
    y = [[{"B": "a b", "I": "a  b"}.get(label, label) for label in labels] for labels in Y]
    crf = CRF(structure=Patterns(['"a b" .', '"a  b" .']), n_threads=1).fit(X, y)
    assert crf.pattern_names_ == ['"a b" .', '"a  b" .']


def test_labels_that_are_written_alike_have_no_runs() -> None:
    with pytest.raises(UnsavableError):
        CRF(structure=Patterns([Ngrams(2)]), n_threads=1).fit(X[:1], [[1, 2, "1", 2]])


@pytest.mark.parametrize(
    "patterns",
    [
        {"patterns": [Loose.Ngrams(np.arange(2, 4), min_count=np.int64(1), most={np.int64(2): np.int32(3)})]},
        {"patterns": [Loose.Ngrams(2, most=np.int64(4)), Loose.Affixes(np.int64(2), min_count=np.int64(2))]},
        {"grow": Loose.Growth(order=np.int64(2), min_gain=np.float32(0.5), held_out=np.float64(0.25))},
    ],
)
def test_numbers_of_numpy_are_saved(tmp_path: Path, patterns: dict[str, Any]) -> None:
    crf = CRF(structure=Patterns(**patterns), n_threads=1).fit(X, Y)
    crf.save(tmp_path / "numpy.crf")
    assert crfkit.load(tmp_path / "numpy.crf").structure == crf.structure


def test_sparsity_of_long_inputs() -> None:
    size = trellis_sizes(fitted("B I* E"), [[{"w": "a"}] * 800])[0]
    assert size.sparsity[0] == pytest.approx(2 / 4)  # B, or any other label
    assert size.sparsity[1] == pytest.approx(5 / 4**2)
    assert (np.diff(size.sparsity) <= 0).all()
    assert size.sparsity[-1] == 0.0  # below the smallest number


def pairs(x: Sequence[Any]) -> Iterator[tuple[Any, ...]]:
    for i in range(len(x) // 2):
        yield i, [{"B", "I"}, *[None] * (len(x) // 2 - 1), {"B", "I"}], f"pair {i % 2}", 1 + i


def test_sparsity_that_tells_too_much_apart_is_refused_with_a_message() -> None:
    crf = fitted(pairs, max_states=100)
    long, sure = [[{"w": "a"}] * 24], [[["O"]] * 24]
    with pytest.raises(SizeLimitError, match="sequence 0"):
        trellis_sizes(crf, long, allowed=sure)


def test_too_many_arcs_are_refused_with_a_message(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pattern_map, "MAX_ARCS", 6)
    with pytest.raises(SizeLimitError, match=r"position \d") as complaint:
        fitted("B I* E")
    assert str(complaint.value).endswith("or give fewer sequences at once")
    assert size_words(11, 10, 0, 20)[1].endswith("or raise max_states")
