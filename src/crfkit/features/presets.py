"""Ready-made templates for six common tasks: print one, edit it, and use it as a template of your own."""

from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from types import MappingProxyType
from typing import Any, NamedTuple

from crfkit.errors import ArgumentError
from crfkit.features.given_sequences import list_sequences
from crfkit.features.knowledge import MissingResource, Resource, resource_lines
from crfkit.features.templates import Template


def _each(line: str, numbers: Iterable[int]) -> str:
    """The line with each of the numbers in the place of N."""
    return "\n".join(line.replace("N", str(number)) for number in numbers)


def _characters(places: Iterable[int | tuple[int, int]]) -> str:
    """Lines of the block `character`, for text whose tokens are characters: what stands at one place, or at two."""
    lines = []
    for place in places:
        rows = (place,) if isinstance(place, int) else place
        values = "|".join(f"%x[{row},0]" for row in rows)
        lines.append(f"character=[{','.join(map(str, rows))}]|{values}|%is_character[0,0]")
    return "\n".join(lines)


_NAMES = f"""\
# Names of persons, places, organisations …; column 0: the word, column 1: its part of speech.
bias=1
word[-2]=%x[-2,0]
word[-1]=%x[-1,0]
word=%x[0,0]
word[1]=%x[1,0]
word[2]=%x[2,0]
word[-1]|word=%x[-1,0]|%x[0,0]
word|word[1]=%x[0,0]|%x[1,0]
lower[-1]=%lower[-1,0]
lower=%lower[0,0]
lower[1]=%lower[1,0]

# How the word begins and ends, and its neighbours.
{_each("prefixN=%prefix[0,0,N]", range(2, 6))}
{_each("suffixN=%lower_suffix[0,0,N]", range(1, 6))}
prefix3[-1]=%prefix[-1,0,3]
suffix3[-1]=%lower_suffix[-1,0,3]
prefix3[1]=%prefix[1,0,3]
suffix3[1]=%lower_suffix[1,0,3]

# Capitals, digits and punctuation, here and around.
shape=%shape[0,0]
short_shape[-2]=%short_shape[-2,0]
short_shape[-1]=%short_shape[-1,0]
short_shape=%short_shape[0,0]
short_shape[1]=%short_shape[1,0]
short_shape[2]=%short_shape[2,0]
short_shape[-1]|short_shape=%short_shape[-1,0]|%short_shape[0,0]
short_shape|short_shape[1]=%short_shape[0,0]|%short_shape[1,0]
short_shape[-1]|short_shape|short_shape[1]=%short_shape[-1,0]|%short_shape[0,0]|%short_shape[1,0]
short_shapes=%short_shape[-2,0]|%short_shape[-1,0]|%short_shape[0,0]|%short_shape[1,0]|%short_shape[2,0]
lower[-1]|short_shape=%lower[-1,0]|%short_shape[0,0]
short_shape|lower[1]=%short_shape[0,0]|%lower[1,0]
digits=%digits[0,0]

# Where tokens are characters (漢) instead of words: the characters around, alone and in pairs.
{_characters((*range(-2, 3), (-2, -1), (-1, 0), (0, 1), (1, 2)))}

# Parts of speech of the words beside it.
pos[-1]=%x[-1,1]
pos[1]=%x[1,1]
pos[-1]|pos[1]=%x[-1,1]|%x[1,1]

# Arcs between labels.
B
"""

_POS = f"""\
# Parts of speech; column 0: the word.
bias=1
lower[-2]=%lower[-2,0]
lower[-1]=%lower[-1,0]
word=%x[0,0]
lower=%lower[0,0]
lower[1]=%lower[1,0]
lower[2]=%lower[2,0]
lower[-1]|lower=%lower[-1,0]|%lower[0,0]
lower|lower[1]=%lower[0,0]|%lower[1,0]

# How the word begins and ends.
{_each("prefixN=%lower_prefix[0,0,N]", range(1, 5))}
{_each("suffixN=%lower_suffix[0,0,N]", range(1, 6))}

# Capitals, digits and punctuation.
digits=%digits[0,0]
short_shape=%short_shape[0,0]
short_shape[-1]|short_shape=%short_shape[-1,0]|%short_shape[0,0]
has_digit=%has_digit[0,0]
has_hyphen=%has_hyphen[0,0]
has_upper=%has_upper[0,0]

# Arcs between labels.
B
"""

_CHUNKS = f"""\
# Phrases (chunks); column 0: the word, column 1: its part of speech.
bias=1
lower[-2]=%lower[-2,0]
lower[-1]=%lower[-1,0]
lower=%lower[0,0]
lower[1]=%lower[1,0]
lower[2]=%lower[2,0]
lower[-1]|lower=%lower[-1,0]|%lower[0,0]
lower|lower[1]=%lower[0,0]|%lower[1,0]
lower[-1]|lower[1]=%lower[-1,0]|%lower[1,0]
word=%x[0,0]

# Parts of speech, alone, in pairs and in threes.
pos[-2]=%x[-2,1]
pos[-1]=%x[-1,1]
pos=%x[0,1]
pos[1]=%x[1,1]
pos[2]=%x[2,1]
pos[-2]|pos[-1]=%x[-2,1]|%x[-1,1]
pos[-1]|pos=%x[-1,1]|%x[0,1]
pos|pos[1]=%x[0,1]|%x[1,1]
pos[1]|pos[2]=%x[1,1]|%x[2,1]
pos[-1]|pos[1]=%x[-1,1]|%x[1,1]
pos[-2]|pos[-1]|pos=%x[-2,1]|%x[-1,1]|%x[0,1]
pos[-1]|pos|pos[1]=%x[-1,1]|%x[0,1]|%x[1,1]
pos|pos[1]|pos[2]=%x[0,1]|%x[1,1]|%x[2,1]

# Words with parts of speech.
lower[-1]|pos[-1]=%lower[-1,0]|%x[-1,1]
lower[-1]|pos=%lower[-1,0]|%x[0,1]
pos|lower[1]=%x[0,1]|%lower[1,0]
lower|pos[1]=%lower[0,0]|%x[1,1]
pos[-1]|lower=%x[-1,1]|%lower[0,0]
lower[1]|pos[1]=%lower[1,0]|%x[1,1]

# How the word ends and looks.
{_each("suffixN=%lower_suffix[0,0,N]", range(2, 5))}
short_shape=%short_shape[0,0]

# Arcs between labels.
B
"""

_MORPHOLOGY = f"""\
# Morphological tags, for tag sets of hundreds or thousands; column 0: the word.
bias=1
word=%x[0,0]
lower=%lower[0,0]
bare=%bare[0,0]
short_shape=%short_shape[0,0]
length=%length[0,0]

# How the word begins and ends.
{_each("bare_prefixN=%bare_prefix[0,0,N]", range(1, 11))}
{_each("suffixN=%lower_suffix[0,0,N]", range(1, 11))}
{_each("bare_suffixN=%bare_suffix[0,0,N]", range(1, 11))}

# The words around, and how they end.
lower[-2]=%lower[-2,0]
lower[-1]=%lower[-1,0]
lower[1]=%lower[1,0]
lower[2]=%lower[2,0]
lower[-1]|lower=%lower[-1,0]|%lower[0,0]
lower|lower[1]=%lower[0,0]|%lower[1,0]
lower[-1]|lower[1]=%lower[-1,0]|%lower[1,0]
{_each("suffixN[-1]=%lower_suffix[-1,0,N]", range(1, 5))}
{_each("suffixN[1]=%lower_suffix[1,0,N]", range(1, 5))}
suffix2[-2]=%lower_suffix[-2,0,2]
suffix3[-2]=%lower_suffix[-2,0,3]
suffix2[2]=%lower_suffix[2,0,2]
suffix3[2]=%lower_suffix[2,0,3]

# Which words are near, wherever: lines with one name make one feature.
{_each("near=%lower[N,0]", (*range(-10, 0), *range(1, 11)))}

# Arcs between labels.
B
"""

_ADDRESSES = f"""\
# Parts of short strings: addresses, names of persons and companies; column 0: the word, with its punctuation or without.
bias=1
word=%x[0,0]
stripped[-2]=%stripped[-2,0]
stripped[-1]=%stripped[-1,0]
stripped=%stripped[0,0]
stripped[1]=%stripped[1,0]
stripped[2]=%stripped[2,0]
stripped[-1]|stripped=%stripped[-1,0]|%stripped[0,0]
stripped|stripped[1]=%stripped[0,0]|%stripped[1,0]

# How the word begins and ends.
{_each("prefixN=%stripped_prefix[0,0,N]", range(1, 6))}
{_each("suffixN=%stripped_suffix[0,0,N]", range(1, 6))}

# Capitals, digits and punctuation, here and around.
shape=%shape[0,0]
{_each("short_shape[N]=%short_shape[N,0]", (-2, -1))}
short_shape=%short_shape[0,0]
{_each("short_shape[N]=%short_shape[N,0]", (1, 2))}
short_shape[-1]|short_shape=%short_shape[-1,0]|%short_shape[0,0]
short_shape|short_shape[1]=%short_shape[0,0]|%short_shape[1,0]
short_shape[-1]|short_shape|short_shape[1]=%short_shape[-1,0]|%short_shape[0,0]|%short_shape[1,0]

# How far the ends of the string are, of five words and of three.
start=%outside[-5,0]
end=%outside[5,0]
start|stripped=%outside[-3,0]|%stripped[0,0]
end|stripped=%outside[3,0]|%stripped[0,0]

# Arcs between labels.
B
"""

_BESIDE = (-2, -1, 1, 2)
_AROUND = (-4, -3, *_BESIDE, 3, 4)

_REFERENCES = f"""\
# Fields of bibliographic references; column 0: the token (a word, a number or one mark of punctuation).
bias=1
word=%x[0,0]
lower=%lower[0,0]
{_each("lower[N]=%lower[N,0]", _BESIDE)}

# How the token begins and ends.
{_each("prefixN=%prefix[0,0,N]", range(1, 5))}
{_each("suffixN=%lower_suffix[0,0,N]", range(1, 5))}

# Years, pages, initials, punctuation: digits, capitals and lengths, here and around.
digits=%digits[0,0]
{_each("digits[N]=%digits[N,0]", _BESIDE)}
length=%length[0,0]
shape=%shape[0,0]
short_shape=%short_shape[0,0]
{_each("short_shape[N]=%short_shape[N,0]", _AROUND)}
short_shape[-1]|short_shape=%short_shape[-1,0]|%short_shape[0,0]
short_shape|short_shape[1]=%short_shape[0,0]|%short_shape[1,0]
short_shape[-1]|short_shape|short_shape[1]=%short_shape[-1,0]|%short_shape[0,0]|%short_shape[1,0]
short_shapes_before=%short_shape[-3,0]|%short_shape[-2,0]|%short_shape[-1,0]|%short_shape[0,0]
short_shapes_after=%short_shape[0,0]|%short_shape[1,0]|%short_shape[2,0]|%short_shape[3,0]
lower[-1]|short_shape=%lower[-1,0]|%short_shape[0,0]
short_shape|lower[1]=%short_shape[0,0]|%lower[1,0]

# Which tokens stand before and after, wherever: lines with one name make one feature.
{_each("before=%digits[N,0]", range(-10, 0))}
{_each("after=%digits[N,0]", range(1, 11))}

# Arcs between labels.
B
"""

PRESETS: Mapping[str, str] = MappingProxyType(
    {
        "names": _NAMES,
        "pos": _POS,
        "chunks": _CHUNKS,
        "morphology": _MORPHOLOGY,
        "addresses": _ADDRESSES,
        "references": _REFERENCES,
    }
)
"""The text of each preset, in the language of templates."""


class PresetEncoding(NamedTuple):
    """How data sets are encoded for a preset, where nothing else is asked for."""

    min_count: int | str = 1
    word_column: int | None = None  # of the words that are kept for a tag dictionary


def recommend_encoding(features: object) -> PresetEncoding:
    """The encoding for a preset, or for other features."""
    return PresetEncoding("auto", 0) if features == "morphology" else PresetEncoding()


def preset(name: str, n_columns: int | None = None) -> Template:
    """The template of a preset; with `n_columns`, without the lines that read columns beyond these.

    All read column 0, the word; `names` and `chunks` read column 1 as its part of speech, where there is one.
    """
    text = PRESETS.get(name)
    if text is None:
        known = ", ".join(PRESETS)
        raise ArgumentError(f"there is no feature preset '{name}': expected one of {known}")
    template = Template.parse(text, source=f"preset {name}")
    return template if n_columns is None else template.within_columns(max(n_columns, 1))


def preset_note(name: str, n_columns: int) -> str | None:
    """What is to be said where a preset meets rows of `n_columns` columns; None: nothing.

    `names` is made for words, and takes parts of speech where there are; `chunks` is made for both.
    """
    if name == "names" and n_columns > 1:
        return "the preset names reads column 1 as the part of speech"
    if name == "chunks" and n_columns == 1:
        return "no column 1 beside the label, the preset chunks leaves out what it reads there"
    return None


def bind_resources(
    template: Template, resources: Mapping[str, Resource | MissingResource] | None, *, of_preset: bool
) -> Template:
    """The template with resources beside its own; that of a preset gets lines that read them."""
    if not resources:
        return template
    if of_preset:
        template = Template.parse(f"{template.text}\n{resource_lines(resources)}\n", source=template.source)
    return template.bind({**template.resources, **resources})


def count_columns(X: Any) -> tuple[Sequence[Any], int | None]:
    """The sequences in a form that can be read again, and the number of columns of their first row (None: no such row)."""
    sequences = [
        list(sequence) if isinstance(sequence, Iterator) else sequence for sequence in list_sequences(X)
    ]
    for sequence in sequences:
        if isinstance(sequence, Iterable) and not isinstance(sequence, str | bytes | Mapping):
            for row in sequence:
                return sequences, 1 if isinstance(row, str) else len(row) if isinstance(row, Sized) else None
    return sequences, None
