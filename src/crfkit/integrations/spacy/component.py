"""The component "crfkit" of spaCy's pipelines."""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from spacy.language import Language
from spacy.pipeline import Pipe
from spacy.scorer import Scorer, get_ner_prf
from spacy.tokens import Doc
from spacy.training import Example
from spacy.util import SimpleFrozenList, from_bytes, from_disk, to_bytes, to_disk

from crfkit.data import Sentence
from crfkit.errors import ArgumentError
from crfkit.evaluation import scheme_of
from crfkit.integrations.spacy.annotation import (
    add_extensions,
    in_document,
    set_entities,
    set_tags,
    set_trees,
    set_words,
)
from crfkit.integrations.spacy.doc_sequences import (
    ANNOTATIONS,
    ENTITIES,
    PARSE,
    POS,
    TAG,
    doc_sentences,
    positions,
    split,
)
from crfkit.integrations.spacy.training import SentenceModel, train
from crfkit.models import CRF, NotFittedError, Parser, decode_model_file, encode_model_file
from crfkit.pipeline import Pipeline, load, load_file, run_component

MODEL, SETTINGS = "model.crf", "cfg"
UPOS = frozenset(
    [
        "ADJ",
        "ADP",
        "ADV",
        "AUX",
        "CCONJ",
        "DET",
        "INTJ",
        "NOUN",
        "NUM",
        "PART",
        "PRON",
        "PROPN",
        "PUNCT",
        "SCONJ",
        "SYM",
        "VERB",
        "X",
    ]
)


@Language.factory(
    "crfkit",
    default_config={
        "model": None,
        "annotates": "auto",
        "columns": ["text"],
        "threshold": None,
        "likely": None,
        "overwrite": True,
        "spans_key": None,
    },
)
def make_component(
    nlp: Language,
    name: str,
    model: str | Path | None,
    annotates: str,
    columns: list[str],
    threshold: float | None,
    likely: float | None,
    overwrite: bool,
    spans_key: str | None,
) -> "CRFComponent":
    """What `nlp.add_pipe("crfkit", config={…})` makes: a `CRFComponent`."""
    return CRFComponent(
        model,
        name,
        annotates=annotates,
        columns=columns,
        threshold=threshold,
        likely=likely,
        overwrite=overwrite,
        spans_key=spans_key,
    )


class CRFComponent(Pipe):
    """Annotates documents by a crfkit model: a `CRF`, `Parser`, `TreebankTagger`, `Lemmatizer` or `Pipeline`.

    model : the model, trained or not, or the path of its file; None: one is made by `fit` or `nlp.initialize`
    annotates : what a `CRF` predicts: "entities", "tag" (token.tag_), "pos" (token.pos_); "auto": as its labels look. For a
        component without a model it says what is to be learned; "parse" makes a `Parser`.
    columns : attributes of tokens that a `CRF` reads, in the order of its columns
    threshold : entities that are less likely are left out
    likely : all spans with at least this probability are kept in `doc._.crfkit_spans`, overlapping ones too
    overwrite : entities that other components have set are replaced; else only free tokens get entities
    spans_key : the spans of `doc._.crfkit_spans` are also put into `doc.spans[spans_key]`
    """

    def __init__(
        self,
        model: Any = None,
        name: str = "crfkit",
        *,
        annotates: str = "auto",
        columns: Sequence[str] = ("text",),
        threshold: float | None = None,
        likely: float | None = None,
        overwrite: bool = True,
        spans_key: str | None = None,
    ) -> None:
        if annotates not in ("auto", *ANNOTATIONS):
            raise ArgumentError(f"annotates is {annotates!r}, expected auto, {', '.join(ANNOTATIONS)}")
        add_extensions()
        self.name = name
        self.annotates = annotates
        self.columns = list(columns)
        self.threshold = threshold
        self.likely = likely
        self.overwrite = overwrite
        self.spans_key = spans_key
        # A path is read when the model is first needed: a pipeline that is loaded brings its own.
        self._path = Path(model) if isinstance(model, str | Path) else None
        self._model = None if self._path is not None else model

    @property
    def model(self) -> Any:
        """The crfkit model; None: there is none yet, or its file is not there."""
        if self._model is None and self._path is not None and self._path.exists():
            self._model = load(self._path)
        return self._model

    @model.setter
    def model(self, model: Any) -> None:
        self._model = model

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels of entities, tags or relations that the model has."""
        model = self.model
        if isinstance(model, CRF) and model.__sklearn_is_fitted__():
            names = map(str, model.classes_)
            if self._kind(model) == ENTITIES:
                return tuple(sorted({name.partition("-")[2] or name for name in names} - {"O"}))
            return tuple(names)
        return tuple(model.classes_) if isinstance(model, Parser) and model.__sklearn_is_fitted__() else ()

    @property
    def label_data(self) -> None:
        """None: labels are learned from the documents."""

    # ---- training

    def fit(self, docs: Iterable[Doc], *, dev: Iterable[Doc] | None = None, **options: Any) -> "CRFComponent":
        """Train the model on annotated documents; `options` are those of the model's `fit`."""
        annotates = ENTITIES if self.annotates == "auto" else self.annotates
        model = self.model
        if isinstance(model, CRF) and self.annotates == "auto" and model.__sklearn_is_fitted__():
            annotates = self._kind(model)
        self.model = train(docs, model, annotates=annotates, columns=self.columns, dev=dev, **options)
        return self

    def initialize(
        self,
        get_examples: Callable[[], Iterable[Example]],
        *,
        nlp: Language | None = None,
        **options: Any,
    ) -> None:
        """Train on the annotated documents of the examples; called by `nlp.initialize`.

        Where these have nothing to learn from, a trained model stays as it is.
        """
        docs = [example.reference for example in get_examples()]
        kind = ENTITIES if self.annotates == "auto" else self.annotates
        fields = {ENTITIES: "ENT_IOB", TAG: "TAG", POS: "POS", PARSE: "DEP"}
        if isinstance(self.model, SentenceModel):
            known = any(doc.has_annotation(field) for doc in docs for field in ("TAG", "POS", "LEMMA", "DEP"))
        else:
            known = any(doc.has_annotation(fields[kind]) for doc in docs)
        if known or self.model is None:
            self.fit(docs, **options)

    # ---- prediction

    def __call__(self, doc: Doc) -> Doc:
        """Annotate a document."""
        [found] = self.pipe([doc], batch_size=1)
        return found

    def pipe(self, stream: Iterable[Doc], *, batch_size: int = 128) -> Iterator[Doc]:
        """Annotate documents, a batch at a time."""
        documents = iter(stream)
        while batch := list(islice(documents, batch_size)):
            try:
                self.annotate(batch)
            except Exception as error:
                self.get_error_handler()(self.name, self, batch, error)
                continue
            yield from batch

    def annotate(self, docs: Sequence[Doc]) -> None:
        """Annotate documents, all at once."""
        model = self.model
        if model is None and self._path is not None:
            load(self._path)  # which says what is wrong with the file
        if model is None:
            raise NotFittedError(
                f"the component {self.name!r} has no model: give one, or call fit or nlp.initialize"
            )
        if isinstance(model, SentenceModel):
            self._annotate_sentences(model, docs)
        elif isinstance(model, CRF):
            self._annotate_sequences(model, docs)
        else:
            raise ArgumentError(
                f"the model is of type {type(model).__name__}, expected a CRF, a Parser or the like"
            )

    def _annotate_sequences(self, model: CRF[Any], docs: Sequence[Doc]) -> None:
        pieces = [split(doc) for doc in docs]
        as_text = model.n_columns_ is not None
        X = [positions(tokens, self.columns, as_text=as_text) for found in pieces for tokens in found]
        kind = self._kind(model)
        if kind != ENTITIES:
            self._annotate_tags(model, pieces, X, f"{kind}_")
            return
        best = iter(model.predict_spans(X, self.threshold, decode="viterbi"))
        likely = iter([] if self.likely is None else model.predict_spans(X, self.likely))
        for doc, found in zip(docs, pieces, strict=True):
            entities = [span for tokens in found for span in in_document(tokens, next(best))]
            others = [span for tokens in found for span in in_document(tokens, next(likely, []))]
            set_entities(doc, entities, others, overwrite=self.overwrite, spans_key=self.spans_key)

    def _annotate_tags(self, model: CRF[Any], pieces: list[Any], X: list[Any], name: str) -> None:
        ids = {label: k for k, label in enumerate(model.classes_)}
        answers = zip(model.predict(X), model.predict_marginals(X), strict=True)
        for tokens in (tokens for found in pieces for tokens in found):
            tags, table = next(answers)
            sure = [row[ids[tag]] for row, tag in zip(table, tags, strict=True)]
            set_tags(tokens, [str(tag) for tag in tags], sure, name)

    def _annotate_sentences(self, model: Any, docs: Sequence[Doc]) -> None:
        pieces = [split(doc) for doc in docs]
        answers = iter(_analyse(model, [sentence for doc in docs for sentence in doc_sentences(doc)]))
        for doc, found in zip(docs, pieces, strict=True):
            pairs = [(tokens, next(answers).words) for tokens in found]
            for tokens, words in pairs:
                set_words(tokens, words)
            if pairs and all(word.head is not None for _, words in pairs for word in words):
                set_trees(doc, pairs)

    def _kind(self, model: CRF[Any]) -> str:
        """What a `CRF` annotates: as it was said, or as its labels look."""
        if self.annotates != "auto":
            return self.annotates
        if scheme_of(model.classes_) is not None:
            return ENTITIES
        return POS if {str(label) for label in model.classes_} <= UPOS else TAG

    # ---- scores

    def score(self, examples: Iterable[Example], **options: Any) -> dict[str, Any]:
        """What `nlp.evaluate` shows: precision, recall and F1 of entities, accuracy of tags, attachment scores."""
        examples = list(examples)
        model = self.model
        if isinstance(model, CRF):
            kind = self._kind(model)
            return (
                dict(get_ner_prf(examples)) if kind == ENTITIES else Scorer.score_token_attr(examples, kind)
            )
        scores: dict[str, Any] = {}
        for attribute in (POS, TAG, "lemma"):
            scores |= Scorer.score_token_attr(examples, attribute)
        if isinstance(model, Parser | Pipeline):
            scores |= Scorer.score_deps(examples, "dep", ignore_labels=("punct", "p"))
        return {name: value for name, value in scores.items() if value is not None}

    # ---- files

    def to_bytes(self, *, exclude: Iterable[str] = SimpleFrozenList()) -> bytes:
        """The model and the settings of the component, as `nlp.to_bytes` keeps them."""
        return bytes(to_bytes({SETTINGS: self._settings, "model": self._model_bytes}, exclude))

    def from_bytes(self, data: bytes, *, exclude: Iterable[str] = SimpleFrozenList()) -> "CRFComponent":
        """The inverse of `to_bytes`."""
        from_bytes(data, {SETTINGS: self._set_settings, "model": self._read_model}, exclude)
        return self

    def to_disk(self, path: str | Path, *, exclude: Iterable[str] = SimpleFrozenList()) -> None:
        """Write the model and the settings into a folder, as `nlp.to_disk` does; `crfkit.load` reads its `model.crf`."""

        def write_model(file: Path) -> None:
            if data := self._model_bytes():
                file.write_bytes(data)

        to_disk(
            path,
            {
                SETTINGS: lambda file: file.write_text(
                    json.dumps(self._settings(), indent=1), encoding="utf-8"
                ),
                MODEL: write_model,
            },
            exclude,
        )

    def from_disk(self, path: str | Path, *, exclude: Iterable[str] = SimpleFrozenList()) -> "CRFComponent":
        """The inverse of `to_disk`."""

        def read_model(file: Path) -> None:
            if file.exists():
                self.model = load(file)

        from_disk(
            path,
            {
                SETTINGS: lambda file: self._set_settings(json.loads(file.read_text(encoding="utf-8"))),
                MODEL: read_model,
            },
            exclude,
        )
        return self

    def _settings(self) -> dict[str, Any]:
        names = ("annotates", "columns", "threshold", "likely", "overwrite", "spans_key")
        return {name: getattr(self, name) for name in names}

    def _set_settings(self, settings: dict[str, Any]) -> None:
        for name, value in settings.items():
            setattr(self, name, value)

    def _model_bytes(self) -> bytes:
        """The model file; no bytes where there is no trained model."""
        model = self.model
        if model is None or not _is_trained(model):
            return b""
        return encode_model_file(model.to_file(single_precision=False))

    def _read_model(self, data: bytes) -> None:
        if data:
            source = f"the model of the component {self.name!r}"
            self.model = load_file(decode_model_file(data, source), source)


def _analyse(model: Any, sentences: list[Sentence]) -> list[Sentence]:
    """The sentences with what the model predicts, and the probabilities in MISC."""
    if isinstance(model, Pipeline):
        return model.predict(sentences, probabilities=True)
    return run_component(model, sentences, probabilities=True, n_threads=model.n_threads)


def _is_trained(model: Any) -> bool:
    fitted = getattr(model, "__sklearn_is_fitted__", None)
    if fitted is not None:
        return bool(fitted())
    return model._facts() is not None
