"""Components of a pipeline: anything that takes sentences and gives them back with further columns filled."""

import inspect
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Protocol, runtime_checkable

from crfkit.data import Sentence, Word
from crfkit.errors import ArgumentError, InputError
from crfkit.models import Parser
from crfkit.pipeline.lemmatizer import Lemmatizer
from crfkit.pipeline.tagger import TreebankTagger
from crfkit.pipeline.tokenizer import Tokenizer
from crfkit.pipeline.written_text import add_misc

KEPT = ("lemma", "upos", "xpos", "feats")  # columns that may be given
MOST_WORDS = 5000  # of a sentence for a parser, which needs some gigabytes then


@runtime_checkable
class Component(Protocol):
    """What a pipeline needs of a component.

    `predict` gives as many sentences as it takes, each with the same words; the ones that it takes do not change. One that
    takes `probabilities=True` adds them to MISC. One with a method `fit(sentences, dev=…)` is trained by `Pipeline.fit`, and
    one with `to_file()` can be saved, if `crfkit.load` knows its type.
    """

    def predict(self, sentences: Sequence[Sentence]) -> list[Sentence]:
        """Copies of the sentences with further columns filled."""
        ...


def component_name(component: object) -> str:
    """What messages call a component."""
    if isinstance(component, TreebankTagger):
        return f"tagger of {component.tag}"
    for kind, name in ((Tokenizer, "tokenizer"), (Lemmatizer, "lemmatizer"), (Parser, "parser")):
        if isinstance(component, kind):
            return name
    return type(component).__name__


def check_components(components: object) -> tuple[Tokenizer | None, list[Component]]:
    """The tokenizer, if there is one, and the other components; ArgumentError where one is none."""
    if isinstance(components, str) or not isinstance(components, Sequence):
        raise ArgumentError(f"components is {components!r}, expected a list of components")
    tokenizer = None
    others: list[Component] = []
    for i, component in enumerate(components):
        if isinstance(component, Tokenizer):
            if i:
                raise ArgumentError(f"component {i} is a tokenizer, expected it to be the first one")
            tokenizer = component
        elif isinstance(component, Component) and not isinstance(component, type):
            others.append(component)
        else:
            raise ArgumentError(
                f"component {i} is {component!r}, expected an object with a method predict(sentences)"
            )
    return tokenizer, others


def run_component(
    component: Component,
    sentences: list[Sentence],
    *,
    probabilities: bool = False,
    keep_tags: bool = False,
    n_threads: int | None = None,
) -> list[Sentence]:
    """The sentences as a component gives them back.

    With `keep_tags`, lemmas and tags that words have already stay as they are.
    """
    if hasattr(component, "n_threads") and component.n_threads != n_threads:
        component.n_threads = n_threads
    if isinstance(component, Parser):
        _check_lengths(sentences)
    if isinstance(component, Parser) and probabilities:
        found = _parse_with_probabilities(component, sentences)
    elif probabilities and "probabilities" in inspect.signature(component.predict).parameters:
        found = component.predict(sentences, probabilities=True)  # type: ignore[call-arg]
    else:
        found = component.predict(sentences)
    _check_answer(component, sentences, found)
    return [_restore(*pair) for pair in zip(sentences, found, strict=True)] if keep_tags else found


def _check_lengths(sentences: list[Sentence]) -> None:
    """Refuse sentences that are too long to parse, before memory is taken for them."""
    for sentence in sentences:
        if len(sentence.words) > MOST_WORDS:
            raise InputError(
                f"{sentence.place(1)}: a sentence of {len(sentence.words):,} words, expected at most {MOST_WORDS:,}: "
                "the parser needs memory for all pairs of words"
            )


def _check_answer(component: Component, given: list[Sentence], found: Any) -> None:
    """Refuse an answer that does not have the words that were given."""
    name = component_name(component)
    if not isinstance(found, list) or len(found) != len(given):
        n = len(found) if isinstance(found, list) else type(found).__name__
        raise ArgumentError(f"{name}: predict gave {n}, expected a list of {len(given)} sentences")
    for i, (before, after) in enumerate(zip(given, found, strict=True)):
        if not isinstance(after, Sentence) or len(before.words) != len(after.words):
            raise ArgumentError(f"{name}: sentence {i} has other words than the one that was given")


def _parse_with_probabilities(parser: Parser, sentences: list[Sentence]) -> list[Sentence]:
    """Trees, and the probability of the arc into each word in MISC, as HeadProb."""
    found = []
    for sentence, table in zip(parser.predict(sentences), parser.arc_probabilities(sentences), strict=True):
        words = [
            word._replace(misc=add_misc(word.misc, f"HeadProb={min(table[word.head, number], 1.0):.4f}"))
            for number, word in enumerate(sentence.words, 1)
        ]
        found.append(replace(sentence, words=words))
    return found


def _restore(given: Sentence, found: Sentence) -> Sentence:
    """The sentence that was found with the lemmas and tags that were given.

    FEATS that are `_` say that a word has none, where another word of the sentence has some.
    """
    words = []
    has_feats = any(word.feats != "_" for word in given.words)
    for before, after in zip(given.words, found.words, strict=True):
        kept = {name: getattr(before, name) for name in KEPT if getattr(before, name) != "_"}
        if has_feats:
            kept["feats"] = before.feats
        if any(getattr(after, name) != value for name, value in kept.items()):
            kept["misc"] = before.misc  # a probability that was added is that of another tag
        words.append(after._replace(**kept) if kept else after)
    return replace(found, words=words)


def without_analysis(sentence: Sentence, *, keep_tags: bool = False) -> Sentence:
    """A sentence with its words, multiword tokens and white space alone; with `keep_tags`, lemmas and tags too."""
    words = [
        word._replace(head=None, deprel="_", deps="_") if keep_tags else Word(word.form, misc=word.misc)
        for word in sentence.words
    ]
    return replace(sentence, words=words)
