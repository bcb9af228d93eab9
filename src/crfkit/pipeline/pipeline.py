"""The pipeline: from raw text to sentences with tags, lemmas and trees."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Self

from crfkit.data import Sentence
from crfkit.errors import ArgumentError
from crfkit.features import Clusters, MissingResource, Resource, WordVectors, check_sentences
from crfkit.models import ModelFile, NotFittedError, ProgressCallback
from crfkit.pipeline.components import (
    Component,
    check_components,
    component_name,
    run_component,
    without_analysis,
)
from crfkit.pipeline.saved_model import SavedModel
from crfkit.pipeline.text_input import check_format, read_sentences
from crfkit.pipeline.tokenizer import Tokenizer
from crfkit.pipeline.word_list import WordList

BATCH = 500  # sentences analysed at once: enough for all threads, little to hold


class Pipeline(SavedModel):
    """From raw text to sentences with tags, lemmas and trees: a tokenizer, taggers, a lemmatizer and a parser in a row.

    Parameters
    ----------
    components : None: `Tokenizer`, `TreebankTagger`, `Lemmatizer` and `Parser`, as far as the treebank has what they learn;
        or a list of such, trained or not, and of any objects with a method `predict(sentences)`, see
        `crfkit.pipeline.Component`
    folds : each component is trained on what those before it predict for sentences that they have not seen: they are trained
        so many times on the rest of the treebank (jack-knifing)
    n_threads : None: all processors. The results do not depend on it, to the last bit.
    words : a `WordList` of the language, or a list of words, for the tagger, where `components` is None
    resources : {name: `Lexicon`, `Clusters` or `WordVectors`} for the tagger, where `components` is None. The model file
        names them, or holds them: `save(bundle=True)`
    clusters, vectors : `Clusters` and `WordVectors` for the parser, where `components` is None. The model file holds them.

    Attributes
    ----------
    tokenizer_ : the trained `Tokenizer`, or None
    components_ : the other components, trained, in their order
    left_out_ : what could not be trained → why
    interrupted_ : the component at which Ctrl-C or SIGTERM ended training, or None; those behind it are missing

    Examples
    --------
    >>> from crfkit.data import Word
    >>> def sentence(verb):
    ...     words = [Word("Dogs", "dog", "NOUN", head=2, deprel="nsubj"), Word(verb, verb, "VERB", head=0, deprel="root")]
    ...     return Sentence([*words, Word(".", ".", "PUNCT", head=2, deprel="punct")])
    >>> treebank = [sentence(verb) for verb in ("bark", "sleep", "run", "eat") * 5]
    >>> pipeline = Pipeline(folds=2).fit(treebank)
    >>> for word in pipeline("Dogs sleep .")[0].words:
    ...     print(word.form, word.lemma, word.upos, word.head, word.deprel)
    Dogs dog NOUN 2 nsubj
    sleep sleep VERB 0 root
    . . PUNCT 2 punct
    """

    tokenizer_: Tokenizer | None
    components_: list[Component]
    left_out_: dict[str, str]
    interrupted_: str | None

    _kind = "pipeline"

    def __init__(
        self,
        components: Sequence[Any] | None = None,
        folds: int = 5,
        n_threads: int | None = None,
        words: WordList | Iterable[str] | None = None,
        resources: Mapping[str, Resource | MissingResource] | None = None,
        clusters: Clusters | None = None,
        vectors: WordVectors | None = None,
    ) -> None:
        self.components = components
        self.folds = folds
        self.n_threads = n_threads
        self.words = words if words is None or isinstance(words, WordList) else WordList(words)
        self.resources = resources
        self.clusters, self.vectors = clusters, vectors

    def fit(
        self,
        sentences: Iterable[Sentence],
        *,
        dev: Iterable[Sentence] | None = None,
        callback: ProgressCallback | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        verbose: bool | int | str = False,
    ) -> Self:
        """Train all components on the sentences of a treebank, one after the other.

        With `dev` sentences, taggers and parser keep the weights that are best on them. `callback` sees the `Progress` of
        the iterations of all components. Ctrl-C and SIGTERM end training with a warning: the components that are trained
        until then are kept. `checkpoint` is a folder that keeps what is finished; the same call goes on from there.
        """
        from crfkit.pipeline.training import Knowledge, Training

        given_parser = {"clusters": self.clusters, "vectors": self.vectors}
        knowledge = Knowledge(self.words, self.resources, given_parser)
        training = Training(self.components, self.folds, self.n_threads, callback, verbose, knowledge)
        given = check_sentences(sentences)
        trained = training.run(given, None if dev is None else check_sentences(dev, "dev"), checkpoint)
        self._set_trained(trained.tokenizer, trained.components, trained.left_out)
        self.interrupted_ = trained.interrupted
        return self

    def __call__(self, text: str, **options: Any) -> list[Sentence]:
        """The sentences of a text; options as for `stream`."""
        if not isinstance(text, str):
            raise ArgumentError(f"text is of type {type(text).__name__}, expected a string")
        return list(self.stream([text], **options))

    def stream(
        self,
        pieces: Iterable[str],
        *,
        input: str = "auto",
        keep_tags: bool = False,
        ranges: bool = False,
        probabilities: bool = False,
        batch: int = BATCH,
        name: str | None = None,
    ) -> Iterator[Sentence]:
        """The sentences of a text that comes in pieces, such as the lines of a file; memory stays bounded.

        `input`: "text", raw text in which blank lines separate paragraphs; "sentences", one on each line; "tokens", one
        sentence on each line with blanks between its words; "conllu", whose words are taken as they are; "auto": CoNLL-U if
        the first line is such, else raw text. `keep_tags` keeps the lemmas and tags of CoNLL-U, where it has them. `ranges`
        adds TokenRange to the MISC of raw text, `probabilities` those of tokens, tags and heads. `batch` sentences are
        analysed at once. Errors call the input `name` (the default is the name of an open file).
        """
        check_format(input)
        self._check_trained()
        found = read_sentences(
            pieces,
            input,
            self.tokenizer_,
            self.n_threads,
            ranges=ranges,
            probabilities=probabilities,
            name=name,
        )
        while sentences := list(islice(found, batch)):
            yield from self.predict(sentences, keep_tags=keep_tags, probabilities=probabilities)

    def predict(
        self, sentences: Iterable[Sentence], *, keep_tags: bool = False, probabilities: bool = False
    ) -> list[Sentence]:
        """Copies of sentences with tags, lemmas and trees; their tokens stay as they are. Options as for `stream`."""
        self._check_trained()
        found = [without_analysis(sentence, keep_tags=keep_tags) for sentence in check_sentences(sentences)]
        for component in self.components_:
            found = run_component(
                component,
                found,
                probabilities=probabilities,
                keep_tags=keep_tags,
                n_threads=self.n_threads,
            )
        return found

    def to_file(
        self,
        *,
        single_precision: bool = True,
        metadata: Mapping[str, Any] | None = None,
        bundle: bool = False,
    ) -> ModelFile:
        """What the model file holds."""
        from crfkit.pipeline import pipeline_file

        self._check_trained()
        return pipeline_file.pack(self, single_precision=single_precision, metadata=metadata, bundle=bundle)

    def describe(self) -> str:
        """The components, one on each line."""
        self._check_trained()
        names = [component_name(part) for part in (self.tokenizer_, *self.components_) if part is not None]
        return "\n".join([*names, *(f"no {name}: {reason}" for name, reason in self.left_out_.items())])

    def _facts(self) -> dict[str, object] | None:
        if not hasattr(self, "components_"):
            return None
        parts = [self.tokenizer_, *self.components_]
        names = ", ".join(component_name(part) for part in parts if part is not None)
        return {
            "components": names,
            "left out": "; ".join(f"{name}: {reason}" for name, reason in self.left_out_.items()) or None,
            "interrupted at": self.interrupted_,
        }

    def _views(self) -> list[tuple[str, Any]]:
        parts = [self.tokenizer_, *self.components_]
        return [(component_name(part), part) for part in parts if part is not None]

    def _set_trained(
        self, tokenizer: Tokenizer | None, components: list[Component], left_out: dict[str, str]
    ) -> None:
        self.tokenizer_, self.components_, self.left_out_ = tokenizer, components, left_out
        self.interrupted_ = None

    def _check_trained(self) -> None:
        if hasattr(self, "components_"):
            return
        if self.components is None:
            raise NotFittedError("This Pipeline is not trained: call fit, or load a trained one.")
        self._set_trained(*check_components(self.components), {})  # which were trained before
