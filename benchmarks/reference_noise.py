"""What references go through before they are parsed: incomplete entries, habits of authors, line breaks and errors of PDFs.

Rules of our own, with probabilities of our own, by seeded random numbers. Some change the entry, others the rendered text.
"""

from __future__ import annotations

import random
import re
from itertools import pairwise

from benchmarks.reference_entries import Item
from benchmarks.reference_styles import OTHER, Rendered

DROPPED = {  # how often a field is missing though the bibliography has it
    "DOI": 0.5,
    "URL": 0.6,
    "ISBN": 0.8,
    "note": 0.5,
    "issue": 0.2,
    "publisher-place": 0.2,
    "collection-title": 0.3,
    "page": 0.05,
    "volume": 0.03,
}
SHORT_WORDS = {
    "journal": "J.",
    "transactions": "Trans.",
    "international": "Int.",
    "proceedings": "Proc.",
    "conference": "Conf.",
    "american": "Amer.",
    "association": "Assoc.",
    "society": "Soc.",
    "mathematical": "Math.",
    "mathematics": "Math.",
    "statistical": "Statist.",
    "review": "Rev.",
    "research": "Res.",
    "communications": "Commun.",
    "computing": "Comput.",
    "computer": "Comput.",
    "science": "Sci.",
    "sciences": "Sci.",
    "letters": "Lett.",
    "bulletin": "Bull.",
    "annals": "Ann.",
}
SMALL = {"of", "the", "and", "for", "in", "on", "de", "la", "und", "der", "a", "an", "et", "to", "with"}


def spoil_entry(item: Item, random: random.Random) -> Item:
    """The entry without some of its fields, its title in another case, its journal perhaps abbreviated."""
    item = {name: value for name, value in item.items() if random.random() >= DROPPED.get(name, 0.0)}
    if "DOI" in item and "URL" not in item and random.random() < 0.3:
        item["URL"] = "https://doi.org/" + item.pop("DOI")
    if "URL" in item and random.random() < 0.6:
        item["accessed"] = {
            "date-parts": [[random.randint(1999, 2024), random.randint(1, 12), random.randint(1, 28)]]
        }
    dice = random.random()
    if dice < 0.15:
        words = item["title"].split(" ")
        item["title"] = " ".join([words[0], *(w if w[1:] != w[1:].lower() else w.lower() for w in words[1:])])
    elif dice < 0.25:
        item["title"] = " ".join(
            w if w.lower() in SMALL and n else w[:1].upper() + w[1:]
            for n, w in enumerate(item["title"].split(" "))
        )
    container = item.get("container-title", "")
    if item["type"] == "article-journal" and len(container.split()) > 1 and random.random() < 0.3:
        item["container-title"] = abbreviate(container, random)
    if item["type"] == "paper-conference" and container and random.random() < 0.2:
        item["container-title"] = re.sub(r"^Proceedings of (the )?", "Proc. ", container)
    if random.random() < 0.5:  # a month is not what most references give
        item["issued"] = {"date-parts": [item["issued"]["date-parts"][0][:1]]}
    if len(item.get("author", ())) > 3 and random.random() < 0.1:
        item["author"] = [*item["author"][: random.randint(1, 3)], {"family": "et al."}]
    return item


def abbreviate(title: str, random: random.Random) -> str:
    """A title of a journal in the manner of ISO 4: words without their ends, small words left out."""
    point = "." if random.random() < 0.7 else ""
    short = []
    for word in title.split(" "):
        if word.lower() in SMALL:
            continue
        known = SHORT_WORDS.get(word.lower())
        if known is not None:
            short.append(known[:-1] + point)
        elif len(word) > 7 and word.isalpha():
            short.append(word[: random.randint(3, 6)] + point)
        else:
            short.append(word)
    return " ".join(short)


def spoil_text(rendered: Rendered, random: random.Random) -> Rendered:
    """The reference as a list of references in a PDF may have it."""
    pairs = list(zip(rendered.text, rendered.fields, strict=True))
    if random.random() < 0.1:
        names = random.choice(("author", "editor", "author"))
        pairs = [(upper(letter) if field == names else letter, field) for letter, field in pairs]
    if random.random() < 0.3:
        plain = {"–": "-", "“": '"', "”": '"', "‘": "'", "’": "'", "—": "-"}
        pairs = [(plain.get(letter, letter), field) for letter, field in pairs]
    if random.random() < 0.15 and not rendered.text[0].isdigit() and rendered.text[0] != "[":
        number = random.choice(("[{}] ", "{}. ", "{} ", "({}) ", "[{}]")).format(random.randint(1, 120))
        pairs = [(letter, OTHER) for letter in number] + pairs
    if random.random() < 0.25:
        pairs = break_lines(pairs, random)
    if random.random() < 0.12:
        pairs = lose_spaces(pairs, random)
    if random.random() < 0.06:
        pairs = gain_spaces(pairs, random)
    if random.random() < 0.1 and pairs[-1][0] == ".":
        pairs.pop()
    return Rendered("".join(letter for letter, _ in pairs), [field for _, field in pairs])


Letters = list[tuple[str, str]]


def upper(letter: str) -> str:
    """The capital, if it is one letter."""
    return letter.upper() if len(letter.upper()) == 1 else letter


def break_lines(pairs: Letters, random: random.Random) -> Letters:
    """Lines of one length, joined by blanks: long words at their ends are in two, with a hyphen or without one."""
    width, keeps_hyphen = random.randint(40, 95), random.random() < 0.8
    out: Letters = []
    column = 0
    for i, (letter, field) in enumerate(pairs):
        out.append((letter, field))
        column += 1
        if column < width:
            continue
        around = "".join(other for other, _ in pairs[max(i - 2, 0) : i + 4])
        if len(around) == 6 and around.isalpha():
            out += [("-", field), (" ", field)] if keeps_hyphen else [(" ", field)]
            column = 0
        elif letter == " ":
            column = 0
    return out


def lose_spaces(pairs: Letters, random: random.Random) -> Letters:
    """Some blanks behind punctuation are missing."""
    kept = pairs[:1]
    for before, pair in pairwise(pairs):
        if not (pair[0] == " " and before[0] in ".,;:)" and random.random() < 0.3):
            kept.append(pair)
    return kept


def gain_spaces(pairs: Letters, random: random.Random) -> Letters:
    """A few blanks too many: within words, and around hyphens of page ranges."""
    out = pairs[:1]
    for before, pair in pairwise(pairs):
        near_hyphen = before[0] in "-–" and random.random() < 0.4
        in_word = before[0].isalpha() and pair[0].isalpha() and random.random() < 0.01
        if near_hyphen or in_word:
            out.append((" ", pair[1] if pair[1] == before[1] else OTHER))
        out.append(pair)
    return out
