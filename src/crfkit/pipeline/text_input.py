"""What a pipeline reads: raw text, one sentence a line, words with blanks between them, or CoNLL-U."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain

from crfkit.data import Sentence, Word, is_conllu, read_conllu, source_name
from crfkit.errors import ArgumentError
from crfkit.pipeline.paragraphs import split_lines
from crfkit.pipeline.tokenizer import Tokenizer

_LONGEST_LINE = 100_000  # characters after which a line without an end is no CoNLL-U
INPUT_FORMATS = ("auto", "text", "sentences", "tokens", "conllu")
"""What the input of a pipeline may be; "auto" recognises it."""


def check_format(name: object) -> None:
    """Refuse what is no form of input."""
    if name not in INPUT_FORMATS:
        raise ArgumentError(f"input is {name!r}, expected one of {', '.join(INPUT_FORMATS)}")


def read_sentences(
    pieces: Iterable[str],
    form: str,
    tokenizer: Tokenizer | None,
    n_threads: int | None = None,
    *,
    ranges: bool = False,
    probabilities: bool = False,
    name: str | None = None,
) -> Iterator[Sentence]:
    """The sentences of input in one of the `INPUT_FORMATS`, with their words alone, or with all that CoNLL-U has.

    Errors call the input `name`; the default is the name of the stream, if it has one.
    """
    pieces = [pieces] if isinstance(pieces, str) else pieces
    name = name or (source_name(pieces) if hasattr(pieces, "name") else "<text>")
    pieces = _check_pieces(pieces)
    if form == "auto":
        form, pieces = recognise(pieces)
    if form == "conllu":
        yield from read_conllu(_NamedLines(split_lines(pieces), name))
    elif form == "tokens":
        yield from _read_tokens(pieces, name)
    elif tokenizer is None:
        raise ArgumentError(
            "the pipeline has no tokenizer, expected CoNLL-U or one sentence a line with blanks between words "
            '(input="tokens")'
        )
    else:
        tokenizer.n_threads = n_threads
        yield from tokenizer.stream(
            pieces, lines=form == "sentences", ranges=ranges, probabilities=probabilities
        )


@dataclass(frozen=True)
class _NamedLines:
    """Lines, and what errors call the place that they come from."""

    lines: Iterator[str]
    name: str

    def __iter__(self) -> Iterator[str]:
        return self.lines


def _check_pieces(pieces: Iterable[str]) -> Iterator[str]:
    """The same pieces; ArgumentError where one is no text."""
    for piece in pieces:
        if not isinstance(piece, str):
            raise ArgumentError(
                f"a piece of the text is of type {type(piece).__name__}, expected strings: open files as text"
            )
        yield piece


def recognise(pieces: Iterable[str]) -> tuple[str, Iterable[str]]:
    """The format of a text, "conllu" or "text", by its first line that is no comment; and its pieces again."""
    seen: list[str] = []
    rest = iter(pieces)
    first = _first_line(_recorded(rest, seen))
    return "conllu" if _begins_conllu(first.rstrip("\r\n").split("\t")) else "text", chain(seen, rest)


def _recorded(pieces: Iterator[str], seen: list[str]) -> Iterator[str]:
    """The same pieces; those that were read are in `seen`."""
    for piece in pieces:
        seen.append(piece)
        yield piece


def _first_line(pieces: Iterator[str]) -> str:
    """The first line that is no comment, or its beginning; no more pieces are read than it takes. "" where there is none."""
    line: list[str] = []  # as far as it has arrived
    length = 0
    is_first = True
    for piece in pieces:
        *ended, begun = piece.split("\n")
        for end in ended:
            whole = "".join([*line, end])
            whole, is_first = whole.removeprefix("\ufeff") if is_first else whole, False
            if whole.strip() and not whole.startswith("#"):
                return whole
            line, length = [], 0
        line.append(begun)
        length += len(begun)
        if length >= _LONGEST_LINE:
            return "".join(line)
    last = "".join(line).removeprefix("\ufeff" if is_first else "")
    return "" if last.startswith("#") else last


def _begins_conllu(columns: list[str]) -> bool:
    """Whether a line is the first one of a sentence in CoNLL-U."""
    if len(columns) != 10:
        return False
    word = ["1", *columns[1:]]
    return is_conllu([word]) and (columns[0] == "1" or columns[0].startswith(("1-", "0.")))


def _read_tokens(pieces: Iterable[str], name: str) -> Iterator[Sentence]:
    for number, line in enumerate(split_lines(pieces), 1):
        forms = line.split()
        if forms:
            yield Sentence(
                [Word(form) for form in forms],
                comments=[f"# text = {' '.join(forms)}"],
                line=number,
                source=name,
            )
