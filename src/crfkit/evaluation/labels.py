"""How good predicted labels are: accuracy of positions and sequences, precision and recall of spans, confusions.

Every function takes the gold and the predicted label sequences, `gold[n][i]` beside `predicted[n][i]`.

Spans are read from labels such as `B-NP`: a letter, a dash, a type. The letters are B (begins a span), I
(inside; also M), E or L (ends one), S or U (a span of one position) and O (outside). Spans begin and end where conlleval
says so, by the letter and type of a position and of the position before it:

    begins here        B, S: always                 I, E: after O, E, S, or after another type
    ended before here  after E, S: always           after B, I: if here is O, B, S, or another type

These rules serve IOB1, IOB2 (= BIO), IOBES (= BIOES), BILOU and BMES alike, and give spans to ill-formed sequences too.
Spans of plain labels (the scheme PLAIN) are runs of equal labels other than O. Schemes may be written in small letters.
"""

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from types import MappingProxyType
from typing import Any

from crfkit.errors import ArgumentError, LabelError, ShapeError
from crfkit.evaluation.counts import Counts
from crfkit.structures import Span

Labels = Sequence[Hashable]
Triple = tuple[int, int, Any]  # start, end and label of a span

SCHEMES: Mapping[str, str] = MappingProxyType(
    {
        "IOB1": "BI",
        "IOB2": "BI",
        "BIO": "BI",
        "IOBES": "BIES",
        "BIOES": "BIES",
        "BILOU": "BILU",
        "BMES": "BMES",
    }
)
"""The known schemes of span labels, with the letters that each has besides O."""

PLAIN = "PLAIN"
"""The name for plain labels, whose spans are runs of equal ones."""

_SAME = {"L": "E", "U": "S", "M": "I"}  # letters of BILOU and BMES, and those of IOBES that mean the same


class SpanCounts(Counts):
    """Counts of spans: one is correct when it has the same positions and type in gold and in the prediction."""

    def __str__(self) -> str:
        return (
            f"precision: {100 * self.precision:6.2f}%; recall: {100 * self.recall:6.2f}%; "
            f"FB1: {100 * self.f1:6.2f}"
        )


@dataclass(frozen=True)
class SpanReport:
    """Precision, recall and F1 of spans; as text it looks like the output of conlleval.

    Of lists of spans nobody knows how many positions there are: both numbers of these are 0.
    """

    n_positions: int
    n_correct_positions: int
    overall: SpanCounts
    types: Mapping[str, SpanCounts]  # in alphabetical order

    @property
    def accuracy(self) -> float:
        """Share of positions with the right label."""
        return self.n_correct_positions / self.n_positions if self.n_positions else 0.0

    def __str__(self) -> str:
        tokens = f"{self.n_positions} tokens with " if self.n_positions else ""
        accuracy = f"accuracy: {100 * self.accuracy:6.2f}%; " if self.n_positions else ""
        lines = [
            f"processed {tokens}{self.overall.gold} phrases; "
            f"found: {self.overall.predicted} phrases; correct: {self.overall.correct}.",
            f"{accuracy}{self.overall}",
        ]
        lines += (f"{name:>17}: {score}  {score.predicted}" for name, score in self.types.items())
        return "\n".join(lines)


_LONGEST_HEAD = 16  # characters of a label above a column of a confusion table


@dataclass(frozen=True)
class Confusion:
    """How often each gold label (first) was predicted as each label (second)."""

    labels: tuple[Hashable, ...]  # gold labels by falling frequency, then those only predicted
    counts: Mapping[tuple[Hashable, Hashable], int]  # pairs that occurred

    def errors(self, n: int | None = None) -> list[tuple[Hashable, Hashable, int]]:
        """The `n` most frequent confusions (all, if None) as (gold, predicted, count)."""
        wrong = [
            (gold, predicted, count) for (gold, predicted), count in self.counts.items() if gold != predicted
        ]
        return sorted(wrong, key=lambda error: (-error[2], str(error[0]), str(error[1])))[:n]

    def __str__(self) -> str:
        return self.table()

    def table(self, n_labels: int | None = None) -> str:
        """The table as text, gold labels down, predicted ones across; `n_labels`: only the first so many.

        Where a label is long, rows and columns have numbers.
        """
        labels = self.labels[:n_labels]
        names = heads = [str(label) for label in labels]
        if max(map(len, names), default=0) > _LONGEST_HEAD:
            heads = [str(number) for number in range(1, len(names) + 1)]
            n_digits = len(str(len(names)))
            names = [f"{head:>{n_digits}} {name}" for head, name in zip(heads, names, strict=True)]
        cells = [[str(self.counts.get((gold, label), "·")) for label in labels] for gold in labels]
        first = max(map(len, ["gold", *names]))
        widths = [max(map(len, [name, *column])) for name, *column in zip(heads, *cells, strict=True)]
        rows = [("gold", heads), *zip(names, cells, strict=True)]
        return "\n".join(
            "  ".join([head.ljust(first), *(cell.rjust(w) for cell, w in zip(row, widths, strict=True))])
            for head, row in rows
        )


@dataclass(frozen=True)
class Evaluation:
    """All figures of one comparison; `spans` is None when the labels are not those of spans."""

    n_positions: int
    n_sequences: int
    accuracy: float  # of positions
    sequence_accuracy: float
    spans: SpanReport | None
    confusion: Confusion
    n_outside: int | None = None  # gold sequences that the model cannot give; None when that was not asked
    n_impossible: int | None = None  # positions whose gold label it cannot give there

    def __str__(self) -> str:
        lines = [
            f"tokens: {self.n_positions}; accuracy: {100 * self.accuracy:6.2f}%",
            f"sequences: {self.n_sequences}; wholly correct: {100 * self.sequence_accuracy:6.2f}%",
        ]
        if self.n_outside is not None:
            share = 100 * self.n_outside / self.n_sequences if self.n_sequences else 0.0
            lines.append(f"gold sequences outside the constraints: {self.n_outside} ({share:.2f}%)")
        if self.n_impossible is not None:
            share = 100 * self.n_impossible / self.n_positions if self.n_positions else 0.0
            lines.append(
                f"gold labels that cannot be predicted: {self.n_impossible} ({share:.2f}% of tokens)"
            )
        if self.spans is not None:
            lines.append(str(self.spans))
        errors = self.confusion.errors(10)
        if errors:
            lines.append("most frequent confusions (gold → predicted):")
            lines += (f"{count:>8}  {gold} → {predicted}" for gold, predicted, count in errors)
        return "\n".join(lines)


def evaluate(
    gold: Sequence[Labels],
    predicted: Sequence[Labels],
    scheme: str | None = None,
    possible: Sequence[bool] | None = None,
    n_impossible: int | None = None,
) -> Evaluation:
    """Accuracy, spans and confusions at once; without a scheme, spans are reported if the labels have one.

    `possible[n]` says whether the model that predicted could have given `gold[n]` at all, `n_impossible` at how many
    positions it could not have given the label, whatever the others are.
    """
    _check(gold, predicted)
    if possible is not None and len(possible) != len(gold):
        raise ShapeError(f"there are {len(gold)} gold sequences, and possible has {len(possible)} entries")
    if scheme is None:
        scheme = scheme_of(label for labels in (*gold, *predicted) for label in labels)
    return Evaluation(
        n_positions=sum(map(len, gold)),
        n_sequences=len(gold),
        accuracy=accuracy(gold, predicted),
        sequence_accuracy=sequence_accuracy(gold, predicted),
        spans=None if scheme is None else span_report(gold, predicted, scheme),
        confusion=confusion(gold, predicted),
        n_outside=None if possible is None else sum(not one for one in possible),
        n_impossible=n_impossible,
    )


def accuracy(gold: Sequence[Labels], predicted: Sequence[Labels]) -> float:
    """Share of positions with the right label; 0 when there is no position."""
    _check(gold, predicted)
    return known_accuracy(gold, predicted)


def known_accuracy(
    gold: Sequence[Sequence[Any]], predicted: Sequence[Labels], sample_weight: Sequence[float] | None = None
) -> float:
    """Share of the positions with a known label that have it; a set of labels is right when it holds the predicted one.

    Sequence n counts `sample_weight[n]` times.
    """
    _check_lengths(gold, predicted)
    total = right = 0.0
    for known, given, weight in zip(gold, predicted, _weights(sample_weight, len(gold)), strict=True):
        for label, guess in zip(known, given, strict=True):
            if label is not None:
                total += weight
                right += weight * (guess in label if isinstance(label, set | frozenset) else guess == label)
    return float(right / total) if total else 0.0


def sequence_accuracy(
    gold: Sequence[Labels], predicted: Sequence[Labels], sample_weight: Sequence[float] | None = None
) -> float:
    """Share of sequences without any wrong label, each counted `sample_weight[n]` times; 0 when there is no sequence."""
    _check(gold, predicted)
    weights = _weights(sample_weight, len(gold))
    right = (w for g, p, w in zip(gold, predicted, weights, strict=True) if list(g) == list(p))
    return sum(right) / total if (total := sum(weights)) else 0.0


def confusion(gold: Sequence[Labels], predicted: Sequence[Labels]) -> Confusion:
    """Count how often each gold label was predicted as each label."""
    _check(gold, predicted)
    counts = Counter(_pairs(gold, predicted))
    totals: Counter[Hashable] = Counter()
    for (true, guess), count in counts.items():
        totals[true] += count
        totals[guess] += 0
    labels = sorted(totals, key=lambda label: (-totals[label], str(label)))
    return Confusion(tuple(labels), MappingProxyType(dict(counts)))


def span_report(
    gold: Sequence[Sequence[Any]], predicted: Sequence[Sequence[Any]], scheme: str | None = None
) -> SpanReport:
    """Precision, recall and F1 of spans, per type and over all types, as conlleval counts them.

    Both may be label sequences, or lists of spans (start, end, label, …) as `CRF.predict_spans` gives them; the
    probabilities of these do not count.
    """
    of_labels = _are_labels(gold, predicted)
    counts: dict[str, Counter[Any]] = {"correct": Counter(), "predicted": Counter(), "gold": Counter()}
    for found in _span_sets(gold, predicted, scheme):
        for counter, found_spans in zip(counts.values(), found, strict=True):
            counter.update(label for _, _, label in found_spans)
    types = sorted(counts["gold"].keys() | counts["predicted"].keys(), key=str)
    return SpanReport(
        n_positions=sum(map(len, gold)) if of_labels else 0,
        n_correct_positions=sum(g == p for g, p in _pairs(gold, predicted)) if of_labels else 0,
        overall=SpanCounts(**{name: counter.total() for name, counter in counts.items()}),
        types=MappingProxyType(
            {name: SpanCounts(**{key: counter[name] for key, counter in counts.items()}) for name in types}
        ),
    )


def span_totals(
    gold: Sequence[Labels], predicted: Sequence[Labels], sample_weight: Sequence[float] | None = None
) -> Counts:
    """Spans that are correct, predicted and in gold, those of sequence n counted `sample_weight[n]` times."""
    weights = _weights(sample_weight, len(gold))
    totals = [0.0, 0.0, 0.0]
    for weight, found in zip(weights, _span_sets(gold, predicted, None), strict=True):
        for k, found_spans in enumerate(found):
            totals[k] += weight * len(found_spans)
    return Counts(*totals)


def _span_sets(
    gold: Sequence[Sequence[Any]], predicted: Sequence[Sequence[Any]], scheme: str | None
) -> Iterator[tuple[set[Triple], set[Triple], set[Triple]]]:
    """The correct, the predicted and the gold spans of each sequence."""
    (_check if _are_labels(gold, predicted) else _check_numbers)(gold, predicted)
    pairs = zip(span_sets(gold, scheme, "gold"), span_sets(predicted, scheme, "predicted"), strict=True)
    for gold_spans, predicted_spans in pairs:
        yield gold_spans & predicted_spans, predicted_spans, gold_spans


def _are_labels(gold: Sequence[Sequence[Any]], predicted: Sequence[Sequence[Any]]) -> bool:
    """Whether both are label sequences: no spans, nor lists that are empty, all of them, beside others that are not."""
    empty = [all(len(sequence) == 0 for sequence in some) for some in (gold, predicted)]
    return not (are_spans(gold) or are_spans(predicted) or empty[0] != empty[1])


def are_spans(sequences: Sequence[Sequence[Any]]) -> bool:
    """Whether these are lists of spans (start, end, label, …): the first thing that one of them has tells."""
    first = next((sequence[0] for sequence in sequences if len(sequence)), None)
    return (
        isinstance(first, tuple)
        and len(first) in (3, 4)
        and all(isinstance(place, Integral) and not isinstance(place, bool) for place in first[:2])
    )


def span_sets(sequences: Sequence[Sequence[Any]], scheme: str | None, which: str) -> Iterator[set[Triple]]:
    """The spans (start, end, label) of label sequences, or of lists of spans."""
    listed = are_spans(sequences)
    for n, sequence in enumerate(sequences):
        where = f"{which} sequence {n}, "
        if not listed:
            yield {span[:3] for span in _spans(sequence, scheme, where)}
            continue
        for item in sequence:
            if not are_spans([[item]]):
                raise LabelError(f"{where}{item!r} is no span, expected (start, end, label)")
        yield {(int(start), int(end), label) for start, end, label, *_ in sequence}


def spans(labels: Labels, scheme: str | None = None) -> list[Span]:
    """The spans of one label sequence, in order; without a scheme, the letters of all schemes are known."""
    if isinstance(labels, str):
        raise ArgumentError(f"the labels are the single string {labels!r}, expected a sequence of labels")
    return list(_spans(labels, scheme, ""))


def scheme_of(labels: Iterable[Hashable]) -> str | None:
    """The first of IOB2, IOBES, BILOU and BMES that has all these labels; None when they are not labels of spans.

    O alone makes no scheme. IOB1 has the labels of IOB2, and both are read by the same rules.
    """
    distinct = set(labels) - {"O"}
    letters = {label.partition("-")[0] if isinstance(label, str) else "" for label in distinct}
    return next(
        (name for name in ("IOB2", "IOBES", "BILOU", "BMES") if letters and letters <= {*SCHEMES[name]}), None
    )


def _spans(labels: Labels, scheme: str | None, where: str) -> Iterator[Span]:
    letters = _letters(scheme)
    before, start = "O", 0
    type_before: Any = ""
    for i, label in enumerate((*labels, "O")):
        parsed = _parse(label, letters)
        if parsed is None:
            name = f" of the scheme {scheme}" if scheme else ""
            expected = ", ".join(f"{letter}-type" for letter in letters or "")
            raise LabelError(
                f"{where}position {i}: {label!r} is not a span label{name}, expected O or one of {expected}"
            )
        letter, kind = parsed
        other = kind != type_before
        if before in "ES" or (before in "BI" and (letter in "OBS" or other)):
            yield Span(start, i, type_before)
        if letter in "BS" or (letter in "IE" and (before in "OES" or other)):
            start = i
        before, type_before = letter, kind


def _letters(scheme: str | None) -> str | None:
    """The letters of a scheme besides O; None: labels are plain."""
    if scheme is None:
        return "BIESLUM"
    name = scheme.upper()
    if name not in (*SCHEMES, PLAIN):
        raise ArgumentError(
            f"unknown scheme of span labels {scheme!r}: expected one of {', '.join(SCHEMES)}, {PLAIN}"
        )
    return SCHEMES.get(name)


def _parse(label: Hashable, letters: str | None) -> tuple[str, Any] | None:
    """The letter of a label (L as E, U as S, M as I) and its type, which is empty for a bare letter."""
    if label == "O":
        return "O", ""
    if letters is None:
        return "I", label  # begins where the label before is another one
    if isinstance(label, str):
        letter, _, kind = label.partition("-")
        if len(letter) == 1 and letter in letters:
            return _SAME.get(letter, letter), kind
    return None


def _pairs(gold: Sequence[Labels], predicted: Sequence[Labels]) -> Iterator[tuple[Hashable, Hashable]]:
    for g, p in zip(gold, predicted, strict=True):
        yield from zip(g, p, strict=True)


def _weights(sample_weight: Sequence[float] | None, n: int) -> Sequence[float]:
    if sample_weight is None:
        return [1.0] * n
    if len(sample_weight) != n:
        raise ShapeError(f"there are {n} gold sequences, and sample_weight has {len(sample_weight)} entries")
    return [float(weight) for weight in sample_weight]


def _check_numbers(gold: Sequence[Any], predicted: Sequence[Any]) -> None:
    if len(gold) != len(predicted):
        raise ShapeError(
            f"there are {len(gold)} gold sequences and {len(predicted)} predicted ones, expected as many"
        )


def _check_lengths(gold: Sequence[Labels], predicted: Sequence[Labels]) -> None:
    _check_numbers(gold, predicted)
    for n, (g, p) in enumerate(zip(gold, predicted, strict=True)):
        if isinstance(g, str) or isinstance(p, str):
            raise ArgumentError(f"sequence {n} is a single string, expected a sequence of labels")
        if len(g) != len(p):
            raise ShapeError(
                f"sequence {n} has {len(g)} gold labels and {len(p)} predicted ones, expected as many"
            )


def _check(gold: Sequence[Labels], predicted: Sequence[Labels]) -> None:
    _check_lengths(gold, predicted)
    for n, g in enumerate(gold):
        for i, label in enumerate(g):
            if label is None or isinstance(label, set | frozenset):
                raise ArgumentError(
                    f"sequence {n}, position {i}: the gold label is {label!r}, expected one label to compare with"
                )
