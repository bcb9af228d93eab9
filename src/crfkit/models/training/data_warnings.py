"""Warnings about data from which, or for which, a model can know less than somebody might think."""

import math
import warnings
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from crfkit.data import Sentence
from crfkit.errors import FileFormatError
from crfkit.features import TagDictionary, Template

if TYPE_CHECKING:
    from crfkit.models.chain_model import ChainModel

_COLUMNS = {"lemma": "lemmas", "upos": "UPOS tags", "xpos": "XPOS tags", "feats": "features (FEATS)"}
_STRANGE = 0.1  # of the words of a tag dictionary; from here on, a warning
_SHOWN = 3  # labels of a word that a warning names
_CHANCE = 1e-3  # that the words of an input lack a column by accident; below it, a warning

FilledShares = dict[str, float]  # column of CoNLL-U → the share of words that have something in it


class UninformativeData(UserWarning):
    """The training data have one label only, or no features: there is nothing to learn from them."""


class UnreadColumns(UserWarning):
    """The rows of the input have columns that no feature reads."""


class UnusedEntries(UserWarning):
    """A lexicon, or a tag dictionary, has entries or labels that the training data do not have."""


class MissingColumns(UserWarning):
    """The words of the input lack what the parser has learned from, such as tags."""


def warn_of_training_data(model: "ChainModel", min_count: int, *, stacklevel: int) -> None:
    """Warn where a training set has one label, no features, or columns that no feature reads."""
    potentials = model.potentials
    doubts: list[tuple[str, type[UserWarning]]] = []
    if len(model.labels) == 1 and potentials.labels_positions:
        [label] = model.labels.written.classes
        doubts.append((f"all labels are {label!r}: the model can give no other one", UninformativeData))
    rare = f" that was seen at {min_count} positions or more" if min_count > 1 else ""
    if potentials.n_features == 0:
        text = f"the training data have no feature{rare}: labels are learned from their neighbours alone"
        doubts.append((text, UninformativeData))
    vocabulary = potentials.encoder.vocabulary
    template, n_columns = potentials.encoder.template, potentials.encoder.n_columns
    also_read = potentials.columns_read
    if template is not None and n_columns is not None and also_read is not None:
        unread = [column for column in template.unread_columns(n_columns) if column not in also_read]
        if unread:
            plural = len(unread) > 1
            text = (
                f"no feature reads column{'s' * plural} {_join(map(str, unread))} of the input "
                "(counted from 0, the label apart)"
            )
            doubts.append((text, UnreadColumns))
    if isinstance(template, Template) and not vocabulary.hash_bits:
        doubts += [
            (
                f"the training data have no entry of the lexicon {name!r}{rare}: entries have to be split as sentences are, "
                "into words, or into characters (split=list; crfkit lexicon --characters)",
                UnusedEntries,
            )
            for name in template.find_unmatched_lexicons(vocabulary)
        ]
    for text, category in doubts:
        warnings.warn(text, category, stacklevel=stacklevel + 1)


def warn_of_tag_dictionary(asked: Any, classes: Collection[Any], *, stacklevel: int) -> None:
    """Warn where a tag dictionary leaves many words without a label of the training data."""
    if not isinstance(asked, TagDictionary) or not asked.words:
        return
    strange = asked.words_without(classes)
    if len(strange) >= _STRANGE * len(asked.words):
        word = strange[0]
        warnings.warn(
            f"{len(strange):,} of {len(asked.words):,} words of the tag dictionary have no label of the training data, such "
            f"as {word!r} with {', '.join(map(repr, asked.allowed_labels(word)[:_SHOWN]))}: they may have any; mapping= of "
            "from_unimorph, from_analyses and from_hunspell says which labels a tag means",
            UnusedEntries,
            stacklevel=stacklevel + 1,
        )


def filled_shares(sentences: Sequence[Sentence], columns: Collection[str] | None = None) -> FilledShares:
    """For each column that a parser reads beside the form, the share of words that have something in it.

    `columns` are those that it may read; None: all.
    """
    n_words = sum(len(sentence.words) for sentence in sentences)
    return {
        column: round(
            sum(getattr(word, column) != "_" for one in sentences for word in one.words) / max(n_words, 1), 4
        )
        for column in _COLUMNS
        if columns is None or column in columns
    }


def warn_of_missing_columns(
    learned: Mapping[str, float], sentences: Sequence[Sentence], *, stacklevel: int
) -> None:
    """Warn where no word of the input has what a parser has learned from, unless so few words may lack it by chance."""
    n_words = sum(len(sentence.words) for sentence in sentences)
    missing = [
        column
        for column, share in learned.items()
        if share > 0
        and (share >= 1 or n_words * math.log1p(-share) < math.log(_CHANCE))
        and all(getattr(word, column) == "_" for one in sentences for word in one.words)
    ]
    if missing and n_words:
        names = _join(_COLUMNS[column] for column in missing)
        warnings.warn(
            f"the parser has learned from {names}, and no word of the input has any: expect many wrong arcs",
            MissingColumns,
            stacklevel=stacklevel + 1,
        )


def shares_from_json(value: Any) -> FilledShares:
    """The shares that a model file holds; none in files of parsers that did not keep them."""
    if value is None:
        return {}
    if not isinstance(value, dict) or not all(
        name in _COLUMNS and isinstance(share, int | float) and 0 <= share <= 1
        for name, share in value.items()
    ):
        raise FileFormatError("its columns are no shares from 0 to 1, one for each of " + ", ".join(_COLUMNS))
    return {name: float(share) for name, share in value.items()}


def _join(names: Iterable[str]) -> str:
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last
