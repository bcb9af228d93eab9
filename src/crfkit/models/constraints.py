"""What constrains the answers of a model: the labels allowed at each position, and the bigrams of its chain.

Training data that disagree raise an error, or are left out where the chain says so; a sequence that has no possible
label sequence is named with what is missing.
"""

import warnings
from collections.abc import Collection, Hashable, Sequence
from dataclasses import replace
from itertools import compress, pairwise
from typing import Any

import numpy as np

from crfkit.arrays import Bools, Int32s, Int64s
from crfkit.errors import EmptyDataError, ImpossibleLabelsError, NoOutputError, reword
from crfkit.features import Annotation, Labels
from crfkit.structures import END, OBSERVED, START, AllowedLabels, Bigrams, Chain, observe_bigrams

_SHOWN = 10  # labels named in a message


class ImpossibleSequenceError(NoOutputError):
    """Bigrams and allowed labels leave no label sequence of a sequence."""

    def __init__(self, message: str, sequence: int = 0, reason: str = "") -> None:
        super().__init__(message)
        self.sequence = sequence  # which one
        self.reason = reason  # the message without the sequence


class SequencesSkipped(UserWarning):
    """Training sequences that the bigrams exclude were left out, as `unseen="skip"` asks for."""


def bind_chain(
    structure: Chain,
    labels: Labels,
    annotation: Annotation,
    allowed: AllowedLabels | None,
    ptr: Int64s,
    also: Bigrams | None = None,
) -> tuple[Chain, Int64s]:
    """The chain of a training set, and the sequences that are to be left out of it.

    `also` are the bigrams of a model that is trained further.
    """
    if structure.bigrams is None and labels.bigrams is None:
        return structure, np.zeros(0, np.int64)
    outputs, possible = _outputs(annotation, allowed, ptr, len(labels))
    structure = _chain_of_states(structure, labels, outputs, also)
    try:
        chain = structure.bind(labels.classes, outputs, possible=possible, also=also)
    except ValueError as error:
        raise reword(error, _sentence(error)) from None
    skipped = [outside.sequence for outside in chain.outside(possible)]  # none unless it is "skip"
    check_some_left(len(outputs) - len(skipped), len(outputs))
    return chain, np.array(skipped, dtype=np.int64)


def _chain_of_states(
    structure: Chain, labels: Labels, outputs: Sequence[Int32s | AllowedLabels], also: Bigrams | None
) -> Chain:
    """A chain of labels as that of their states, which has valid pairs alone; where labels are states, as it is.

    Bigrams that training data extend are those of labels: a pair of labels that is seen allows all pairs of their states.
    """
    valid, asked = labels.bigrams, structure.bigrams
    if valid is None:
        return structure
    extends = structure.unseen == "extend"
    unseen = "error" if extends else structure.unseen
    if asked is None:
        return replace(structure, bigrams=valid, unseen=unseen)
    seen = observe_bigrams(labels.classes, outputs) & valid if asked == OBSERVED or extends else Bigrams()
    if asked == OBSERVED:
        return replace(structure, bigrams=seen, unseen=unseen)
    pairs = Bigrams.scheme(asked, labels.written.classes) if isinstance(asked, str) else asked
    if extends:
        pairs |= _bigrams_of_labels(seen if also is None else seen | also, labels)
    bigrams = _bigrams_of_states(pairs, labels) & valid
    return replace(structure, bigrams=bigrams, unseen=unseen)


def _bigrams_of_states(pairs: Bigrams, labels: Labels) -> Bigrams:
    """Pairs of labels as those of all their states."""
    name = {START: START, END: END} | dict(zip(labels.classes, labels.names, strict=True))
    return Bigrams.where(lambda before, after: (name[before], name[after]) in pairs, labels.classes)


def _bigrams_of_labels(bigrams: Bigrams, labels: Labels) -> Bigrams:
    """Pairs of states as those of their labels."""
    name = {START: START, END: END} | dict(zip(labels.classes, labels.names, strict=True))
    return Bigrams((name[before], name[after]) for before, after in bigrams)


def warn_of_skipped(n_skipped: int, n_sequences: int, *, stacklevel: int) -> None:
    """Warn of sequences that were left out."""
    warnings.warn(
        f"{n_skipped:,} of {n_sequences:,} training sequences lie outside the bigrams and were left out",
        SequencesSkipped,
        stacklevel=stacklevel + 1,
    )


def check_some_left(n_kept: int, n_outputs: int) -> None:
    """Refuse training data of which nothing is left."""
    if n_outputs and not n_kept:
        raise EmptyDataError(
            f"all {n_outputs:,} training sequences lie outside the bigrams: nothing is left to learn from"
        )


def _outputs(
    annotation: Annotation, allowed: AllowedLabels | None, ptr: Int64s, n_labels: int
) -> tuple[list[Int32s | AllowedLabels], list[Int32s | AllowedLabels]]:
    """Each training output twice: as y names it, and with the allowed labels where y says nothing.

    It is its label ids, or the labels of its positions. A set of y is listed, also where it has all labels, without those
    that are not allowed; where the label is unknown (None) the list is empty.
    """
    named: list[Int32s | AllowedLabels] = []
    if not np.any(annotation.labels < 0):
        named = [*np.split(annotation.labels, ptr[1:-1])] if len(ptr) > 1 else []
        return named, named
    possible: list[Int32s | AllowedLabels] = []
    for begin, end in pairwise(ptr.tolist()):
        ids = annotation.labels[begin:end]
        if not np.any(ids < 0):
            named.append(ids)
            possible.append(ids)
            continue
        mask = AllowedLabels.from_labels(ids).mask(n_labels)  # [T, L]
        said = ids >= 0  # [T]
        for sets in (annotation.sets, allowed):
            if sets is not None:
                mask &= sets.between(begin, end).mask(n_labels)
        if annotation.sets is not None:
            said |= np.diff(annotation.sets.position_ptr[begin : end + 1]) > 0
        named.append(
            AllowedLabels.from_sets(
                np.flatnonzero(row) if known else None for row, known in zip(mask, said, strict=True)
            )
        )
        possible.append(AllowedLabels.from_mask(mask))
    return named, possible


def find_labels_gone(
    labels: Labels, gold: Sequence[Any], allowed: Any, kept: Bools, base: Sequence[Hashable]
) -> frozenset[Hashable]:
    """The labels that only skipped sequences have; `base` are those of a model that is trained further.

    Sequences with a position that allows none but such labels are skipped too: `kept` [N] is changed.
    """
    while True:
        check_some_left(int(np.count_nonzero(kept)), len(kept))
        gone = frozenset(labels.classes).difference(Labels.learn([*compress(gold, kept), base]).classes)
        stuck = [
            n
            for n, positions in enumerate(() if allowed is None or not gone else allowed)
            if kept[n] and any(names is not None and gone.issuperset(names) for names in positions or ())
        ]
        if not stuck:
            return gone
        kept[stuck] = False


def without_labels(allowed: Any, gone: frozenset[Hashable]) -> Any:
    """Allowed labels, as the user gives them, without those that only skipped sequences have.

    A position that allows nothing else is left as it is: encoding reports it.
    """
    if allowed is None or not gone:
        return allowed

    def left(names: Any) -> Any:
        if not isinstance(names, Collection) or isinstance(names, str | bytes):
            return names
        return frozenset(names) - gone or names

    return [None if positions is None else [left(names) for names in positions] for positions in allowed]


def check_gold(annotation: Annotation, allowed: AllowedLabels | None, labels: Labels, ptr: Int64s) -> None:
    """Refuse a training label, or a set of them, that is not allowed at its position."""
    if allowed is None:
        return
    counts = np.diff(allowed.position_ptr)  # [T]
    positions = np.repeat(np.arange(len(counts)), counts)  # [nnz] of each allowed label
    agrees = (counts == 0) | (annotation.labels < 0)
    agrees[positions[allowed.labels == annotation.labels[positions]]] = True
    if annotation.sets is not None:
        named = np.diff(annotation.sets.position_ptr)
        for position in np.flatnonzero((named > 0) & (annotation.labels < 0) & (counts > 0)).tolist():
            one, other = (sets.between(position, position + 1).labels for sets in (annotation.sets, allowed))
            agrees[position] = len(np.intersect1d(one, other)) > 0
    if not agrees.all():
        position = int(agrees.argmin())
        n = int(np.searchsorted(ptr, position, side="right")) - 1
        gold = annotation.labels[position : position + 1]
        if gold[0] < 0 and annotation.sets is not None:
            gold = annotation.sets.between(position, position + 1).labels
        raise ImpossibleLabelsError(
            f"sequence {n}, position {position - int(ptr[n])}: y has {_name_labels(labels, gold)}, "
            f"allowed has only {_name_labels(labels, allowed.between(position, position + 1).labels)}"
        )


def check_possible(chain: Chain, ptr: Int64s, allowed: AllowedLabels | None = None, which: str = "") -> None:
    """Refuse a sequence for which bigrams and allowed labels leave no label sequence, saying what is missing."""
    lengths = np.diff(ptr)
    some = np.arange(len(lengths)) if allowed is not None else np.unique(lengths, return_index=True)[1]
    for n in some.tolist() if chain.constrained else ():
        begin, end = int(ptr[n]), int(ptr[n + 1])
        try:
            within = None if allowed is None else allowed.between(begin, end)
            chain.possible_labels(end - begin, len(chain.support().labels), within)
        except NoOutputError as error:
            reason = _sentence(error)
            raise ImpossibleSequenceError(f"{which}sequence {n}: {reason}", n, reason) from None


def find_impossible(
    chain: Chain, labels: Labels, gold: Sequence[Any], ptr: Int64s, allowed: AllowedLabels | None
) -> list[Bools]:
    """The positions [T] of each sequence whose right label no output within bigrams and allowed labels has there.

    Of a set of labels, none of them; never where the label is None. Labels that are not known are impossible.
    """
    check_possible(chain, ptr, allowed)
    n_states = len(labels)
    found = []
    for entries, (begin, end) in zip(gold, pairwise(ptr.tolist()), strict=True):
        within = None if allowed is None else allowed.between(begin, end)
        possible = chain.possible_labels(end - begin, n_states, within)  # [T, L]
        impossible = np.zeros(end - begin, np.bool_)
        for i, entry in enumerate(entries):
            named = entry if isinstance(entry, set | frozenset) else {entry}
            known = [b for label in named for b in labels.ids_of(label)]
            impossible[i] = entry is not None and not possible[i, known].any()
        found.append(impossible)
    return found


def trained_bigrams(labels: Labels, ids: tuple[Int32s, Int32s] | None) -> Bigrams | None:
    """The bigrams of a trained model."""
    return None if ids is None else Bigrams.from_ids(labels.classes, *ids)


def asked_bigrams(labels: Labels, ids: tuple[Int32s, Int32s] | None, asked: object) -> Bigrams | None:
    """The same as pairs of labels, where a chain with `asked` bigrams was trained; None for a chain without."""
    if ids is None or labels.bigrams is None:
        return trained_bigrams(labels, ids)
    if asked is None:
        return None
    return _bigrams_of_labels(Bigrams.from_ids(labels.classes, *ids), labels)


def trained_chain(structure: Chain, labels: Labels, ids: tuple[Int32s, Int32s] | None) -> Chain:
    """The chain that a model was trained with, from its settings, its labels and the ids of its bigrams."""
    if ids is None:
        return structure
    return replace(structure, bigrams=trained_bigrams(labels, ids)).bind(labels.classes, [])


def _name_labels(labels: Labels, ids: Int32s) -> str:
    names = ", ".join(repr(label) for label in labels.decode(ids[:_SHOWN]))
    return names + ", …" * (len(ids) > _SHOWN)


def _sentence(error: Exception) -> str:
    """The words of an error, to go on with in another one."""
    text = str(error).rstrip(".")
    return text if text[:2].isupper() else text[:1].lower() + text[1:]  # START keeps its name
