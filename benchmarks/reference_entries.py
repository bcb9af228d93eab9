"""Entries of bibliographies: .bib files that packages carry, as items of CSL-JSON.

Debian's `texlive-bibtex-extra` and others carry thousands of real entries. Nothing of them is kept in the project: they are
looked for where packages lie, or where `CRFKIT_BIB` says (folders, separated as in PATH).
"""

from __future__ import annotations

import codecs
import hashlib
import importlib
import os
import random
import re
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

FOLDER_VARIABLE = "CRFKIT_BIB"
FOLDERS = ("/usr/share/texlive", "/usr/share/texmf", "/usr/share/doc", "/usr/lib/R")
LARGEST_FILE = 3_000_000  # bytes
PARTS = ("train", "dev", "test")
SHARES = (0.6, 0.2, 0.2)

Item = dict[str, Any]  # CSL-JSON

TYPES = {
    "article": "article-journal",
    "book": "book",
    "booklet": "pamphlet",
    "collection": "book",
    "conference": "paper-conference",
    "inbook": "chapter",
    "incollection": "chapter",
    "inproceedings": "paper-conference",
    "manual": "book",
    "mastersthesis": "thesis",
    "misc": "article",
    "online": "webpage",
    "phdthesis": "thesis",
    "proceedings": "book",
    "report": "report",
    "techreport": "report",
    "thesis": "thesis",
}
FIELDS = {  # of CSL: of BibTeX and biblatex, the first that is there
    "title": ("title",),
    "container-title": ("journal", "journaltitle", "booktitle"),
    "collection-title": ("series",),
    "volume": ("volume",),
    "page": ("pages",),
    "publisher": ("publisher", "school", "institution", "organization"),
    "publisher-place": ("address", "location"),
    "edition": ("edition",),
    "DOI": ("doi",),
    "URL": ("url",),
    "ISBN": ("isbn",),
    "note": ("note",),
}
GENRES = {"phdthesis": "PhD thesis", "mastersthesis": "Master's thesis", "techreport": "Technical report"}
MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
LONGEST = {"title": 220, "container-title": 160, "note": 60, "URL": 120, "publisher": 80}
LONGEST_OTHER = 60


class MissingPackageError(ImportError):
    """What a benchmark needs and this machine lacks; the message says where it comes from."""


class Entry(NamedTuple):
    """An item of CSL-JSON, and the part of the data that it is for."""

    item: Item
    part: str


def load_package(module: str, package: str) -> Any:
    """A module of a package that only this benchmark needs."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingPackageError(f"the package {package} is not installed: pip install {package}") from error


def part_of(name: str) -> str:
    """The part of the data that a file or a family of styles is for, by a hash of its name."""
    place = int.from_bytes(hashlib.sha256(name.encode()).digest()[:4], "big") / 2**32
    for part, share in zip(PARTS, SHARES, strict=True):
        if place < share:
            return part
        place -= share
    return PARTS[-1]


def bib_files() -> list[Path]:
    """Files of entries, in the order of their names."""
    named = os.environ.get(FOLDER_VARIABLE)
    folders = named.split(os.pathsep) if named else FOLDERS
    found = {file_name(path): path for folder in folders for path in sorted(Path(folder).rglob("*.bib"))}
    files = [path for _, path in sorted(found.items()) if path.stat().st_size < LARGEST_FILE]
    if not files:
        raise MissingPackageError(
            f"no .bib files in {os.pathsep.join(folders)}: apt-get install texlive-bibtex-extra, "
            f"or set {FOLDER_VARIABLE} to folders with such files"
        )
    return files


def file_name(path: Path) -> str:
    """What a file is called wherever its package lies."""
    return f"{path.parent.name}/{path.name}"


def read_text(path: Path) -> str:
    """A file in UTF-8, or in Latin-1."""
    data = path.read_bytes()
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return data.decode("latin-1")


def read_entries(most_per_file: int, seed: int = 1) -> list[Entry]:
    """Entries of all files, at most so many of each, without repeated titles. Files are either for training, or not."""
    database, errors = (
        load_package("pybtex.database", "pybtex"),
        load_package("pybtex.errors", "pybtex"),
    )
    errors.set_strict_mode(False)
    seen: set[str] = set()
    found: list[Entry] = []
    for path in bib_files():
        with errors.capture():
            try:
                known = database.parse_string(read_text(path), "bibtex")
            except Exception:  # the parser raises many kinds for broken files, which are left out
                continue
        entries = [known.entries[key] for key in known.entries]
        random.Random(f"{seed} {file_name(path)}").shuffle(entries)
        taken = 0
        for item in filter(None, map(as_item, entries)):
            key = re.sub(r"\W", "", item["title"].lower())[:60]
            if taken < most_per_file and key not in seen:
                seen.add(key)
                found.append(Entry(item, part_of(file_name(path))))
                taken += 1
    return found


def as_item(entry: Any) -> Item | None:
    """An entry of pybtex as an item of CSL-JSON; None if it has no title, names or year, or text that is still LaTeX."""
    kind = TYPES.get(entry.type.lower())
    fields = {name.lower(): value for name, value in entry.fields.items()}
    date = issued(fields)
    if kind is None or date is None:
        return None
    item: Item = {"type": kind, "issued": date}
    for name, sources in FIELDS.items():
        text = plain_text(next((fields[source] for source in sources if source in fields), ""))
        if (
            text
            and len(text) <= LONGEST.get(name, LONGEST_OTHER)
            and not re.search(r"[\\${}<>~^�]|\?\?", text)
        ):
            item[name] = text
    number = plain_text(fields.get("number", ""))
    if number and len(number) < 20:
        item["issue" if kind == "article-journal" else "number"] = number
    if entry.type.lower() in GENRES:
        item["genre"] = plain_text(fields.get("type", "")) or GENRES[entry.type.lower()]
    for role in ("author", "editor"):
        names = [name for name in map(as_name, entry.persons.get(role, ())) if name]
        if names and len(names) == len(entry.persons[role]):
            item[role] = names
    if "page" in item:
        item["page"] = re.sub(r"\s*(--+|[-–—])\s*", "-", item["page"])
    if "DOI" in item:
        item["DOI"] = re.sub(r"^(https?://)?(dx\.)?doi\.org/", "", item["DOI"])
    if kind in ("book", "report", "thesis"):
        item.pop("page", None)  # how many pages it has
    complete = "title" in item and ("author" in item or "editor" in item)
    return item if complete and sum(map(is_latin, item["title"])) > 5 else None


def is_latin(letter: str) -> bool:
    """Whether it is a Latin letter."""
    return letter.isalpha() and unicodedata.name(letter, "").startswith("LATIN")


def as_name(person: Any) -> Item | None:
    """A person of pybtex as a name of CSL-JSON; None if it is still LaTeX or no name."""
    parts = {
        "given": [*person.first_names, *person.middle_names],
        "non-dropping-particle": person.prelast_names,
        "family": person.last_names,
        "suffix": person.lineage_names,
    }
    name = {key: plain_text(" ".join(words)) for key, words in parts.items() if words}
    text = " ".join(name.values())
    usable = name.get("family") and len(text) < 60 and not re.search(r"[\\${}<>~^\d�]", text)
    return name if usable and name["family"] not in ("others", "Anonymous") else None


def issued(fields: dict[str, str]) -> Item | None:
    """The date, if there is a year."""
    date = re.match(r"(\d{4})(?:-(\d\d?))?(?:-(\d\d?))?$", fields.get("date", ""))
    if date is not None:
        return {"date-parts": [[int(part) for part in date.groups() if part]]}
    year = re.search(r"\b(1[5-9]|20)\d\d\b", fields.get("year", ""))
    if year is None:
        return None
    month = plain_text(fields.get("month", "")).lower()[:3]
    days = [
        int(day) for day in re.findall(r"\b\d\d?\b", fields.get("day", "") + " " + fields.get("month", ""))
    ]
    parts = [int(year[0])]
    if month in MONTHS:
        parts += [MONTHS.index(month) + 1, *days[:1]]
    return {"date-parts": [parts]}


def plain_text(text: str) -> str:
    """LaTeX as text: accents as letters, no braces, no commands of fonts."""
    text = text.replace("\\-", "").replace("\\slash ", "/").replace("\\slash", "/").replace("\\&", "&")
    text = re.sub(r"\\(?:url|texttt|emph|textit|textbf|textsc|mbox|text|enquote|mkbibquote)\b\s*", "", text)
    text = re.sub(r"\\(?:it|em|bf|sc|tt|rm|sl|ifmmode|fi|else)\b\s*", "", text)
    if "\\" in text:
        load_package("latexcodec", "latexcodec")
        text = codecs.getdecoder("ulatex")(text, "replace")[0]  # type: ignore[arg-type]  # of text, not of bytes
    text = text.replace("``", "“").replace("''", "”").replace("---", "—").replace("--", "–")
    text = re.sub(r"\\[,;:!/@ -]", " ", text)
    text = text.replace("{", "").replace("}", "").replace("~", " ").replace("\u00a0", " ")
    return unicodedata.normalize("NFC", re.sub(r"\s+", " ", text).strip())


def counts(entries: list[Entry]) -> Iterator[str]:
    """How many entries of which type there are in each part, one line each."""
    for part in PARTS:
        kinds = [entry.item["type"] for entry in entries if entry.part == part]
        listed = ", ".join(f"{kinds.count(kind):,} {kind}" for kind in sorted({*kinds}))
        yield f"{part}: {len(kinds):,} entries: {listed}"
