"""Templates of the features of words and of neighbouring words, as `feature.def` of MeCab's dictionaries lists them.

UNIGRAM U1:%F[0]            # a field of the word
UNIGRAM U2:%F[0],%F?[1]     # none where field 1 is "*" or empty
UNIGRAM U3:%F[0],%t         # the number of the class of its first character
UNIGRAM U4:%w,%u            # its form; all its fields
BIGRAM  B1:%L[0]/%R[0]      # a field of the word before, and of the word after
BIGRAM  B2:%l/%r            # all fields of the word after; of the word before
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from crfkit.errors import FileFormatError
from crfkit.features.words.csv_fields import join_fields
from crfkit.features.words.rewriting import Fields

_UNIGRAM = re.compile(r"%F(\??)\[(\d+)\]|%([tuw])")
_BIGRAM = re.compile(r"%[LR]\??\[\d+\]|%[lr]")


@dataclass(frozen=True)
class WordTemplates:
    """The templates of a dictionary."""

    unigrams: tuple[str, ...]
    bigrams: tuple[str, ...]

    def __post_init__(self) -> None:
        """Refuse what is no template."""
        for known, templates in ((_UNIGRAM, self.unigrams), (_BIGRAM, self.bigrams)):
            for template in templates:
                if "%" in known.sub("", template):
                    raise FileFormatError(f"the template {template!r} has a % that stands for nothing")

    @classmethod
    def parse(cls, lines: Iterable[str]) -> "WordTemplates":
        """From the lines of a `feature.def`."""
        found: dict[str, list[str]] = {"UNIGRAM": [], "BIGRAM": []}
        for number, line in enumerate(lines, 1):
            text = line.rstrip("\r\n")
            if not text or text[0] in "# ":
                continue
            columns = text.split(None, 1)
            if len(columns) != 2 or columns[0] not in found:
                raise FileFormatError(f"line {number}: {text!r}, expected UNIGRAM or BIGRAM and a template")
            found[columns[0]].append(columns[1])
        return cls(tuple(found["UNIGRAM"]), tuple(found["BIGRAM"]))

    def lines(self) -> Iterator[str]:
        """The lines of a `feature.def`."""
        yield from (f"UNIGRAM {template}" for template in self.unigrams)
        yield from (f"BIGRAM {template}" for template in self.bigrams)

    @cached_property
    def reads_forms(self) -> bool:
        """Whether features depend on the form of a word."""
        return any("%w" in template for template in self.unigrams)

    def unigram_names(self, fields: Fields, character_class: int, form: str) -> list[str]:
        """The features of a word."""
        whole = {"t": str(character_class), "u": join_fields(fields), "w": form}
        names = []
        for template in self.unigrams:
            missing = False

            def text_of(found: re.Match[str]) -> str:
                nonlocal missing
                if found[3]:
                    return whole[found[3]]
                i = int(found[2])
                if i >= len(fields) or (found[1] and fields[i] in ("*", "")):
                    missing = True
                    return ""
                return fields[i]

            name = _UNIGRAM.sub(text_of, template)
            if not missing:
                names.append(name)
        return names
