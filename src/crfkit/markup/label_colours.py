"""Labels in colour: a label has the same colour wherever it is shown, and labels that are shown together differ."""

from collections.abc import Hashable, Iterable
from zlib import crc32

from crfkit.markup.html import Html, tag

_HUES = (210, 25, 140, 285, 50, 350, 180, 100, 320, 245, 75, 0)  # degrees, the ones far apart first

_KNOWN = {
    "PER": 210,
    "PERSON": 210,
    "LOC": 140,
    "GPE": 140,
    "ORG": 25,
    "MISC": 285,
    "NOUN": 210,
    "VERB": 25,
    "ADJ": 140,
}


def label_hues(labels: Iterable[Hashable]) -> dict[Hashable, int]:
    """The hue of each label, 0 to 359: by its name, or the next one that is free. Common types have hues of their own.

    >>> hues = label_hues(["LOC", "PER"])
    >>> hues["LOC"] != hues["PER"]
    True
    """
    hues: dict[Hashable, int] = {}
    distinct = sorted(set(labels), key=lambda label: (str(label) not in _KNOWN, str(label)))
    for label in distinct:
        if str(label) in _KNOWN:
            hues[label] = _KNOWN[str(label)]
            continue
        first = crc32(str(label).encode("utf-8", "replace")) % len(_HUES)
        order = [_HUES[(first + k) % len(_HUES)] for k in range(len(_HUES))]
        used = set(hues.values())
        hues[label] = next((hue for hue in order if hue not in used), order[0])
    return hues


def label_chip(
    text: object, label: object, hue: int, *, note: str | None = None, wrong: bool = False
) -> Html:
    """Text on the colour of its label, whose name follows it; `note` is shown when the mouse is over it."""
    colours = f"background:hsl({hue} 75% 50% / .25);border-color:hsl({hue} 65% 50% / .7)"
    name = "label wrong" if wrong else "label"
    return tag("span", text, tag("small", label), class_=name, style=colours, title=note)
