"""The tokenizer: from raw text to sentences of words."""

import warnings
from collections.abc import Generator, Iterable, Iterator, Mapping
from typing import Any, Self

from crfkit.data import Sentence
from crfkit.errors import ArgumentError, EmptyDataError
from crfkit.features import check_sentences
from crfkit.models import (
    CRF,
    LOGGER,
    Checkpoint,
    ConvergenceWarning,
    ModelFile,
    NotFittedError,
    ProgressCallback,
)
from crfkit.optimizers import LBFGS, Optimizer
from crfkit.pipeline.multiwords import MultiwordSplitter
from crfkit.pipeline.paragraphs import Paragraph, ParagraphReader, read_lines
from crfkit.pipeline.saved_model import SavedModel
from crfkit.pipeline.text_units import UnitReader
from crfkit.pipeline.token_labels import (
    AnnotatedText,
    annotate,
    decode,
    has_inner_boundaries,
    has_inner_spaces,
)
from crfkit.pipeline.token_sentences import SentenceBuilder
from crfkit.pipeline.written_text import tokens_of

LONGEST = 20_000  # characters of a paragraph that are tokenized at once
BATCH = 50_000  # characters of paragraphs that are tokenized together
MOST_TOKENS = 1000  # of a sentence: one that goes on is a list or a table, and costs a parser much memory
UNITS = ("auto", "runs", "characters")


class Tokenizer(SavedModel):
    """Splits raw text into sentences, tokens and words, as a treebank does: a `CRF` over the characters of the text.

    Each position of the chain is a run of letters, a run of digits or another character. Its label says whether a sentence
    or a token begins there, and whether the token is one of several words, which a dictionary and rules then give.

    Parameters
    ----------
    units : what is a position: "runs" as above, "characters" for languages in which tokens begin inside runs of letters
        (Chinese, Japanese, Thai), "auto": as the training set has it
    optimizer, l2, min_count, n_threads : as for `CRF`

    Attributes
    ----------
    crf_ : the trained `CRF`
    units_ : "runs" or "characters"
    splitter_ : the `MultiwordSplitter`

    Examples
    --------
    >>> from crfkit.data import Word
    >>> no_space = "SpaceAfter=No"
    >>> seen = [
    ...     Sentence([Word("Dogs"), Word("bark", misc=no_space), Word(".")]),
    ...     Sentence([Word("Cats"), Word("sleep", misc=no_space), Word("!")]),
    ... ]
    >>> tokenizer = Tokenizer().fit(seen * 5)
    >>> for sentence in tokenizer.predict("Dogs sleep. Cats bark!"):
    ...     print([word.form for word in sentence.words])
    ['Dogs', 'sleep', '.']
    ['Cats', 'bark', '!']
    """

    crf_: CRF[Any]
    units_: str
    splitter_: MultiwordSplitter
    spaces_inside_: bool  # whether tokens hold white space

    _kind = "tokenizer"

    def __init__(
        self,
        units: str = "auto",
        optimizer: Optimizer | str = LBFGS(max_iterations=80),  # noqa: B008 (frozen)
        l2: float = 0.2,
        min_count: int = 1,
        n_threads: int | None = None,
    ) -> None:
        self.units = units
        self.optimizer = optimizer
        self.l2 = l2
        self.min_count = min_count
        self.n_threads = n_threads

    def fit(
        self,
        sentences: Iterable[Sentence],
        *,
        dev: Iterable[Sentence] | None = None,
        patience: int | None = None,
        callback: ProgressCallback | None = None,
        time_budget: float | None = None,
        checkpoint: Checkpoint | None = None,
        verbose: bool | int | str = False,
    ) -> Self:
        """Train on the sentences of a treebank: their tokens, `SpaceAfter=No` in MISC, `# newpar` and `# newdoc`.

        With `dev` sentences, the weights with the highest accuracy of labels on their text are kept. Other arguments as for
        `CRF.fit`; so are Ctrl-C and SIGTERM.
        """
        given = check_sentences(sentences)
        if not given:
            raise EmptyDataError("there is no sentence to learn tokens from")
        texts = annotate(given)
        self.units_ = self._choose_units(texts)
        self._reader = UnitReader(characters=self.units_ == "characters")
        if all(token.spaces_after for sentence in given for token in tokens_of(sentence)):
            LOGGER.warning("no token has SpaceAfter=No: the tokenizer learns to split at white space alone")
        X, y = self._examples(texts)
        held_out = None if dev is None else self._examples(annotate(check_sentences(dev, "dev")))
        crf: CRF[Any] = CRF(
            features=self._reader.template,
            optimizer=self.optimizer,
            l2=self.l2,
            min_count=self.min_count,
            n_threads=self.n_threads,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # more iterations do not help on other texts
            self.crf_ = crf.fit(
                X,
                y,
                dev=held_out,
                metric=None if dev is None else "accuracy",
                patience=patience,
                callback=callback,
                time_budget=time_budget,
                checkpoint=checkpoint,
                verbose=verbose,
            )
        self.spaces_inside_ = has_inner_spaces(given)
        self.splitter_ = MultiwordSplitter.learn(
            (token.form, [word.form for word in sentence.words[token.first - 1 : token.last]])
            for sentence in given
            for token in tokens_of(sentence)
            if token.is_multiword
        )
        return self

    def predict(
        self, text: str, *, lines: bool = False, ranges: bool = False, probabilities: bool = False
    ) -> list[Sentence]:
        """The sentences of a text; `raw_text` of them is the text again, if it is not white space alone.

        A sentence of more than 1,000 tokens is split, with a warning. With `lines`, each line is a sentence, however long.
        With `ranges`, MISC has the characters that a token covers, `TokenRange=0:5`. With `probabilities`, it has
        `TokenProb`, the lower one of the probabilities that a token begins and that one ends there; a comment of each
        sentence has that of its beginning.
        """
        if not isinstance(text, str):
            raise ArgumentError(f"text is of type {type(text).__name__}, expected a string")
        return list(self.stream([text], lines=lines, ranges=ranges, probabilities=probabilities))

    def stream(
        self,
        pieces: Iterable[str],
        *,
        lines: bool = False,
        ranges: bool = False,
        probabilities: bool = False,
    ) -> Iterator[Sentence]:
        """The sentences of a text that comes in pieces, such as the lines of a file; memory stays bounded.

        Options as for `predict`. Where the pieces end makes no difference.
        """
        crf = self._trained()
        builder = SentenceBuilder(self.splitter_, ranges=ranges)
        reader = None if lines else ParagraphReader(pieces, LONGEST)
        source = read_lines(pieces) if reader is None else iter(reader.read, None)
        batch: list[Paragraph] = []
        size = 0
        for paragraph in source:
            batch.append(paragraph)
            size += len(paragraph.text)
            if size >= BATCH or not paragraph.ends:
                rest = yield from self._tokenize(
                    crf, builder, batch, lines=lines, probabilities=probabilities
                )
                if reader is not None:
                    reader.give_back(rest)
                batch, size = [], 0
        if batch:
            yield from self._tokenize(crf, builder, batch, lines=lines, probabilities=probabilities)

    def to_file(
        self,
        *,
        single_precision: bool = True,
        metadata: Mapping[str, Any] | None = None,
        bundle: bool = False,
    ) -> ModelFile:
        """What the model file holds, for a file that has it as a part; there are no resources to `bundle`."""
        from crfkit.pipeline import tokenizer_file

        self._trained()
        return tokenizer_file.pack(self, single_precision=single_precision, metadata=metadata)

    def _facts(self) -> dict[str, object] | None:
        if not hasattr(self, "crf_"):
            return None
        return {"positions": self.units_, "features": f"{self.crf_.n_features_:,}"}

    def _views(self) -> list[tuple[str, Any]]:
        return [("CRF over characters", self.crf_)]

    def _trained(self) -> CRF[Any]:
        if not hasattr(self, "crf_"):
            raise NotFittedError("This Tokenizer is not trained: call fit, or load a trained one.")
        if self.crf_.n_threads != self.n_threads:
            self.crf_.set_params(n_threads=self.n_threads)
        return self.crf_

    def _set_trained(
        self, crf: CRF[Any], units: str, splitter: MultiwordSplitter, *, spaces_inside: bool
    ) -> None:
        """What a model file holds."""
        self.crf_, self.units_, self.splitter_, self.spaces_inside_ = crf, units, splitter, spaces_inside
        self._reader = UnitReader(characters=units == "characters")

    def _choose_units(self, texts: list[AnnotatedText]) -> str:
        if self.units not in UNITS:
            expected = " or ".join(map(repr, UNITS))
            raise ArgumentError(f"units is {self.units!r}, expected {expected}")
        if self.units != "auto":
            return self.units
        return "characters" if has_inner_boundaries(texts) else "runs"

    def _examples(self, texts: list[AnnotatedText]) -> tuple[list[Any], list[Any]]:
        """Rows and labels of the positions of texts."""
        X, y = [], []
        for text, labels in texts:
            units = self._reader.read(text)
            X.append(units.rows)
            y.append([labels.get(start, "I") for start in units.starts])
        return X, y

    def _tokenize(
        self,
        crf: CRF[Any],
        builder: SentenceBuilder,
        batch: list[Paragraph],
        *,
        lines: bool,
        probabilities: bool,
    ) -> Generator[Sentence, None, int]:
        """The sentences of paragraphs; of one that goes on, all but the last, whose number of characters is returned."""
        units = [self._reader.read(paragraph.text) for paragraph in batch]
        X = [found.rows for found in units]
        allowed = None
        if lines:
            first = {label for label in crf.classes_ if label.startswith("S")}
            others = set(crf.classes_) - first
            allowed = [[first, *[others] * (len(rows) - 1)] for rows in X]
        labels = crf.predict(X, allowed=allowed)
        tables: list[Any] = [None] * len(X)
        if probabilities:
            tables = crf.predict_marginals(X, allowed=allowed)
        rest = 0
        for paragraph, found, own, table in zip(batch, units, labels, tables, strict=True):
            tokens = decode(found, own, spaces_inside=self.spaces_inside_)
            if not paragraph.ends:
                rest = tokens.drop_last(len(paragraph.text))
            if not lines and tokens.split_long(MOST_TOKENS) > MOST_TOKENS:
                LOGGER.warning(
                    "the text has no end of a sentence for %d tokens from character %d on: split after every %d",
                    MOST_TOKENS,
                    paragraph.start,
                    MOST_TOKENS,
                )
            if table is not None:
                tokens.add_probabilities(table, crf.classes_)
            yield from builder.build(paragraph, tokens, len(paragraph.text) - rest)
        return rest
