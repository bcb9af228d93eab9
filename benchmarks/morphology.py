"""`python -m benchmarks.morphology`: morphological tagging with hundreds of tags, beside MarMoT where its figures are known.

Ancient Greek (AGDT → Perseus test), Polish, Latin and German; gold tokens, the whole tag (XPOS, of German FEATS) must be
right. Ancient Greek is also learned with sentences that count more or less by their kind of text (`benchmarks.text_kinds`).
Each training runs in a process of its own on one thread, in CPU seconds; the model is saved, loaded and asked. Each use of
a test file is logged. ``--quick`` is a smoke test.
"""

from __future__ import annotations

import argparse
import gc
import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from benchmarks.corpora import corpus_path
from benchmarks.machine import machine
from benchmarks.measure import PROJECT, Outcome, run_module
from benchmarks.memory import peak_mb, restart_peak_mb
from benchmarks.text_kinds import MIXTURES, Mixture
from benchmarks.use_log import log_test
from crfkit import CRF, TagDictionary, load
from crfkit.data import read_conllu

RESULTS = PROJECT / "benchmarks" / "results"
QUICK = 200  # sentences of each file

Sentences = list[list[str]]


class Language(NamedTuple):
    """Where a language is learned and tested."""

    title: str
    folder: str
    train: str
    test: str
    tag: str = "xpos"  # the column that is predicted
    rival: Mapping[str, float] | None = None  # MarMoT's figures for the same files
    mixture: Mixture | None = None  # whose weights sentences have

    @property
    def settings(self) -> str:
        """The model, and how often sentences count, for the log."""
        weights = f", sample_weight by kind of text {self.mixture.weights}" if self.mixture else ""
        return f"{tagger()!r}{weights}"


LANGUAGES = {
    "grc": Language(
        "Ancient Greek, AGDT → Perseus",
        "ancient_greek_perseus",
        "agdt-train.conllu",
        "grc_perseus-ud-test.conllu",
        rival={"accuracy": 0.7969, "fit_cpu": 511, "peak_mb": 3200, "model_mb": 144},
    ),
    "grc-weights": Language(
        "Ancient Greek, prose counting more",
        "ancient_greek_perseus",
        "agdt-train.conllu",
        "grc_perseus-ud-test.conllu",
        mixture=MIXTURES["grc"],
    ),
    "pl": Language(
        "Polish, LFG, PDB dev and PUD → PDB",
        "ud_polish",
        "pl_mixed-train.conllu",
        "pl_pdb-ud-test.conllu",
    ),
    "la": Language(
        "Latin, Perseus",
        "ud_latin_perseus",
        "la_perseus-ud-train.conllu",
        "la_perseus-ud-test.conllu",
    ),
    "de": Language(
        "German FEATS, LIT, PUD and GSD dev → GSD",
        "ud_german",
        "de_mixed-train.conllu",
        "de_gsd-ud-test.conllu",
        "feats",
    ),
}


def tagger() -> CRF:
    """The model that is measured: the preset, with what it brings along."""
    return CRF(features="morphology", n_threads=1)


class Text(NamedTuple):
    """The words and the tags of a file, and how often each sentence counts in training."""

    X: Sentences
    y: Sentences
    weights: list[float] | None


def read_text(language: Language, file: str, limit: int | None) -> Text:
    """Read a file, or its first sentences."""
    found = list(islice(read_conllu(corpus_path(language.folder, file)), limit))
    mixture = language.mixture
    return Text(
        [[word.form for word in sentence.words] for sentence in found],
        [[getattr(word, language.tag) for word in sentence.words] for sentence in found],
        None if mixture is None else mixture.weigh(found, mixture.weights),
    )


def measure(name: str, model: Path, limit: int | None) -> Outcome:
    """Train, save, load, tag, in this process."""
    language = LANGUAGES[name]
    X, y, weights = read_text(language, language.train, limit)
    gc.collect()
    restart_peak_mb()
    start = time.process_time()
    crf = tagger().fit(X, y, weights)
    fit_cpu = time.process_time() - start
    peak = peak_mb()
    crf.save(model, single_precision=True)
    figures: Outcome = {
        "sentences": len(X),
        "tokens": sum(map(len, y)),
        "tags": len(crf.classes_),
        "weights": len(crf.weights_),
        "fit_cpu": fit_cpu,
        "peak_mb": peak,  # of the whole process, the sentences included
        "model_mb": model.stat().st_size / 1e6,
    }
    test = read_text(language, language.test, limit)
    return figures | tag(model, TagDictionary.from_data(X, y), test.X, test.y)


def tag(model: Path, dictionary: TagDictionary, X: Sentences, y: Sentences) -> Outcome:
    """Accuracy and speed of a saved model on new sentences: all in one call, and one by one."""
    crf = load(model).set_params(n_threads=1)
    crf.predict(X[:1])
    start = time.process_time()
    predicted = crf.predict(X)
    together = time.process_time() - start
    start = time.process_time()
    for sentence in X:
        crf.predict([sentence])
    singly = time.process_time() - start
    right = {True: 0, False: 0}  # by whether the word is known
    total = {True: 0, False: 0}
    for words, gold, labels in zip(X, y, predicted, strict=True):
        for word, one, other in zip(words, gold, labels, strict=True):
            known = word in dictionary
            total[known] += 1
            right[known] += one == other
    return {
        "accuracy": sum(right.values()) / sum(total.values()),
        "known": right[True] / max(total[True], 1),
        "unknown": right[False] / max(total[False], 1),
        "unknown_share": total[False] / sum(total.values()),
        "ms_together": 1000 * together / len(X),
        "ms_singly": 1000 * singly / len(X),
        "coverage": dictionary.coverage(X, y)._asdict(),
    }


def run(name: str, limit: int | None) -> Outcome:
    """Measure a language in a fresh process."""
    print(LANGUAGES[name].title, "…", end=" ", file=sys.stderr, flush=True)
    with TemporaryDirectory(prefix="crfkit-bench-") as folder:
        job = json.dumps([name, f"{folder}/model.crf", limit])
        outcome: Outcome = run_module("morphology", "--job", job)
    print(f"{outcome['accuracy']:.2%}", file=sys.stderr, flush=True)
    return outcome


ROWS: tuple[tuple[str, Callable[[Mapping[str, Any]], str]], ...] = (
    ("accuracy, all words", lambda o: f"{o['accuracy']:.2%}"),
    ("accuracy, known words", lambda o: f"{o['known']:.2%}"),
    ("accuracy, unknown words", lambda o: f"{o['unknown']:.2%}"),
    ("unknown words", lambda o: f"{o['unknown_share']:.2%}"),
    ("training, CPU seconds", lambda o: f"{o['fit_cpu']:,.0f}"),
    ("peak memory, MB", lambda o: f"{o['peak_mb']:,.0f}"),
    ("model file, MB", lambda o: f"{o['model_mb']:.1f}"),
    ("weights", lambda o: f"{o['weights']:,}"),
    ("tagging, ms a sentence (all at once)", lambda o: f"{o['ms_together']:.2f}"),
    ("tagging, ms a sentence (one by one)", lambda o: f"{o['ms_singly']:.2f}"),
    ("dictionary: right tag allowed", lambda o: f"{o['coverage']['covered']:.2%}"),
    ("dictionary: right tag of unknown words allowed", lambda o: f"{o['coverage']['unknown_covered']:.2%}"),
    ("dictionary: tags a word", lambda o: f"{o['coverage']['labels']:.2f}"),
)


def markdown(results: Mapping[str, Any]) -> str:
    """One table for each language."""
    found = results["machine"]
    blocks = [f"{found['processor']}, Python {found['python']}; one thread."]
    for name, outcome in results["languages"].items():
        language = LANGUAGES[name]
        rival = language.rival or {}
        head = f"| {language.title} | crfkit |" + (" MarMoT |" if rival else "")
        lines = [head, "|---|---:|" + ("---:|" if rival else "")]
        for title, shown in ROWS:
            line = f"| {title} | {shown(outcome)} |"
            if rival:
                line += f" {_or_nothing(shown, rival)} |"
            lines.append(line)
        size = f"{outcome['sentences']:,} sentences, {outcome['tokens']:,} words, {outcome['tags']:,} tags in training."
        blocks.append("\n".join(lines) + f"\n\n{size}")
    return "\n\n".join(blocks)


def _or_nothing(shown: Callable[[Mapping[str, Any]], str], outcome: Mapping[str, Any]) -> str:
    try:
        return shown(outcome)
    except KeyError:
        return ""


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print the tables, and write them with all figures to the folder of results."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.morphology", description="morphological tagging with hundreds of tags"
    )
    parser.add_argument("--quick", action="store_true", help="a smoke test on a few sentences")
    parser.add_argument(
        "--language", action="append", choices=list(LANGUAGES), help="only this one (may be repeated)"
    )
    parser.add_argument("--out", type=Path, help=f"folder of results (default {RESULTS}; none with --quick)")
    parser.add_argument("--job", help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.job:
        name, model, limit = json.loads(given.job)
        print(json.dumps(measure(name, Path(model), limit)))
        return
    limit = QUICK if given.quick else None
    languages = {name: run(name, limit) for name in given.language or LANGUAGES}
    if limit is None:
        for name, outcome in languages.items():
            language = LANGUAGES[name]
            log_test(f"{language.folder}/{language.test}", language.settings, outcome["accuracy"])
    results = {"machine": machine(), "languages": languages}
    text = markdown(results)
    print(text)
    out = given.out or (None if given.quick else RESULTS)
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        (out / "morphology.md").write_text(text + "\n", encoding="utf-8")
        (out / "morphology.json").write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
