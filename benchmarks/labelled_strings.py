"""Addresses and names whose words are labelled: training files of usaddress and of probablepeople (MIT licence).

They are in the source distributions on PyPI, not in the wheels:

    pip download --no-deps --no-binary :all: --dest FOLDER usaddress==0.5.16 probablepeople==0.5.6

``CRFKIT_SDISTS`` names FOLDER; without it, it is the folder ``sdists`` of the corpora. Files are read from the archives.
"""

from __future__ import annotations

import os
import tarfile
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

from benchmarks.corpora import MissingCorpusError, corpora_folder

FOLDER_VARIABLE = "CRFKIT_SDISTS"
_ENDS = ("</AddressString>", "</Name>")  # of one string

FILES = {
    "addresses": ("usaddress", "training/labeled.xml"),
    "messiest": ("usaddress", "training/us50_messiest_manual_label.xml"),
    "persons": ("probablepeople", "name_data/labeled/person_labeled.xml"),
    "companies": ("probablepeople", "name_data/labeled/company_labeled.xml"),
    "states": ("usaddress", "training/multi_word_state_addresses.xml"),
    "us50": ("usaddress", "training/us50_train_tagged.xml"),
    "openaddress": ("usaddress", "training/openaddress_us_ia_linn.xml"),
    "synthetic": ("usaddress", "training/synthetic_osm_data_xml.xml"),
    "synthetic-clean": ("usaddress", "training/synthetic_clean_osm_data.xml"),
}


class LabelledString(NamedTuple):
    """An address or a name: its words, with the punctuation behind them, and a label for each."""

    words: tuple[str, ...]
    labels: tuple[str, ...]


def find_archive(package: str) -> Path:
    """The source distribution of a package, which must be there."""
    folder = Path(os.environ.get(FOLDER_VARIABLE) or corpora_folder() / "sdists")
    found = sorted(folder.glob(f"{package}-*.tar.gz"))
    if not found:
        raise MissingCorpusError(
            f"no source distribution {package}-*.tar.gz in {folder} (set {FOLDER_VARIABLE} to a folder that has it: "
            f"pip download --no-deps --no-binary :all: {package})"
        )
    return found[-1]


@cache
def read_strings(file: str) -> tuple[LabelledString, ...]:
    """The strings of a file of `FILES`, each once: what differs in capitals alone counts as equal."""
    package, path = FILES[file]
    with tarfile.open(find_archive(package)) as archive:
        name = next(name for name in archive.getnames() if name.partition("/")[2] == path)
        stream = archive.extractfile(name)
        assert stream is not None  # it is a file
        text = stream.read().decode("utf-8")
    return tuple(leave_out(parse_strings(text), ()))


def parse_strings(text: str) -> list[LabelledString]:
    """The strings of an XML file, but for those that are not well-formed: one file has such lines."""
    for end in _ENDS:
        text = text.replace(end, f"{end}\0")
    found = []
    for piece in text.split("\0"):
        begin = max(piece.find("<AddressString>"), piece.find("<Name>"))
        try:
            elements = list(ElementTree.fromstring(piece[begin:].strip())) if begin >= 0 else []
        except ElementTree.ParseError:
            continue
        texts = [((element.text or "").strip(), element.tag) for element in elements]
        parts = [(word, label) for word, label in texts if word]
        if parts:
            words, labels = zip(*parts, strict=True)
            found.append(LabelledString(words, labels))
    return found


def leave_out(strings: Iterable[LabelledString], others: Iterable[LabelledString]) -> list[LabelledString]:
    """The distinct strings that are not among the others."""
    seen = {_key(string) for string in others}
    found = []
    for string in strings:
        if _key(string) not in seen:
            seen.add(_key(string))
            found.append(string)
    return found


def _key(string: LabelledString) -> str:
    return " ".join(string.words).casefold()
