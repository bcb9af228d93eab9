"""The CRF of a tagger, chosen by the number of tags and the size of the training set."""

from collections.abc import Collection
from typing import Any, NamedTuple

from crfkit.models import CRF
from crfkit.optimizers import SGD
from crfkit.pipeline.tag_columns import TagColumns
from crfkit.structures import Chain

FEW_TAGS = 100  # up to so many, all labels and transitions have weights
SOME_TAGS = 500  # up to so many joint tags, labels share no weights


class ChosenCRF(NamedTuple):
    """An untrained CRF, and why it has these settings."""

    crf: CRF[Any]
    reason: str


def choose_crf(columns: TagColumns, labels: Collection[str], n_threads: int | None = None) -> ChosenCRF:
    """The CRF for a training set with these labels."""
    if len(labels) <= FEW_TAGS:
        crf: CRF[Any] = CRF(features="pos", optimizer=SGD(max_iterations=10), l2=0.5, n_threads=n_threads)
        return ChosenCRF(crf, f"{len(labels):,} tags: preset pos, all transitions")
    if len(columns.names) > 1 and len(labels) <= SOME_TAGS:
        crf = CRF(
            Chain(bigrams="observed", unseen="soft"),
            features="pos",
            optimizer=SGD(max_iterations=10),
            l2=0.5,
            all_possible_transitions=False,
            tag_dictionary=True,
            n_threads=n_threads,
        )
        return ChosenCRF(crf, f"{len(labels):,} tags: preset pos, tag dictionary, observed transitions")
    crf = CRF(
        Chain(bigrams="observed", unseen="soft"),
        features="morphology",
        optimizer=SGD(max_iterations=10, rate=0.05),
        all_possible_transitions=False,
        min_count=2,
        facets=_facets(columns),
        tag_dictionary=True,
        n_threads=n_threads,
    )
    return ChosenCRF(crf, f"{len(labels):,} tags: preset morphology, tag dictionary, observed transitions")


def _facets(columns: TagColumns) -> Any:
    """What labels of these columns are made of."""
    return None if columns.names == ("xpos",) else columns.facets
