"""Training of a pipeline: one component after the other, each on what those before it predict.

A tagger knows the words it has learnt from too well: on them it errs less than on others. The tags of the training set are
therefore predicted fold by fold, by a copy that has learnt from the other folds (jack-knifing), and the lemmatizer and the
parser, which learn from these tags, meet the errors that they will meet later.
"""

import copy
import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from time import perf_counter
from types import MappingProxyType
from typing import Any, NamedTuple

from crfkit.counts import check_count
from crfkit.data import Sentence
from crfkit.errors import EmptyDataError
from crfkit.features import MissingResource, Resource, check_trees
from crfkit.models import CRF, LOGGER, Parser, ProgressCallback, TrainingInterrupted
from crfkit.optimizers import StopReason
from crfkit.pipeline.components import KEPT, Component, check_components, component_name, run_component
from crfkit.pipeline.finished_steps import FinishedSteps
from crfkit.pipeline.lemmatizer import Lemmatizer
from crfkit.pipeline.tag_columns import TagColumns
from crfkit.pipeline.tagger import TreebankTagger, check_tags
from crfkit.pipeline.tokenizer import Tokenizer
from crfkit.pipeline.word_list import WordList

BLOCK = 10  # consecutive sentences that are in one fold together
TAGS = ("upos", "xpos", "feats")


@dataclass
class Trained:
    """What a training run gives."""

    tokenizer: Tokenizer | None = None
    components: list[Component] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)
    interrupted: str | None = None


class _InterruptedError(Exception):
    """Ctrl-C or SIGTERM ended the training run of a component."""


Resources = Mapping[str, Resource | MissingResource]


class Knowledge(NamedTuple):
    """What the components that are chosen for a treebank may know beside it."""

    words: WordList | None = None  # of the language, for the tagger
    resources: Resources | None = None  # of the tagger
    of_parser: Mapping[str, Any] = MappingProxyType({})  # its clusters and vectors


def choose_components(sentences: Sequence[Sentence], known: Knowledge) -> tuple[list[Any], dict[str, str]]:
    """The components that can be trained on a treebank, untrained, and why others cannot."""
    words = [word for sentence in sentences for word in sentence.words]
    has = {name: any(getattr(word, name) != "_" for word in words) for name in (*TAGS, "lemma")}
    left_out = {
        f"tagger of {name}": f"no word of the treebank has {name.upper()}" for name in TAGS if not has[name]
    }
    components: list[Any] = [Tokenizer()]
    tags = "+".join(name for name in TAGS if has[name])
    if tags:
        components.append(TreebankTagger(tags, words=known.words, resources=known.resources))
    if has["lemma"]:
        components.append(Lemmatizer())
    else:
        left_out["lemmatizer"] = "no word of the treebank has a LEMMA"
    if any(word.head is not None for word in words):
        components.append(Parser(**known.of_parser))
    else:
        left_out["parser"] = "no word of the treebank has a HEAD"
    return components, left_out


def fold_of(n: int, folds: int) -> int:
    """The fold of sentence n."""
    return n // BLOCK % folds


def _check_treebanks(
    components: list[Component], sentences: list[Sentence], dev: list[Sentence] | None
) -> None:
    """Refuse what a later component would refuse, before those in front of it are trained: that takes minutes."""
    for component in components:
        if isinstance(component, Parser):
            check_trees(sentences, single_root=component.single_root)
            check_trees(dev or [], single_root=False)
        elif isinstance(component, TreebankTagger) and dev is not None:
            check_tags(TagColumns.parse(component.tag), dev, "dev")


class Training:
    """A training run of a pipeline."""

    def __init__(
        self,
        components: Sequence[Any] | None,
        folds: int,
        n_threads: int | None,
        callback: ProgressCallback | None = None,
        verbose: bool | int | str = False,
        known: Knowledge | None = None,
    ) -> None:
        self._components = components
        self._folds = check_count("folds", folds, 1000, least=2)
        self._n_threads = n_threads
        self._callback = callback
        self._verbose = verbose
        self._known = known or Knowledge()

    def run(
        self,
        sentences: list[Sentence],
        dev: list[Sentence] | None,
        checkpoint: str | os.PathLike[str] | None,
    ) -> Trained:
        """Train all components; what is finished in the folder `checkpoint` is taken from there."""
        if not sentences:
            raise EmptyDataError("the treebank has no sentence")
        left_out: dict[str, str] = {}
        components = self._components
        if components is None:
            components, left_out = choose_components(sentences, self._known)
            for name, reason in left_out.items():
                LOGGER.warning("no %s: %s", name, reason)
        tokenizer, others = check_components(components)
        _check_treebanks(others, sentences, dev)
        steps = FinishedSteps(checkpoint, sentences, dev, [tokenizer, *others], self._folds)
        trained = Trained(left_out=left_out)
        try:
            if tokenizer is not None:
                trained.tokenizer = self._train(tokenizer, sentences, None, steps, "0-tokenizer")
            self._train_in_turn(others, sentences, dev, steps, trained)
        except _InterruptedError as stop:
            trained.interrupted = str(stop)
            warnings.warn(
                f"training was interrupted at the {stop}; what comes behind it is missing",
                TrainingInterrupted,
                stacklevel=3,
            )
        return trained

    def _train_in_turn(
        self,
        components: list[Component],
        sentences: list[Sentence],
        dev: list[Sentence] | None,
        steps: FinishedSteps,
        trained: Trained,
    ) -> None:
        """Train components, each on the columns that those before it predict."""
        filled: set[str] = set()
        given = sentences
        for i, component in enumerate(components):
            name = f"{i + 1}-{type(component).__name__}"
            shown = hide_columns(component, sentences, filled)
            learnt = shown
            if isinstance(component, Lemmatizer) and filled:  # right tags help it, too
                learnt = [*shown, *hide_columns(component, given, filled)]
            dev_shown = None if dev is None else hide_columns(component, dev, filled)
            model = component
            if hasattr(component, "fit"):
                try:
                    model = self._train(component, learnt, dev_shown, steps, name)
                except _InterruptedError:
                    if _is_usable(component):
                        trained.components.append(component)
                    raise
            trained.components.append(model)
            if i + 1 < len(components):
                filled |= find_filled(model, sentences, filled)
                sentences = merge(sentences, self._jackknife(component, model, shown, steps, name), filled)
                if dev is not None and dev_shown is not None:
                    predicted = run_component(model, dev_shown, n_threads=self._n_threads)
                    dev = merge(dev, predicted, filled)

    def _train(
        self,
        component: Any,
        sentences: list[Sentence],
        dev: list[Sentence] | None,
        steps: FinishedSteps,
        name: str,
        what: str = "",
        left: str = "",
    ) -> Any:
        """The component, trained; _InterruptedError where it was not trained to its end. Folds show no iterations."""
        found = steps.model(name, resources_of(component))
        if found is not None:
            return found
        began = perf_counter()
        called = component_name(component)
        optimizer = getattr(
            getattr(component, "crf", component), "optimizer", None
        )  # a tagger's may not be known
        LOGGER.info("training the %s%s%s", called, what, left, extra={"stage": True, "optimizer": optimizer})
        if hasattr(component, "n_threads"):
            component.n_threads = self._n_threads
        settings: dict[str, Any] = {}
        if isinstance(component, Tokenizer | TreebankTagger | Lemmatizer | Parser):
            settings = {"callback": None if what else self._callback, "verbose": self._verbose}
            if isinstance(component, Tokenizer | Lemmatizer):
                dev = None  # they gain nothing by it
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", TrainingInterrupted)
            try:
                component.fit(sentences, dev=dev, **settings)
            except KeyboardInterrupt:
                raise _InterruptedError(called) from None
        crf = getattr(component, "crf_", component)
        if getattr(crf, "stop_reason_", None) == StopReason.INTERRUPTED:
            raise _InterruptedError(called)
        LOGGER.info("trained the %s%s in %.0f s", called, what, perf_counter() - began, extra={"note": True})
        steps.keep_model(name, component)
        return component

    def _jackknife(
        self, component: Any, model: Any, sentences: list[Sentence], steps: FinishedSteps, name: str
    ) -> list[Sentence]:
        """The sentences as copies of the component predict them that have not learnt from them."""
        if not hasattr(component, "fit"):
            return run_component(model, sentences, n_threads=self._n_threads)
        folds = min(self._folds, -(-len(sentences) // BLOCK))
        if folds < 2:
            return run_component(model, sentences, n_threads=self._n_threads)
        found = list(sentences)
        seconds: list[float] = []
        for fold in range(folds):
            inside = [n for n in range(len(sentences)) if fold_of(n, folds) == fold]
            predicted = steps.sentences(f"{name}-fold-{fold}")
            if predicted is None:
                began = perf_counter()
                rest = [s for n, s in enumerate(sentences) if fold_of(n, folds) != fold]
                left = f", about {sum(seconds) / len(seconds) * (folds - fold):.0f} s left" if seconds else ""
                what = f", fold {fold + 1} of {folds}"
                one = self._train(untrained(component), rest, None, steps, "", what, left)
                predicted = run_component(one, [sentences[n] for n in inside], n_threads=self._n_threads)
                steps.keep_sentences(f"{name}-fold-{fold}", predicted)
                seconds.append(perf_counter() - began)
            for n, sentence in zip(inside, predicted, strict=True):
                found[n] = sentence
        return found


def hide_columns(component: object, sentences: list[Sentence], filled: set[str]) -> list[Sentence]:
    """The sentences as a lemmatizer or a parser may see them: without lemmas and tags that no component before it fills.

    A component of another kind sees all that the treebank has.
    """
    if isinstance(component, Lemmatizer):
        hidden = set(KEPT) - filled - {"lemma"}
    elif isinstance(component, Parser):
        hidden = set(KEPT) - filled
    else:
        hidden = set()
    nothing: dict[str, Any] = dict.fromkeys(sorted(hidden), "_")
    if not nothing:
        return sentences
    return [replace(s, words=[word._replace(**nothing) for word in s.words]) for s in sentences]


def find_filled(component: Component, sentences: list[Sentence], filled: set[str]) -> set[str]:
    """The columns of lemmas and tags that a trained component fills, or passes on, by a try on a few sentences."""
    nothing: dict[str, Any] = dict.fromkeys(sorted(set(KEPT) - filled), "_")
    tried = [replace(s, words=[word._replace(**nothing) for word in s.words]) for s in sentences[:BLOCK]]
    words = [word for sentence in run_component(component, tried) for word in sentence.words]
    return {name for name in KEPT if any(getattr(word, name) != "_" for word in words)}


def merge(sentences: list[Sentence], predicted: list[Sentence], filled: set[str]) -> list[Sentence]:
    """The sentences with the columns that are filled as they were predicted, and all others as they were."""
    return [
        replace(
            sentence,
            words=[
                word._replace(**{name: getattr(found, name) for name in sorted(filled)})
                for word, found in zip(sentence.words, other.words, strict=True)
            ],
        )
        for sentence, other in zip(sentences, predicted, strict=True)
    ]


def untrained(component: Any) -> Any:
    """A copy of a component that has learnt nothing."""
    if isinstance(component, TreebankTagger):
        crf = getattr(component, "crf_", component.crf)  # the settings that were chosen, for all folds
        resources = None if isinstance(crf, CRF) else component.resources
        return TreebankTagger(component.tag, crf, words=component.words, resources=resources)
    if isinstance(component, Lemmatizer):
        return Lemmatizer(component.optimizer, component.l2)
    if isinstance(component, Parser):
        return Parser(**component.get_params(deep=False))
    return copy.deepcopy(component)


def resources_of(component: Any) -> Any:
    """The resources that a component was given, or None."""
    crf = getattr(component, "crf", None)
    return getattr(component, "resources", None) or getattr(crf, "resources", None) or None


def _is_usable(component: Any) -> bool:
    """Whether a component whose training run was interrupted has learnt something."""
    crf = getattr(component, "crf_", component)
    return hasattr(crf, "_model") and bool(crf.weights_.any())
