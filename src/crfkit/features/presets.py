"""Ready-made templates for four common tasks: print one, edit it, and use it as a template of your own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from types import MappingProxyType
from typing import Any

from crfkit.data import InputError
from crfkit.features.given_sequences import listed
from crfkit.features.templates import Template

_NAMES = """\
# Names of persons, places, organisations …; column 0: the word.
U
U00:%x[-2,0]
U01:%x[-1,0]
U02:%x[0,0]
U03:%x[1,0]
U04:%x[2,0]
U05:%x[-1,0]/%x[0,0]
U06:%x[0,0]/%x[1,0]
U07:%lower[-1,0]
U08:%lower[0,0]
U09:%lower[1,0]

# How the word begins and ends.
U10:%prefix[0,0,2]
U11:%prefix[0,0,3]
U12:%prefix[0,0,4]
U13:%lower_suffix[0,0,1]
U14:%lower_suffix[0,0,2]
U15:%lower_suffix[0,0,3]
U16:%lower_suffix[0,0,4]

# Capitals, digits and punctuation, here and around.
U20:%shape[0,0]
U21:%short_shape[-2,0]
U22:%short_shape[-1,0]
U23:%short_shape[0,0]
U24:%short_shape[1,0]
U25:%short_shape[2,0]
U26:%short_shape[-1,0]/%short_shape[0,0]
U27:%short_shape[0,0]/%short_shape[1,0]
U28:%short_shape[-1,0]/%short_shape[0,0]/%short_shape[1,0]
U29:%lower[-1,0]/%short_shape[0,0]
U30:%short_shape[0,0]/%lower[1,0]
U31:%digits[0,0]

# Arcs between labels.
B
"""

_POS = """\
# Parts of speech; column 0: the word.
U
U00:%lower[-2,0]
U01:%lower[-1,0]
U02:%x[0,0]
U03:%lower[0,0]
U04:%lower[1,0]
U05:%lower[2,0]
U06:%lower[-1,0]/%lower[0,0]
U07:%lower[0,0]/%lower[1,0]

# How the word begins and ends.
U10:%lower_prefix[0,0,1]
U11:%lower_prefix[0,0,2]
U12:%lower_prefix[0,0,3]
U13:%lower_prefix[0,0,4]
U14:%lower_suffix[0,0,1]
U15:%lower_suffix[0,0,2]
U16:%lower_suffix[0,0,3]
U17:%lower_suffix[0,0,4]
U18:%lower_suffix[0,0,5]

# How the neighbours end.
U20:%lower_suffix[-1,0,2]
U21:%lower_suffix[-1,0,3]
U22:%lower_suffix[1,0,2]
U23:%lower_suffix[1,0,3]

# Capitals, digits and punctuation.
U30:%digits[0,0]
U31:%short_shape[0,0]
U32:%short_shape[-1,0]/%short_shape[0,0]
U33:%has_digit[0,0]
U34:%has_hyphen[0,0]
U35:%has_upper[0,0]

# Arcs between labels.
B
"""

_CHUNKS = """\
# Phrases (chunks); column 0: the word, column 1: its part of speech.
U
U00:%lower[-2,0]
U01:%lower[-1,0]
U02:%lower[0,0]
U03:%lower[1,0]
U04:%lower[2,0]
U05:%lower[-1,0]/%lower[0,0]
U06:%lower[0,0]/%lower[1,0]
U07:%lower[-1,0]/%lower[1,0]
U08:%x[0,0]

# Parts of speech, alone, in pairs and in threes.
U10:%x[-2,1]
U11:%x[-1,1]
U12:%x[0,1]
U13:%x[1,1]
U14:%x[2,1]
U15:%x[-2,1]/%x[-1,1]
U16:%x[-1,1]/%x[0,1]
U17:%x[0,1]/%x[1,1]
U18:%x[1,1]/%x[2,1]
U19:%x[-1,1]/%x[1,1]
U20:%x[-2,1]/%x[-1,1]/%x[0,1]
U21:%x[-1,1]/%x[0,1]/%x[1,1]
U22:%x[0,1]/%x[1,1]/%x[2,1]

# Words with parts of speech.
U30:%lower[-1,0]/%x[-1,1]
U31:%lower[-1,0]/%x[0,1]
U32:%x[0,1]/%lower[1,0]
U33:%lower[0,0]/%x[1,1]
U34:%x[-1,1]/%lower[0,0]
U35:%lower[1,0]/%x[1,1]

# How the word ends and looks.
U40:%lower_suffix[0,0,2]
U41:%lower_suffix[0,0,3]
U42:%lower_suffix[0,0,4]
U43:%short_shape[0,0]

# Arcs between labels.
B
"""

_MORPHOLOGY = """\
# Morphological tags, for tag sets of hundreds or thousands; column 0: the word.
U
U00:%x[0,0]
U01:%lower[0,0]
U02:%bare[0,0]
U03:%short_shape[0,0]
U04:%length[0,0]

# How the word begins and ends.
U10:%bare_prefix[0,0,1]
U11:%bare_prefix[0,0,2]
U12:%bare_prefix[0,0,3]
U13:%bare_prefix[0,0,4]
U14:%bare_prefix[0,0,5]
U15:%bare_prefix[0,0,6]
U16:%bare_prefix[0,0,7]
U17:%bare_prefix[0,0,8]
U18:%bare_prefix[0,0,9]
U19:%bare_prefix[0,0,10]
U20:%lower_suffix[0,0,1]
U21:%lower_suffix[0,0,2]
U22:%lower_suffix[0,0,3]
U23:%lower_suffix[0,0,4]
U24:%lower_suffix[0,0,5]
U25:%lower_suffix[0,0,6]
U26:%lower_suffix[0,0,7]
U27:%lower_suffix[0,0,8]
U28:%lower_suffix[0,0,9]
U29:%lower_suffix[0,0,10]
U30:%bare_suffix[0,0,1]
U31:%bare_suffix[0,0,2]
U32:%bare_suffix[0,0,3]
U33:%bare_suffix[0,0,4]
U34:%bare_suffix[0,0,5]
U35:%bare_suffix[0,0,6]
U36:%bare_suffix[0,0,7]
U37:%bare_suffix[0,0,8]
U38:%bare_suffix[0,0,9]
U39:%bare_suffix[0,0,10]

# The words around, and how they end.
U40:%lower[-2,0]
U41:%lower[-1,0]
U42:%lower[1,0]
U43:%lower[2,0]
U44:%lower[-1,0]/%lower[0,0]
U45:%lower[0,0]/%lower[1,0]
U46:%lower[-1,0]/%lower[1,0]
U50:%lower_suffix[-1,0,1]
U51:%lower_suffix[-1,0,2]
U52:%lower_suffix[-1,0,3]
U53:%lower_suffix[-1,0,4]
U54:%lower_suffix[1,0,1]
U55:%lower_suffix[1,0,2]
U56:%lower_suffix[1,0,3]
U57:%lower_suffix[1,0,4]
U58:%lower_suffix[-2,0,2]
U59:%lower_suffix[-2,0,3]
U60:%lower_suffix[2,0,2]
U61:%lower_suffix[2,0,3]

# How the word ends, with the words beside it and how they end.
U70:%lower_suffix[-1,0,2]/%lower_suffix[0,0,2]
U71:%lower_suffix[0,0,2]/%lower_suffix[1,0,2]
U72:%lower[-1,0]/%lower_suffix[0,0,2]
U73:%lower_suffix[0,0,2]/%lower[1,0]
U74:%lower[-1,0]/%lower_suffix[0,0,3]
U75:%lower_suffix[0,0,3]/%lower[1,0]

# Which words are near, wherever: lines with one number make one feature.
U80:%lower[-10,0]
U80:%lower[-9,0]
U80:%lower[-8,0]
U80:%lower[-7,0]
U80:%lower[-6,0]
U80:%lower[-5,0]
U80:%lower[-4,0]
U80:%lower[-3,0]
U80:%lower[-2,0]
U80:%lower[-1,0]
U80:%lower[1,0]
U80:%lower[2,0]
U80:%lower[3,0]
U80:%lower[4,0]
U80:%lower[5,0]
U80:%lower[6,0]
U80:%lower[7,0]
U80:%lower[8,0]
U80:%lower[9,0]
U80:%lower[10,0]

# Arcs between labels.
B
"""

PRESETS: Mapping[str, str] = MappingProxyType(
    {"names": _NAMES, "pos": _POS, "chunks": _CHUNKS, "morphology": _MORPHOLOGY}
)
"""The text of each preset, in the language of templates."""


def preset(name: str, n_columns: int | None = None) -> Template:
    """The template of a preset; with `n_columns`, without the lines that read columns beyond these.

    `names`, `pos` and `morphology` read column 0, the word; `chunks` reads the part of speech in column 1 as well,
    where there is one.
    """
    text = PRESETS.get(name)
    if text is None:
        known = ", ".join(PRESETS)
        raise InputError(f"there is no feature preset '{name}': expected one of {known}")
    template = Template.parse(text, source=f"preset {name}")
    return template if n_columns is None else template.within_columns(max(n_columns, 1))


def counted_columns(X: Any) -> tuple[Sequence[Any], int | None]:
    """The sequences in a form that can be read again, and the number of columns of their first row (None: no such row)."""
    sequences = [list(sequence) if isinstance(sequence, Iterator) else sequence for sequence in listed(X)]
    for sequence in sequences:
        if isinstance(sequence, Iterable) and not isinstance(sequence, str | bytes | Mapping):
            for row in sequence:
                return sequences, 1 if isinstance(row, str) else len(row) if isinstance(row, Sized) else None
    return sequences, None
