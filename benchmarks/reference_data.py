"""Labelled references for training, development and tests: entries and styles of a part are in no other part."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import NamedTuple

from benchmarks.reference_entries import PARTS, Entry, Item, counts, read_entries
from benchmarks.reference_noise import spoil_entry, spoil_text
from benchmarks.reference_styles import Rendered, Renderer, Style, describe, read_styles, sample_styles
from benchmarks.reference_tokens import Reference, label_tokens

MOST_PER_FILE = 80
MOST_OF_FAMILY = 4
STYLES = {"train": 500, "dev": 200, "test": 200}
PER_STYLE = {"train": 8, "dev": 5, "test": 5}


class Data(NamedTuple):
    """References by part."""

    references: dict[str, list[Reference]]
    texts: dict[str, list[Rendered]]
    notes: list[str]  # what they are made from


def make_data(share: float = 1.0) -> Data:
    """References of all parts; the same ones each time, as long as the packages are the same."""
    entries, styles = read_entries(MOST_PER_FILE), read_styles()
    references: dict[str, list[Reference]] = {}
    texts: dict[str, list[Rendered]] = {}
    for part in PARTS:
        items = [entry.item for entry in entries if entry.part == part]
        chosen = sample_styles(styles, part, int(STYLES[part] * share) or 1, MOST_OF_FAMILY)
        texts[part] = list(rendered(items, chosen, PER_STYLE[part], random.Random(f"texts {part}")))
        references[part] = [label_tokens(text) for text in texts[part]]
    return Data(references, texts, list(notes(entries, styles, references)))


def rendered(
    items: list[Item], styles: list[Style], per_style: int, chance: random.Random
) -> Iterator[Rendered]:
    """Some entries in each style, in an order by chance; an entry comes again only when all others have come."""
    chance.shuffle(items)
    place = 0
    found: list[Rendered] = []
    for style in styles:
        renderer = Renderer(style)
        for _ in range(per_style):
            item = spoil_entry(items[place % len(items)], chance)
            place += 1
            text = renderer.render(item)
            if text is not None:
                found.append(spoil_text(text, chance))
    chance.shuffle(found)
    return iter(found)


def notes(entries: list[Entry], styles: list[Style], references: dict[str, list[Reference]]) -> Iterator[str]:
    """Lines on what the data are."""
    yield from counts(entries)
    yield from describe(styles)
    for part, some in references.items():
        yield f"{part}: {len(some):,} references of {sum(len(r.tokens) for r in some):,} tokens"
