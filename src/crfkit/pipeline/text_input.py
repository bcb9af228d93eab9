"""What a pipeline reads: raw text, one sentence a line, words with blanks between them, or CoNLL-U."""

from collections.abc import Iterable, Iterator
from itertools import chain

from crfkit.data import Sentence, Word, is_conllu, read_conllu
from crfkit.errors import ArgumentError
from crfkit.pipeline.paragraphs import split_lines
from crfkit.pipeline.tokenizer import Tokenizer

_LONGEST_LINE = 100_000  # characters after which a line without an end is no CoNLL-U
INPUT_FORMATS = ("auto", "text", "sentences", "tokens", "conllu")


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
) -> Iterator[Sentence]:
    """The sentences of input in one of the `INPUT_FORMATS`, with their words alone, or with all that CoNLL-U has."""
    if isinstance(pieces, str):
        pieces = [pieces]
    if form == "auto":
        form, pieces = recognise(pieces)
    if form == "conllu":
        yield from read_conllu(split_lines(pieces))
    elif form == "tokens":
        yield from _read_tokens(pieces)
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


def recognise(pieces: Iterable[str]) -> tuple[str, Iterable[str]]:
    """The format of a text, "conllu" or "text", by its first line that is no comment; and its pieces again."""
    seen: list[str] = []
    rest = iter(pieces)
    first = None
    for piece in rest:
        seen.append(piece)
        first = _first_line("".join(seen), whole="\n" in piece)
        if first is not None:
            break
    if first is None:
        first = _first_line("".join(seen) + "\n", whole=True) or ""
    return "conllu" if _begins_conllu(first.rstrip("\r").split("\t")) else "text", chain(seen, rest)


def _first_line(text: str, *, whole: bool) -> str | None:
    """The first line that is no comment; None while its end has not arrived."""
    if not whole and len(text) < _LONGEST_LINE:
        return None
    for line in text.removeprefix("\ufeff").split("\n")[: None if len(text) >= _LONGEST_LINE else -1]:
        if line.strip() and not line.startswith("#"):
            return line
    return None


def _begins_conllu(columns: list[str]) -> bool:
    """Whether a line is the first one of a sentence in CoNLL-U."""
    if len(columns) != 10:
        return False
    word = ["1", *columns[1:]]
    return is_conllu([word]) and (columns[0] == "1" or columns[0].startswith(("1-", "0.")))


def _read_tokens(pieces: Iterable[str]) -> Iterator[Sentence]:
    for number, line in enumerate(split_lines(pieces), 1):
        forms = line.split()
        if forms:
            yield Sentence(
                [Word(form) for form in forms], comments=[f"# text = {' '.join(forms)}"], line=number
            )
