"""Tokens and words of two treebanks of one text, aligned as the CoNLL-2018 shared task aligns them.

The characters of all tokens, without spaces, are the text: it is the same for both. Tokens and sentences are spans of
it. A word that is a token of its own is aligned with a word of the same span. The words of multi-word tokens have no
span of their own: where multi-word tokens of either treebank overlap, the words below them are aligned by the longest
common subsequence of their forms, lower and upper case being alike.
"""

import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from crfkit.data import Sentence
from crfkit.errors import FileFormatError, ShapeError

_SHOWN = 20  # characters of a text that differs

Interval = tuple[int, int]  # first character and the one after the last


@dataclass
class TokenSpans:
    """Where the sentences, tokens and words of a treebank are in its text."""

    text: str = ""
    sentences: list[Interval] = field(default_factory=list)
    tokens: list[Interval] = field(default_factory=list)
    token_words: list[tuple[int, int]] = field(default_factory=list)  # sentence, number of its first word
    words: list[Interval] = field(default_factory=list)  # of the token that the word is in
    parts: list[bool] = field(default_factory=list)  # whether that token has several words
    forms: list[str] = field(default_factory=list)  # of the words, in lower case

    @classmethod
    def of(cls, sentences: Iterable[Sentence]) -> "TokenSpans":
        """Of sentences in the order of their text."""
        found, pieces, end = cls(), list[str](), 0
        for n, sentence in enumerate(sentences):
            begin = end
            for first, last, form in _tokens(sentence):
                letters = _without_spaces(form)
                if not letters:
                    place = sentence.place(first)
                    raise FileFormatError(f"{place}: the FORM is empty, expected at least one character")
                span = (end, end + len(letters))
                end = span[1]
                pieces.append(letters)
                found.tokens.append(span)
                found.token_words.append((n, first))
                is_part = last > first
                for word in sentence.words[first - 1 : last]:
                    found.words.append(span)
                    found.parts.append(is_part)
                    found.forms.append((word.form if is_part else letters).lower())
            found.sentences.append((begin, end))
        found.text = "".join(pieces)
        return found


def check_texts(
    gold: TokenSpans,
    system: TokenSpans,
    gold_sentences: Sequence[Sentence],
    system_sentences: Sequence[Sentence],
) -> None:
    """Refuse treebanks of different texts, with the first characters that differ and where they are."""
    if gold.text == system.text:
        return
    both = zip(gold.text, system.text, strict=False)
    same = next((i for i, (a, b) in enumerate(both) if a != b), min(len(gold.text), len(system.text)))
    before = f"after {gold.text[max(0, same - _SHOWN) : same]!r}" if same else "at the beginning"
    raise ShapeError(
        f"{_place(gold, gold_sentences, same)}: the texts differ {before}: gold has {_rest(gold.text, same)}, the system "
        f"({_place(system, system_sentences, same)}) {_rest(system.text, same)}; expected the same characters, apart "
        "from spaces"
    )


def align_words(gold: TokenSpans, system: TokenSpans) -> list[int | None]:
    """For each word of the system the gold word (its place) that it is aligned with, or None."""
    return _Walk(gold, system).run()


class _Walk:
    """Goes through both lists of words at once."""

    def __init__(self, gold: TokenSpans, system: TokenSpans) -> None:
        self.gold = gold
        self.system = system
        self.aligned: list[int | None] = [None] * len(system.words)
        self.g = self.s = 0  # the next word of each

    def run(self) -> list[int | None]:
        gold, system = self.gold, self.system
        while self.g < len(gold.words) and self.s < len(system.words):
            if gold.parts[self.g] or system.parts[self.s]:
                self.align_stretch()
            elif gold.words[self.g] == system.words[self.s]:
                self.aligned[self.s] = self.g
                self.g += 1
                self.s += 1
            elif gold.words[self.g][0] <= system.words[self.s][0]:
                self.g += 1
            else:
                self.s += 1
        return self.aligned

    def align_stretch(self) -> None:
        """Align the words of multi-word tokens that overlap, and the words between their ends."""
        gold, system = self.gold, self.system
        if gold.parts[self.g]:
            end = gold.words[self.g][1]
            if not system.parts[self.s] and system.words[self.s][0] < gold.words[self.g][0]:
                self.s += 1  # reaches into the stretch from outside
        else:
            end = system.words[self.s][1]
            if gold.words[self.g][0] < system.words[self.s][0]:
                self.g += 1
        first_gold, first_system = self.g, self.s
        while True:
            more_gold, more_system = _is_before(gold, self.g, end), _is_before(system, self.s, end)
            if not (more_gold or more_system):
                break
            # the word that begins first, in whichever list it is
            if self.s >= len(system.words) or (
                self.g < len(gold.words) and gold.words[self.g][0] <= system.words[self.s][0]
            ):
                end = _extend(gold, self.g, end)
                self.g += 1
            else:
                end = _extend(system, self.s, end)
                self.s += 1
        for g, s in _common_subsequence(gold.forms[first_gold : self.g], system.forms[first_system : self.s]):
            self.aligned[first_system + s] = first_gold + g


def _is_before(spans: TokenSpans, word: int, end: int) -> bool:
    """Whether a word belongs to a stretch that ends there: a part begins before, any other word ends before."""
    if word >= len(spans.words):
        return False
    begin, stop = spans.words[word]
    return begin < end if spans.parts[word] else stop <= end


def _extend(spans: TokenSpans, word: int, end: int) -> int:
    return max(end, spans.words[word][1]) if spans.parts[word] else end


def _common_subsequence(a: list[str], b: list[str]) -> list[tuple[int, int]]:
    """Places of a longest common subsequence; equal forms that meet are always taken, otherwise `a` is passed first."""
    lengths = [[0] * (len(b) + 1) for _ in range(len(a) + 1)]  # of the rests from (i, j) on
    for i in reversed(range(len(a))):
        for j in reversed(range(len(b))):
            longest = max(lengths[i + 1][j], lengths[i][j + 1])
            lengths[i][j] = max(longest, 1 + lengths[i + 1][j + 1]) if a[i] == b[j] else longest
    pairs, i, j = [], 0, 0
    while i < len(a) and j < len(b):
        if a[i] == b[j]:
            pairs.append((i, j))
            i, j = i + 1, j + 1
        elif lengths[i][j] == lengths[i + 1][j]:
            i += 1
        else:
            j += 1
    return pairs


def _tokens(sentence: Sentence) -> Iterable[tuple[int, int, str]]:
    """First word, last word and written form of each token."""
    number = 1
    for multiword in sentence.multiwords:
        for single in range(number, multiword.first):
            yield single, single, sentence.words[single - 1].form
        yield multiword.first, multiword.last, multiword.form
        number = multiword.last + 1
    for single in range(number, len(sentence.words) + 1):
        yield single, single, sentence.words[single - 1].form


def _without_spaces(form: str) -> str:
    if form.isascii():
        return form.replace(" ", "")
    return "".join(character for character in form if unicodedata.category(character) != "Zs")


def _place(spans: TokenSpans, sentences: Sequence[Sentence], character: int) -> str:
    """File and line of the token with a character of the text, or of the last one."""
    if not spans.tokens:
        return "an empty treebank"
    token = next((i for i, (_, end) in enumerate(spans.tokens) if character < end), len(spans.tokens) - 1)
    sentence, number = spans.token_words[token]
    return sentences[sentence].place(number)


def _rest(text: str, begin: int) -> str:
    return repr(text[begin : begin + _SHOWN]) if begin < len(text) else "no more text"
