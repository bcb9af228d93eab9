"""`crfkit tag` for column files and chains: chunks of the file are tagged by the core side by side, and written in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from crfkit.cli.columns import Example, examples_for_model
from crfkit.cli.model_input import Tagger
from crfkit.cli.output_formats import PLAIN, Details, Writer, write_column_form
from crfkit.cli.streams import ArrivingLines
from crfkit.data import read_byte_pieces, read_part

if TYPE_CHECKING:
    from crfkit.features import ColumnChunk, ColumnCutter
    from crfkit.models import ColumnTagger

CHUNK = 1 << 15  # bytes of a file that one thread tags at once: few enough that all threads end together
AHEAD = 2  # chunks for each thread that are read before the first of them is written


class Tagged(NamedTuple):
    """What is to be written next."""

    text: bytes
    n_sequences: int


def find_column_tagger(
    tagger: Tagger, write: Writer, details: Details, options: dict[str, Any]
) -> ColumnTagger | None:
    """What tags the file natively; None where model, options or the form of the output ask for the general code."""
    from crfkit.models import ColumnTagger

    other = options["spans"] or (options["decode"] or tagger.crf.decode_) != "viterbi"
    asked = details._replace(labels_only=False) != PLAIN or other
    if asked or write is not write_column_form or options["allowed_column"] is not None:
        return None
    if tagger.n_inputs is None or tagger.more_columns:
        return None
    found = ColumnTagger.of(tagger.crf)
    separators = {" ", "\t", "\n", "\r", options["separator"], tagger.form.separator} - {None}
    if found is None or any(not label or any(map(label.__contains__, separators)) for label in found.labels):
        return None  # such a label cannot be written in columns: an error, where it is found
    return found


class ColumnTagging:
    """Tags one file."""

    def __init__(
        self,
        tagger: Tagger,
        column_tagger: ColumnTagger,
        source: Path | ArrivingLines,
        *,
        separator: str | None,
        labels_only: bool,
        general: Callable[[list[Example]], bytes],
        n_threads: int,
    ) -> None:
        """`general` tags examples by the general code, which says what is wrong with them."""
        from crfkit.features import ColumnCutter

        self._tagger = tagger
        self._column_tagger = column_tagger
        self._source = source
        self._separator = separator
        self._labels_only = labels_only
        self._general = general
        self._n_threads = n_threads
        asked = tagger.form.separator if separator is None else separator
        self._name = source.name if isinstance(source, ArrivingLines) else str(source)
        self._asked = asked
        self._cutter: ColumnCutter = ColumnCutter(asked or "", "#", True)
        self._inputs: list[int] = []

    def run(self) -> Iterator[Tagged]:
        """The tagged file in pieces; what a stream has brought is not held back while it is waited for."""
        pending: deque[Future[Tagged]] = deque()
        with ThreadPoolExecutor(self._n_threads) as pool:
            try:
                for chunk in self._chunks():
                    if chunk is not None:
                        self._fix_inputs(chunk)
                        pending.append(pool.submit(self._tag, chunk))
                    while pending and (chunk is None or len(pending) > AHEAD * self._n_threads):
                        yield pending.popleft().result()
                while pending:
                    yield pending.popleft().result()
            finally:
                for future in pending:
                    future.cancel()

    def _chunks(self) -> Iterator[ColumnChunk | None]:
        """The chunks as they come; None where the next one has to be waited for."""
        source, cutter = self._source, self._cutter
        pieces = source.pieces() if isinstance(source, ArrivingLines) else read_byte_pieces(source, 8 * CHUNK)
        for piece in pieces:
            cutter.add(piece)
            while chunk := cutter.take(CHUNK):
                yield chunk
            if isinstance(source, ArrivingLines) and not source.has_arrived():
                if chunk := cutter.take(0):
                    yield chunk
                yield None
        cutter.end()
        found = False
        while chunk := cutter.take(CHUNK):
            found = True
            yield chunk
        if not found and not cutter.first_row:
            list(self._read(b"", 1))  # says that the file is empty

    def _fix_inputs(self, chunk: ColumnChunk) -> None:
        """The input columns, from the first sequence of the file, which the general code reads and checks."""
        if self._inputs:
            return
        first = next(islice(self._examples(chunk), 1), None)
        if first is None:
            return
        n = len(first.origin.rows[0])
        label = self._tagger.form.label_column % n if first.labels is not None else None
        self._inputs = [k for k in range(n) if k != label]

    def _tag(self, chunk: ColumnChunk) -> Tagged:
        tagged = None
        if self._inputs:
            tagged = self._column_tagger.tag(self._cutter, chunk, self._inputs, labels_only=self._labels_only)
        if tagged is not None:
            return Tagged(*tagged)
        examples = list(self._examples(chunk))
        return Tagged(self._general(examples), len(examples))

    def _examples(self, chunk: ColumnChunk) -> Iterator[Example]:
        form = self._tagger.form
        assert self._tagger.n_inputs is not None
        return examples_for_model(
            self._read(chunk.bytes, chunk.first_line),
            n_inputs=self._tagger.n_inputs,
            label_column=form.label_column,
            separator=self._separator,
            trained_separator=form.separator,
        )

    def _read(self, part: bytes, first_line: int) -> Iterator[Any]:
        first_row = self._cutter.first_row.decode("utf-8", "surrogateescape") if first_line > 1 else ""
        return read_part(
            part, self._name, first_line=first_line, first_row=first_row or None, separator=self._asked
        )


def write_tagged(pieces: Iterator[Tagged], output: IO[str], *, at_once: bool) -> None:
    """Write what was tagged; `at_once`, each piece reaches whoever reads the output before the next one is tagged."""
    binary: IO[bytes] = output.buffer  # type: ignore[attr-defined]
    output.flush()
    for text, _ in pieces:
        binary.write(text)
        if at_once:
            binary.flush()
    binary.flush()
