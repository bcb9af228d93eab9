"""A dictionary of words: which words may begin at a place of a text, and their features as arcs of a lattice."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from crfkit.errors import ArgumentError
from crfkit.features.words.character_classes import CharacterClasses
from crfkit.features.words.csv_fields import as_fields, join_fields, read_word
from crfkit.features.words.default_classes import CLASSES, TEMPLATES
from crfkit.features.words.rewriting import Fields, Rewriting
from crfkit.features.words.word_templates import WordTemplates
from crfkit.structures import CostMatrix, Lattice, LatticeArc, WordLattice

BOUNDARY: Fields = ("BOS/EOS", "*", "*", "*", "*", "*")
WORD_COST = "word cost"
"""The name of the feature whose value is the cost of a dictionary entry."""
_AS_THEY_ARE = Rewriting()


class Entry(NamedTuple):
    """A word of the lexicon, or the words of a class of characters. Costs count where the dictionary has a matrix."""

    form: str  # of the word, or the name of the class
    fields: Fields
    left: int = 0  # context as the word before it sees it
    right: int = 0
    cost: int = 0


class Candidate(NamedTuple):
    """A word that may stand in a text: text[start:end], behind spaces that begin at `begin`."""

    begin: int
    start: int
    end: int
    entry: Entry
    character_class: int  # of its first character
    known: bool  # to the lexicon


@dataclass(frozen=True, eq=False)
class WordDictionary:
    """Words and what is known of them.

    words : (form, fields) or `Entry`: all words of the lexicon
    unknown : class of characters → fields of unknown words of this class, one or more
    classes : which characters are in which class, and which of them make a word
    templates : features of words and of neighbouring words
    rewriting : fields for these templates; the default leaves fields as they are
    boundary : the fields that stand before the first and behind the last word
    compared : how many of the first fields tell whether a word is the right one; None: all. `unknown_compared`: the same
        for unknown words
    costs : costs of neighbouring words, and those of the entries, are known; None: they are to be learned
    distinct : an analysis (start, end, fields) is one arc, however often the lexicon and the unknown words give it: that of
        the lexicon, or the cheapest one where costs are known. False: where costs are to be learned, each is an arc of its
        own, as in MeCab's objective
    """

    words: Sequence[Entry]
    unknown: Mapping[str, Sequence[Entry]]
    classes: CharacterClasses
    templates: WordTemplates
    rewriting: Rewriting = _AS_THEY_ARE
    boundary: Fields = BOUNDARY
    compared: int | None = None
    unknown_compared: int | None = None
    costs: CostMatrix | None = None
    cost_factor: int = 800
    distinct: bool = True
    _by_form: dict[str, list[Entry]] = field(init=False, repr=False)
    _prefixes: set[str] = field(init=False, repr=False)
    _arcs: dict[Any, tuple[Any, Any]] = field(init=False, repr=False)  # label and features, as met

    def __post_init__(self) -> None:
        """Sort the words by their forms."""
        for name in ("compared", "unknown_compared"):
            n_fields = getattr(self, name)
            if n_fields is not None and not (isinstance(n_fields, int) and n_fields >= 0):
                raise ArgumentError(f"{name} is {n_fields!r}, expected None or a number of fields")
        by_form: dict[str, list[Entry]] = {}
        for word in self.words:
            by_form.setdefault(word.form, []).append(word)
        if "" in by_form:
            raise ArgumentError("the lexicon has a word without a form")
        for kind in self.classes.classes:
            if not self.unknown.get(kind.name):
                raise ArgumentError(f"there are no fields for unknown words of the class {kind.name}")
        object.__setattr__(self, "_by_form", by_form)
        object.__setattr__(self, "_prefixes", {form[:n] for form in by_form for n in range(1, len(form))})
        object.__setattr__(self, "_arcs", {})

    @classmethod
    def build(
        cls,
        words: Iterable[tuple[str, Any]],
        unknown: Sequence[Any] | Mapping[str, Sequence[Any]],
        *,
        classes: CharacterClasses | str = CLASSES,
        templates: WordTemplates | str = TEMPLATES,
        rewriting: Rewriting | str = _AS_THEY_ARE,
        boundary: Any = BOUNDARY,
        compared: int | None = None,
    ) -> WordDictionary:
        """From (form, fields) of words, and the fields of unknown words: a list for all classes of characters, or a dict.

        Fields are a tuple, or their text with commas. Classes, templates and rewriting may be the texts of a `char.def`,
        `feature.def` and `rewrite.def`.
        """
        known = CharacterClasses.parse(classes.splitlines()) if isinstance(classes, str) else classes
        names = [kind.name for kind in known.classes]
        of_classes = unknown if isinstance(unknown, Mapping) else dict.fromkeys(names, unknown)
        if wrong := [name for name in of_classes if name not in names]:
            raise ArgumentError(
                f"unknown has {wrong[0]!r}, expected classes of characters: {', '.join(names)}"
            )
        return cls(
            [Entry(*read_word(word, f"word {i}")) for i, word in enumerate(_listed("words", words))],
            {
                name: [Entry(name, as_fields(fields)) for fields in _listed("unknown", given)]
                for name, given in of_classes.items()
            },
            known,
            WordTemplates.parse(templates.splitlines()) if isinstance(templates, str) else templates,
            Rewriting.parse(rewriting.splitlines()) if isinstance(rewriting, str) else rewriting,
            as_fields(boundary),
            compared,
            compared,
        )

    @property
    def structure(self) -> Lattice:
        """The structure of its lattices."""
        if self.costs is not None:
            return Lattice(self.costs, crossed=False, boundary=(0, 0))
        boundary = self._label(self.boundary)
        return Lattice([_shifted(text) for text in self.templates.bigrams], crossed=False, boundary=boundary)

    def candidates(self, text: str) -> list[Candidate]:
        """All words that may stand in a text, at the places that words lead to from 0 on, in their order."""
        found: list[Candidate] = []
        reached = [False] * (len(text) + 1)
        reached[0] = True
        for begin in range(self.end_of(text)):
            if reached[begin]:
                for candidate in self._beginning(text, begin):
                    found.append(candidate)
                    reached[candidate.end] = True
        return found

    def end_of(self, text: str) -> int:
        """Where the last word of a text ends: spaces behind it belong to no word."""
        end = len(text)
        while end and self.classes.skip_space(text, end - 1) > end - 1:
            end -= 1
        return end

    def _beginning(self, text: str, begin: int) -> list[Candidate]:
        """Those that begin at a place, or behind its spaces: words of the lexicon first."""
        start = self.classes.skip_space(text, begin)
        number = self.classes.number(text[start])
        found: list[Candidate] = []
        for end in range(start + 1, len(text) + 1):
            form = text[start:end]
            entries: Sequence[Entry] = self._by_form.get(form, ())
            found += [Candidate(begin, start, end, word, number, known=True) for word in entries]
            if form not in self._prefixes:
                break
        number, ends = self.classes.unknown_words(text, start, known=bool(found))
        for end in ends:
            entries = self.unknown[self.classes.classes[number].name]
            found += [Candidate(begin, start, end, entry, number, known=False) for entry in entries]
        return self._merged(found)

    def _merged(self, found: list[Candidate]) -> list[Candidate]:
        """Candidates that begin at one place: those that are the same analysis are one."""
        priced = self.costs is not None
        if not (self.distinct or priced):
            return found
        kept: dict[Any, Candidate] = {}
        for candidate in found:
            entry = candidate.entry
            key = (candidate.end, entry[1:4] if priced else entry.fields)  # with its contexts
            if key not in kept:
                kept[key] = candidate
            elif priced and entry.cost < kept[key].entry.cost:
                del kept[key]  # so that it comes in the order of the arcs that are kept
                kept[key] = candidate
        return list(kept.values())

    def lattice(self, text: str, candidates: Sequence[Candidate]) -> WordLattice:
        """The candidates as arcs."""
        end, arcs = self.end_of(text), [self._arc(text, candidate) for candidate in candidates]
        return WordLattice.of_checked(end, arcs)

    def is_right(self, candidate: Candidate, start: int, end: int, fields: Fields) -> bool:
        """Whether a candidate is the word from `start` to `end` with these fields, as far as they are compared."""
        if (candidate.start, candidate.end) != (start, end):
            return False
        n = self.compared if candidate.known else self.unknown_compared
        return candidate.entry.fields[:n] == fields[:n]

    def unigram_names(self, fields: Fields, character_class: int, form: str) -> list[str]:
        """The features of a word."""
        return self.templates.unigram_names(self.rewriting.rewrite(fields).unigram, character_class, form)

    def _arc(self, text: str, candidate: Candidate) -> LatticeArc:
        entry = candidate.entry
        if self.costs is not None:
            return LatticeArc(
                candidate.begin, candidate.end, (entry.left, entry.right), {WORD_COST: float(entry.cost)}
            )
        form = text[candidate.start : candidate.end] if self.templates.reads_forms else ""
        key = (entry.fields, candidate.character_class, form)
        found = self._arcs.get(key)
        if found is None:
            found = self._label(entry.fields), self.unigram_names(*key)
            self._arcs[key] = found
        return LatticeArc(candidate.begin, candidate.end, *found)

    def _label(self, fields: Fields) -> tuple[Fields, Fields]:
        """What a word shows to the word before it and to the word after it: all fields in one text, then each."""
        rewritten = self.rewriting.rewrite(fields)
        return (
            (join_fields(rewritten.left), *rewritten.left),
            (join_fields(rewritten.right), *rewritten.right),
        )


def _listed(name: str, given: Any) -> Iterable[Any]:
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        expected = (
            "a list of (form, fields)" if name == "words" else "a list of fields, or a dict of such lists"
        )
        raise ArgumentError(f"{name} is {given!r}, expected {expected}")
    return given


def _shifted(template: str) -> str:
    """A bigram template for labels whose field 0 is all fields in one text."""
    out, at = "", 0
    while (i := template.find("%", at)) >= 0:
        out += template[at:i]
        side = template[i + 1]
        if side in "lr":  # %l: of the word after, %r: of the word before
            out += "%R[0]" if side == "l" else "%L[0]"
            at = i + 2
        else:
            begin = template.index("[", i)
            at = template.index("]", i) + 1
            out += f"{template[i:begin]}[{int(template[begin + 1 : at - 1]) + 1}]"
    return out + template[at:]
