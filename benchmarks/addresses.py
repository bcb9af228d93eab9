"""`python -m benchmarks.addresses`: parts of addresses and of names, beside usaddress and probablepeople.

The development data are the first four fifths of the training files of both packages (`benchmarks.labelled_strings`): models
are compared by cross-validation in five folds. ``persons+companies`` has both files of probablepeople. A model is a preset
with edits of `benchmarks.ablation` ("names ~near l2=0.5"), where "+lists" adds the lists of the rival; or ``rival``: the
features of usaddress or of probablepeople with python-crfsuite and the settings of parserator, on the same strings
(`benchmarks.rival_usaddress`).

``--add FILE`` adds the strings of another file to all training sets, ``--add FILE:N`` the first N of them. ``--parts`` has
F1 for each label. ``--speed`` measures training and parsing. ``--test`` asks the last fifth of each file, and
`us50_messiest_manual_label.xml`, and logs it. One thread. ``--quick`` is a smoke test.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from types import ModuleType
from typing import Any, NamedTuple, Protocol

from benchmarks.ablation import new_model
from benchmarks.corpora import MissingCorpusError
from benchmarks.labelled_strings import FILES, LabelledString, leave_out, read_strings
from benchmarks.rival_usaddress import Rival, find_rival, list_columns
from benchmarks.table import grid
from benchmarks.use_log import log_test
from crfkit.evaluation import accuracy, paired_bootstrap, sequence_accuracy, span_report

RIVALS = {
    "addresses": "usaddress",
    "persons": "probablepeople",
    "companies": "probablepeople",
    "persons+companies": "probablepeople",
}
RIVAL = "rival"
LISTS = "+lists"
N_FOLDS = 5
QUICK = 40  # strings of each file
PASSES = 5  # of parsing

Labels = list[list[str]]


class Model(Protocol):
    """What is compared."""

    def fit(self, X: Any, y: Any) -> Any:
        """Train."""

    def predict(self, X: Any) -> Labels:
        """The labels of each string."""


class WithLists:
    """A model that also reads the lists of a rival."""

    def __init__(self, model: Model, package: ModuleType) -> None:
        self._model, self._package = model, package

    def fit(self, X: Any, y: Any) -> Any:
        """Train."""
        self._model.fit([list_columns(self._package, words) for words in X], y)

    def predict(self, X: Any) -> Labels:
        """The labels of each string."""
        return self._model.predict([list_columns(self._package, words) for words in X])


class Figures(NamedTuple):
    """The labels of all held-out strings, in the order of the files."""

    gold: Labels
    predicted: Labels

    def cells(self) -> list[str]:
        """Accuracy of words and of whole strings."""
        return [
            f"{100 * accuracy(self.gold, self.predicted):.2f}",
            f"{100 * sequence_accuracy(self.gold, self.predicted):.2f}",
        ]


def development(corpus: str, limit: int | None = None) -> list[LabelledString]:
    """The first four fifths of each file of a corpus, without the strings of the test file."""
    return [string for file in corpus.split("+") for string in _cut(file, limit)[0]]


def held_back(corpus: str, limit: int | None = None) -> list[LabelledString]:
    """The last fifth of each file of a corpus."""
    return [string for file in corpus.split("+") for string in _cut(file, limit)[1]]


def _cut(file: str, limit: int | None) -> tuple[list[LabelledString], list[LabelledString]]:
    strings = list(read_strings(file))
    if file == "addresses":
        strings = leave_out(strings, read_strings("messiest"))
    cut = len(strings) * 4 // 5
    return strings[:cut][:limit], strings[cut:][:limit]


def make_model(spec: str, corpus: str) -> Model | None:
    """An untrained model; None: a rival that is not installed."""
    if spec == RIVAL:
        package = find_rival(RIVALS[corpus])
        return None if package is None else Rival(package)
    preset, _, edits = spec.partition(" ")
    if LISTS not in edits.split():
        return new_model(preset, edits)
    package = find_rival(RIVALS[corpus])
    return None if package is None else WithLists(new_model(preset, edits, n_columns=3), package)


def train(model: Model, strings: Sequence[LabelledString]) -> Model:
    """Train a model on strings."""
    model.fit([list(string.words) for string in strings], [list(string.labels) for string in strings])
    return model


def answer(model: Model, strings: Sequence[LabelledString]) -> Figures:
    """What a trained model predicts."""
    found = model.predict([list(string.words) for string in strings])
    return Figures([list(string.labels) for string in strings], [list(labels) for labels in found])


def cross_validate(
    make: Callable[[], Model], strings: Sequence[LabelledString], added: Sequence[LabelledString] = ()
) -> Figures:
    """The answers to all strings, each by a model that was trained on the other folds and on what is added."""
    found = Figures([], [])
    for k in range(N_FOLDS):
        held_out = strings[k::N_FOLDS]
        others = [string for i, string in enumerate(strings) if i % N_FOLDS != k]
        others += leave_out(added, held_out)
        fold = answer(train(make(), others), held_out)
        found.gold.extend(fold.gold)
        found.predicted.extend(fold.predicted)
    return found


def compare(corpora: Sequence[str], specs: Sequence[str], add: str | None, limit: int | None) -> str:
    """A row for each model: the figures on each corpus, and what the choice of strings may explain of the difference."""
    rows = {spec: [spec] for spec in specs}
    for corpus in corpora:
        strings = development(corpus, limit)
        added = _read_added(add, limit) if add else []
        first: Figures | None = None
        for spec in specs:
            model = make_model(spec, corpus)
            if model is None:
                rows[spec] += ["–"] * 3
                continue
            found = cross_validate(partial(_made, spec, corpus), strings, added)
            rows[spec] += [*found.cells(), _difference(first, found)]
            first = first or found
            print(f"{corpus}, {spec}: {' '.join(rows[spec][-3:])}", file=sys.stderr, flush=True)
    head = [f"{corpus}: {what}" for corpus in corpora for what in ("words", "strings", "difference")]
    return grid(["model", *head], rows.values())


def _read_added(add: str, limit: int | None) -> list[LabelledString]:
    """The strings of a file, or with "FILE:N" its first N."""
    file, _, most = add.partition(":")
    return list(read_strings(file))[: int(most) if most else None][:limit]


def _made(spec: str, corpus: str) -> Model:
    model = make_model(spec, corpus)
    assert model is not None  # it was there before
    return model


def _difference(first: Figures | None, second: Figures) -> str:
    """Of the words' accuracy, with the interval of 95 %."""
    if first is None:
        return ""
    found = paired_bootstrap(first.gold, first.predicted, second.predicted, "accuracy", n_samples=2_000)
    low, high = (100 * end for end in found.interval)
    return f"{100 * found.difference:+.2f} ({low:+.2f} to {high:+.2f})"


def show_parts(corpus: str, specs: Sequence[str], limit: int | None) -> str:
    """F1 of the parts of each label, runs of equal labels, by cross-validation."""
    strings = development(corpus, limit)
    used = [spec for spec in specs if make_model(spec, corpus) is not None]
    found = [cross_validate(partial(_made, spec, corpus), strings) for spec in used]
    reports = [span_report(one.gold, one.predicted, "plain") for one in found]
    types = sorted(reports[0].types, key=lambda label: -reports[0].types[label].gold)
    rows = [["all", f"{reports[0].overall.gold}", *(f"{100 * report.overall.f1:.1f}" for report in reports)]]
    for label in types:
        counts = [report.types.get(label) for report in reports]
        cells = [f"{100 * one.f1:.1f}" if one else "–" for one in counts]
        rows.append([label, f"{reports[0].types[label].gold}", *cells])
    return grid([f"{corpus}: F1 of parts", "parts", *used], rows)


def show_speed(corpora: Sequence[str], specs: Sequence[str], limit: int | None) -> str:
    """CPU seconds of training on the development data, and strings parsed a second: the best of some passes."""
    rows = []
    for corpus in corpora:
        strings = development(corpus, limit)
        for spec in specs:
            model = make_model(spec, corpus)
            if model is None:
                continue
            began = time.process_time()
            train(model, strings)
            seconds = time.process_time() - began
            together = _fastest(partial(answer, model, strings))
            alone = _fastest(partial(_answer_each, model, strings))
            rates = (f"{len(strings) / found:,.0f}" for found in (together, alone))
            rows.append([corpus, spec, f"{seconds:.2f}", *rates])
    return grid(["corpus", "model", "training, CPU s", "strings a second", "one by one"], rows)


def _answer_each(model: Model, strings: Sequence[LabelledString]) -> list[Figures]:
    return [answer(model, [string]) for string in strings]


def _fastest(call: Callable[[], object]) -> float:
    """CPU seconds of the best pass."""
    passes = []
    for _ in range(PASSES):
        began = time.process_time()
        call()
        passes.append(time.process_time() - began)
    return min(passes)


def ask_tests(corpora: Sequence[str], specs: Sequence[str], limit: int | None) -> str:
    """What models of all development data say about the strings that were held back; each answer is logged."""
    rows = []
    for corpus in corpora:
        tests = {f"{corpus}, last fifth": held_back(corpus, limit)}
        if corpus == "addresses":
            tests[FILES["messiest"][1]] = list(read_strings("messiest"))[:limit]
        for spec in specs:
            model = make_model(spec, corpus)
            if model is None:
                continue
            train(model, development(corpus, limit))
            for name, strings in tests.items():
                found = answer(model, strings)
                rows.append([name, spec, f"{len(strings)}", *found.cells()])
                if limit is None:
                    log_test(f"{RIVALS[corpus]}: {name}", f"addresses: {spec}", accuracy(*found))
    return grid(["test strings", "model", "strings", "words", "whole strings"], rows)


def main(arguments: Sequence[str] | None = None) -> None:
    """Compare models by cross-validation, or say what was asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.addresses", description="parts of addresses")
    parser.add_argument("--corpus", action="append", choices=list(RIVALS), help="one of them (repeatable)")
    parser.add_argument(
        "--add", metavar="FILE[:N]", help="the (first N) strings of FILE join all training sets"
    )
    parser.add_argument("--parts", action="store_true", help="F1 of each label")
    parser.add_argument("--speed", action="store_true", help="training and parsing")
    parser.add_argument("--test", action="store_true", help="ask the test files, and log it")
    parser.add_argument("--quick", action="store_true", help="a smoke test on a few strings")
    parser.add_argument("models", nargs="*", help=f'"names ~near l2=0.5", or {RIVAL}')
    given = parser.parse_args(arguments)
    corpora, specs = given.corpus or list(RIVALS), given.models or [RIVAL, "names", "pos"]
    limit = QUICK if given.quick else None
    if given.add and given.add.partition(":")[0] not in FILES:
        parser.error(f"there is no file {given.add}: expected one of {', '.join(FILES)}")
    try:
        if given.test:
            print(ask_tests(corpora, specs, limit))
        elif given.speed:
            print(show_speed(corpora, specs, limit))
        elif given.parts:
            print("\n\n".join(show_parts(corpus, specs, limit) for corpus in corpora))
        else:
            print(compare(corpora, specs, given.add, limit))
    except MissingCorpusError as error:
        print(f"nothing is measured: {error}", file=sys.stderr)


if __name__ == "__main__":
    main()
