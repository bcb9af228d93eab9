"""What `crfkit tag --spans` writes: one line for each span, or one JSON object for each sequence."""

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from crfkit.cli.columns import Example
from crfkit.cli.constraints import allowed_of, name_places
from crfkit.cli.output_formats import PLAIN, Details
from crfkit.errors import ShapeError, UnsupportedError

if TYPE_CHECKING:
    from crfkit.models import CRF
    from crfkit.structures import Span

DECODINGS = ("viterbi", "marginal", "spans", "f1")
_TEXT = "# text = "  # a comment that has the text of a sequence, as in CoNLL-U


class SpanOptions(NamedTuple):
    """Which spans are written, and how."""

    spans: bool = False
    threshold: float | None = None
    decode: str | None = None
    json: bool = False

    def check(self, details: Details, form: str | None) -> None:
        """Refuse options that need --spans, and those that have no place beside it."""
        if not self.spans:
            for name, is_given in (("threshold", self.threshold is not None), ("json", self.json)):
                if is_given:
                    raise UnsupportedError(f"--{name} is about spans: add --spans")
            if self.decode is not None:
                _check_decode(details)
            return
        if self.decode == "marginal":
            raise UnsupportedError(
                "--decode marginal is about labels, expected viterbi, spans or f1 with --spans"
            )
        given = [name for name, value in details._asdict().items() if value != getattr(PLAIN, name)]
        if form is not None:
            given.append("format")
        if given:
            option = "--" + given[0].replace("_", "-")
            raise UnsupportedError(f"{option} is about labels, and --spans writes spans")


def _check_decode(details: Details) -> None:
    """Refuse what the labels of a decoding do not have."""
    for name in ("nbest", "probability", "scores", "posterior"):
        if getattr(details, name):
            other = "" if name == "posterior" else "; --posterior beside it chooses by marginals"
            raise UnsupportedError(f"--{name} does not go with --decode{other}")


def write_spans(
    model: "CRF", chunks: Iterable[Sequence[Example]], output: IO[str], options: SpanOptions
) -> None:
    """Write the spans of each sequence: its number (from 1), start, end, label, probability and text, between tabs.

    As JSON: an object for each sequence, with offsets in characters where a comment `# text = …` has the text of its words.
    """
    n = 0
    for chunk in all_at_once(chunks) if options.decode == "f1" else chunks:
        with name_places(chunk):
            found = model.predict_spans(
                [example.inputs for example in chunk],
                "auto" if options.threshold is None else options.threshold,
                decode=options.decode,
                allowed=allowed_of(chunk, model.classes_),
            )
        for example, spans in zip(chunk, found, strict=True):
            n += 1
            if options.json:
                output.write(json.dumps(_as_json(n, example, spans), ensure_ascii=False) + "\n")
                continue
            words = _words(example)
            for span in spans:
                text = " ".join(words[span.start : span.end])
                fields = (n, span.start, span.end, span.label, f"{span.probability:.6f}", text)
                output.write("\t".join(map(str, fields)) + "\n")
        output.flush()


def all_at_once(chunks: Iterable[Sequence[Example]]) -> Iterator[Sequence[Example]]:
    """Expected F1 is that of the whole file."""
    yield [example for chunk in chunks for example in chunk]


def _as_json(n: int, example: Example, spans: "Sequence[Span]") -> dict[str, Any]:
    from crfkit.data import token_offsets

    words = _words(example)
    given = next((line for line in example.origin.comments if line.startswith(_TEXT)), None)
    offsets, whole = None, ""
    if given is not None:
        whole = given[len(_TEXT) :]
        with suppress(ShapeError):  # other words than the text has
            offsets = token_offsets(whole, words)
    listed = []
    for span in spans:
        entry: dict[str, Any] = {**span._asdict(), "text": " ".join(words[span.start : span.end])}
        if offsets is not None:
            begin, end, *_ = span.in_characters(offsets)
            entry |= {"text": whole[begin:end], "begin_character": begin, "end_character": end}
        listed.append(entry)
    return {"sequence": n, "spans": listed}


def _words(example: Example) -> list[str]:
    """The first column of each row; nothing where positions have attributes."""
    return [row[0] if isinstance(row, tuple) else "" for row in example.inputs]
