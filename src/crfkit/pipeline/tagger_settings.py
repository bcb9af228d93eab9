"""The CRF of a tagger, chosen by the number of tags, and, where there are many, by a trial on held-out sentences."""

import warnings
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from crfkit.data import Sentence
from crfkit.features import PRESETS, MissingResource, Resource, resource_lines
from crfkit.models import CRF, LOGGER, UnknownLabels
from crfkit.optimizers import SGD
from crfkit.pipeline.tag_columns import Label, TagColumns
from crfkit.pipeline.tagger_input import read_positions
from crfkit.pipeline.word_list import WordList
from crfkit.structures import Chain

FEW_TAGS = 100  # up to so many, all labels and transitions have weights
SOME_TAGS = 500  # up to so many joint tags, the features are those of few tags
MANY_WORDS = 100_000  # from so many on, pairs of words help more than they harm
BLOCK, HELD_OUT = 20, 8  # a trial is tested on every eighth block of consecutive sentences
MOST_TRIED = 2000  # sentences of a trial
TRIED_PASSES = 5

# For large training sets: words around in pairs, with endings, and how the neighbours look.
_CONTEXT = """
lower[-1]|lower[1]=%lower[-1,0]|%lower[1,0]
lower[1]|lower[2]=%lower[1,0]|%lower[2,0]
lower[-2]|lower[-1]=%lower[-2,0]|%lower[-1,0]
lower[-2]|lower=%lower[-2,0]|%lower[0,0]
lower|lower[2]=%lower[0,0]|%lower[2,0]
lower[-3]=%lower[-3,0]
lower[-1]|suffix2=%lower[-1,0]|%lower_suffix[0,0,2]
suffix2|lower[1]=%lower_suffix[0,0,2]|%lower[1,0]
lower[-1]|suffix3=%lower[-1,0]|%lower_suffix[0,0,3]
suffix3|lower[1]=%lower_suffix[0,0,3]|%lower[1,0]
lower[-2]|suffix3=%lower[-2,0]|%lower_suffix[0,0,3]
lower[-2]|lower[-1]|suffix2=%lower[-2,0]|%lower[-1,0]|%lower_suffix[0,0,2]
short_shape[-1]=%short_shape[-1,0]
short_shape[1]=%short_shape[1,0]
short_shape|short_shape[1]=%short_shape[0,0]|%short_shape[1,0]
short_shape[-1]|short_shape|short_shape[1]=%short_shape[-1,0]|%short_shape[0,0]|%short_shape[1,0]
lower|short_shape|short_shape[1]=%lower[0,0]|%short_shape[0,0]|%short_shape[1,0]
prefix5=%lower_prefix[0,0,5]
suffix6=%lower_suffix[0,0,6]
"""
# White space (column 1), and what a list of words says (columns 2 to 4).
_WORDS = """
space=%x[0,1]
space|lower=%x[0,1]|%lower[0,0]
space|shapes=%x[0,1]|%short_shape[-1,0]|%short_shape[0,0]|%short_shape[1,0]
listed|short_shape=%x[0,2]|%short_shape[0,0]
listed|endings=%x[0,2]|%x[0,3]
listed|endings|short_shape=%x[0,2]|%x[0,3]|%short_shape[0,0]
bases=%x[0,4]
endings|bases=%x[0,3]|%x[0,4]
bases|short_shape=%x[0,4]|%short_shape[0,0]
endings|suffix2=%x[0,3]|%lower_suffix[0,0,2]
listed|endings[-1]=%x[-1,2]|%x[-1,3]
listed|endings[1]=%x[1,2]|%x[1,3]
endings|endings[1]=%x[0,3]|%x[1,3]
endings[-1]|endings=%x[-1,3]|%x[0,3]
"""


Resources = Mapping[str, Resource | MissingResource]


class ChosenCRF(NamedTuple):
    """An untrained CRF, and why it has these settings."""

    crf: CRF[Any]
    reason: str


def choose_crf(
    columns: TagColumns,
    labels: Collection[str],
    n_threads: int | None = None,
    *,
    n_words: int = 0,
    with_words: bool = False,
    resources: Resources | None = None,
) -> ChosenCRF:
    """The CRF for a training set with these labels and so many words; `with_words`: it reads what a list of words says.

    It has features of the `resources`: those of presets.
    """
    more = (_WORDS if with_words else "") + (f"\n{resource_lines(resources)}\n" if resources else "")
    features = PRESETS["pos"] + more
    name = "preset pos"
    if n_words >= MANY_WORDS:
        features, name = features + _CONTEXT, "preset pos and pairs of words"
    if len(labels) <= FEW_TAGS:
        crf: CRF[Any] = CRF(
            features=features,
            optimizer=SGD(max_iterations=10),
            l2=0.5,
            n_threads=n_threads,
            resources=resources,
        )
        return ChosenCRF(crf, f"{len(labels):,} tags: {name}, all transitions")
    if len(columns.names) > 1 and len(labels) <= SOME_TAGS:
        crf = CRF(
            Chain(bigrams="observed", unseen="soft"),
            features=features,
            optimizer=SGD(max_iterations=10),
            l2=0.5,
            all_possible_transitions=False,
            tag_dictionary=True,
            n_threads=n_threads,
            resources=resources,
        )
        return ChosenCRF(crf, f"{len(labels):,} tags: {name}, tag dictionary, observed transitions")
    facets = None if columns.names == ("xpos",) else columns.facets  # None: by the look of the tags
    crf = CRF(features="morphology", facets=facets, n_threads=n_threads, resources=resources)
    crf.set_params(features=PRESETS["morphology"] + more)
    return ChosenCRF(crf, f"{len(labels):,} tags: preset morphology, tag dictionary, observed transitions")


def choose_for_treebank(
    columns: TagColumns,
    sentences: list[Sentence],
    words: WordList | None = None,
    n_threads: int | None = None,
    resources: Resources | None = None,
) -> ChosenCRF:
    """The CRF for a tagger of these sentences, by the number of tags and a trial on held-out sentences."""
    labels = columns.known_labels(sentences)
    n_words = sum(len(sentence.words) for sentence in sentences)
    chosen = choose_crf(
        columns, labels, n_threads, n_words=n_words, with_words=words is not None, resources=resources
    )
    step = -(-len(sentences) // MOST_TRIED)  # blocks from everywhere: a treebank may be a mixture
    tried = [sentence for n, sentence in enumerate(sentences) if n // BLOCK % step == 0]
    X = read_positions(tried, words, rows=words is not None)
    return try_settings(chosen, X, columns.annotate(tried, labels))


def try_settings(chosen: ChosenCRF, X: Sequence[Any], y: Sequence[Sequence[Label]]) -> ChosenCRF:
    """The settings that tag held-out sentences best: those that were chosen, or the same with the features of few tags.

    Settings for few tags, and those for a handful of sentences, are returned as they are.
    """
    is_out = [n // BLOCK % HELD_OUT == 0 for n in range(len(X))]
    others = _smaller(chosen.crf)
    if not others or len(is_out) < BLOCK * HELD_OUT:
        return chosen
    kept, held_out = ([n for n, out in enumerate(is_out) if out == which] for which in (False, True))
    LOGGER.info("trying settings of the tagger on %d sentences", len(held_out), extra={"stage": True})
    found = {}
    candidates = {"all features": chosen.crf} | others
    for name, crf in candidates.items():
        tried: CRF[Any] = CRF(**crf.get_params(deep=False))
        tried.set_params(optimizer__max_iterations=TRIED_PASSES)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UnknownLabels)
            tried.fit([X[n] for n in kept], [y[n] for n in kept])
        found[name] = _accuracy(tried.predict([X[n] for n in held_out]), [y[n] for n in held_out])
    best = max(found, key=lambda name: found[name])
    shown = ", ".join(f"{share:.2%} {name}" for name, share in found.items())
    return ChosenCRF(candidates[best], f"{chosen.reason}, {best} (held-out sentences: {shown})")


def _smaller(crf: CRF[Any]) -> dict[str, CRF[Any]]:
    """The CRF for many tags with fewer features: those for few tags."""
    features = crf.features
    if not isinstance(features, str) or not features.startswith(PRESETS["morphology"]):
        return {}
    more = features.removeprefix(PRESETS["morphology"])
    params = crf.get_params(deep=False) | {"features": PRESETS["pos"] + more, "l2": 1.0}
    return {"preset pos": CRF(**params)}


def _accuracy(found: Sequence[Sequence[str]], right: Sequence[Sequence[Label]]) -> float:
    """The share of labels that are right, or among those that may be; unknown ones do not count."""
    pairs = [
        pair
        for own in zip(found, right, strict=True)
        for pair in zip(*own, strict=True)
        if pair[1] is not None
    ]
    n_right = sum(
        label in known if isinstance(known, frozenset) else label == known for label, known in pairs
    )
    return n_right / max(len(pairs), 1)
