"""`python -m benchmarks.tagging`: taggers of treebanks with gold tokens, beside UDPipe 1.

UPOS, XPOS and FEATS of the treebanks of `benchmarks.parsing`. Each training runs in a process of its own on one thread, in
CPU seconds; the model is saved, loaded and asked. UDPipe's tagger fills all columns at once, crfkit has a `TreebankTagger`
with its defaults for each. ``--dev`` tests on dev files, or, where there is none, on every eighth block of 20 sentences of
the training file, which is then left out; ``--only``, ``--corpus`` and ``--tag`` select rows, ``--quick`` is a smoke test.
"""

from __future__ import annotations

import argparse
import gc
import json
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from benchmarks import rival_udpipe
from benchmarks.corpora import corpus_path
from benchmarks.machine import machine
from benchmarks.measure import PROJECT, Outcome, run_module
from benchmarks.memory import peak_mb, restart_peak_mb
from benchmarks.parsing import CORPORA, OURS, QUICK, RIVAL
from benchmarks.trees import is_installed
from benchmarks.use_log import log_test
from crfkit import TreebankTagger, load
from crfkit.data import Sentence, read_conllu, write_conllu
from crfkit.evaluation import evaluate_tags
from crfkit.pipeline import WordList

RESULTS = PROJECT / "benchmarks" / "results"
TAGS = ("upos", "xpos", "feats")
BLOCK, HELD_OUT = 20, 8  # sentences of a block, of which every so many is held out


class Job(NamedTuple):
    """What a process of its own measures."""

    toolkit: str
    corpus: str
    tag: str  # of crfkit's tagger
    folder: str  # for models
    on_dev: bool
    limit: int | None
    words: str | None = None  # a file with words of the language


def data_of(job: Job) -> tuple[list[Sentence], list[Sentence] | None, list[Sentence]]:
    """Training, dev and test sentences; dev, which chooses among passes, where the treebank has a dev file."""
    corpus = CORPORA[job.corpus]

    def read(file: str) -> list[Sentence]:
        return list(islice(read_conllu(corpus_path(corpus.folder, file)), job.limit))

    training, dev = read(corpus.train), None if corpus.dev is None else read(corpus.dev)
    if not job.on_dev:
        return training, dev, read(corpus.test)
    if dev is not None:
        return training, dev, dev
    kept, held_out = split(training)
    return kept, None, held_out


def split(sentences: list[Sentence]) -> tuple[list[Sentence], list[Sentence]]:
    """Sentences to learn from, and those of every eighth block."""
    is_out = [n // BLOCK % HELD_OUT == 0 for n in range(len(sentences))]
    return (
        [s for s, out in zip(sentences, is_out, strict=True) if not out],
        [s for s, out in zip(sentences, is_out, strict=True) if out],
    )


def measure(job: Job) -> Outcome:
    """Train, save, load, tag, in this process."""
    training, dev, test = data_of(job)
    known = frozenset(word.form for sentence in training for word in sentence.words)
    outcome, predicted = (ours if job.toolkit == OURS else theirs)(job, training, dev, test)
    columns = job.tag.split("+") if job.toolkit == OURS else TAGS
    accuracy = {name: _accuracy(test, predicted, name, known) for name in columns}
    return outcome | {"words": sum(len(sentence.words) for sentence in test), "accuracy": accuracy}


def ours(
    job: Job, training: list[Sentence], dev: list[Sentence] | None, test: list[Sentence]
) -> tuple[Outcome, list[Sentence]]:
    """Figures of crfkit, and the sentences as it tags them."""
    model = Path(job.folder) / f"{job.corpus}_{job.tag}.tagger"
    model.parent.mkdir(parents=True, exist_ok=True)
    gc.collect()
    restart_peak_mb()
    start = time.process_time()
    words = None if job.words is None else WordList.read(job.words)
    tagger = TreebankTagger(job.tag, n_threads=1, words=words).fit(training, dev=dev)
    fit_cpu, peak = time.process_time() - start, peak_mb()
    tagger.save(model)
    opened = load(model)
    opened.n_threads = 1
    start = time.process_time()
    predicted = opened.predict(test)
    tag_cpu = time.process_time() - start
    figures = {
        "fit_cpu": fit_cpu,
        "peak_mb": peak,
        "tag_cpu": tag_cpu,
        "model_mb": model.stat().st_size / 1e6,
    }
    return figures | {"settings": tagger.settings_reason_, "tags": len(tagger.classes_)}, predicted


def theirs(
    job: Job, training: list[Sentence], dev: list[Sentence] | None, test: list[Sentence]
) -> tuple[Outcome, list[Sentence]]:
    """Figures of UDPipe, and the sentences as it tags them; a model that the folder holds is used."""
    folder = Path(job.folder)
    if job.on_dev and dev is None:
        folder /= "held_out"
    folder.mkdir(parents=True, exist_ok=True)
    paths = {}
    for name, sentences in (("train", training), ("dev", dev), ("test", test)):
        if sentences is not None:
            paths[name] = folder / f"{job.corpus}_{name}.conllu"
            write_conllu(sentences, paths[name])
    model, figures = rival_udpipe.find_part(
        job.corpus, "tagger", paths["train"], paths.get("dev"), folder, job.limit
    )
    found, tag_cpu = rival_udpipe.tag(model, paths["test"], None)
    predicted = [
        replace(s, words=[word._replace(**tags) for word, tags in zip(s.words, columns, strict=True)])
        for s, columns in zip(test, found, strict=True)
    ]
    return {
        "fit_cpu": figures["cpu_s"],
        "peak_mb": figures["peak_mb"],
        "tag_cpu": tag_cpu,
        "model_mb": model.stat().st_size / 1e6,
        "settings": figures["options"],
    }, predicted


def _accuracy(
    gold: list[Sentence], predicted: list[Sentence], name: str, known: frozenset[str]
) -> dict[str, float] | None:
    """Accuracy of a column over all words, known ones and others; None where the gold sentences have no such tags."""
    if all(getattr(word, name) == "_" for sentence in gold for word in sentence.words):
        return None
    report = evaluate_tags(gold, predicted, (name,), known)
    return {"all": report.words.accuracy} | {
        kind: 0.0 if share is None else share.accuracy
        for kind, share in (("known", report.known), ("unknown", report.unknown))
    }


def run(job: Job) -> Outcome:
    """Measure in a fresh process."""
    print(CORPORA[job.corpus].title, job.toolkit, job.tag, "…", end=" ", file=sys.stderr, flush=True)
    outcome: Outcome = run_module("tagging", "--job", json.dumps(job))
    shown = {name: found and round(100 * found["all"], 2) for name, found in outcome["accuracy"].items()}
    print(shown, file=sys.stderr, flush=True)
    log_uses(job, outcome)
    return outcome


def log_uses(job: Job, outcome: Outcome) -> None:
    """Log each column of a test file that crfkit was asked for; other files, and parts of one, have no say in a table."""
    if job.toolkit != OURS or job.on_dev or job.limit is not None:
        return
    corpus, words = CORPORA[job.corpus], "" if job.words is None else f", words={Path(job.words).name!r}"
    for name, found in outcome["accuracy"].items():
        if found is not None:
            settings = f"tagging: TreebankTagger({job.tag!r}{words}): {name}; {outcome.get('settings', '')}"
            log_test(f"{corpus.folder}/{corpus.test}", settings, found["all"])


def markdown(results: Mapping[str, Any]) -> str:
    """A row for each column of each corpus and toolkit."""
    found = results["machine"]
    lines = [
        f"{found['processor']}, Python {found['python']}; one thread, CPU seconds; {results['test']} sentences.",
        "",
        "| treebank, column | toolkit | accuracy | known words | others | training, s | memory, MB | model, MB | words/s |",
        "|---|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for row in results["rows"]:
        outcome = row["outcome"]
        for name, share in outcome["accuracy"].items():
            if share is None:
                continue
            shares = " | ".join(f"{100 * share[kind]:.2f}" for kind in ("all", "known", "unknown"))
            costs = f"{outcome['fit_cpu']:,.0f} | {outcome['peak_mb']:,.0f} | {outcome['model_mb']:.1f}"
            speed = f"{outcome['words'] / outcome['tag_cpu']:,.0f}"
            title = f"{CORPORA[row['corpus']].title}, {name.upper()}"
            lines.append(f"| {title} | {row['toolkit']} {row['tag']} | {shares} | {costs} | {speed} |")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print the table, and write it with all figures to the folder of results, after each row."""
    options = argparse.ArgumentParser(prog="python -m benchmarks.tagging", description="taggers of treebanks")
    options.add_argument("--quick", action="store_true", help="a smoke test on a few sentences")
    options.add_argument("--dev", action="store_true", help="test on dev or held-out sentences")
    options.add_argument("--only", choices=["ours", "rival"], help="only crfkit, or only UDPipe")
    options.add_argument("--corpus", action="append", choices=list(CORPORA), help="only this one")
    options.add_argument("--tag", action="append", help="only this column, or joint columns, of crfkit")
    options.add_argument("--words", type=Path, metavar="FILE", help="words of the language, for crfkit")
    options.add_argument("--models", type=Path, metavar="FOLDER", help="where models are kept")
    options.add_argument("--out", type=Path, help=f"folder of results (default {RESULTS}; none with --quick)")
    options.add_argument("--job", help=argparse.SUPPRESS)
    given = options.parse_args(arguments)
    if given.job:
        print(json.dumps(measure(Job(*json.loads(given.job)))))
        return
    rival = given.only != "ours" and is_installed("ufal.udpipe")
    if given.only != "ours" and not rival:
        print("ufal.udpipe is not installed: UDPipe is left out", file=sys.stderr)
    out = given.out or (None if given.quick else RESULTS)
    words = None if given.words is None else str(given.words.resolve())
    asked = given.dev, QUICK if given.quick else None, words
    results: dict[str, Any] = {"machine": machine(), "test": "dev" if given.dev else "test", "rows": []}
    with TemporaryDirectory(prefix="crfkit-bench-") as temporary:
        folder = str((given.models or Path(temporary)).resolve())
        for corpus in given.corpus or ("en", "la", "pl", "de", "grc"):
            own = [] if given.only == "rival" else [(OURS, tag) for tag in given.tag or TAGS]
            for toolkit, tag in [*own, *([(RIVAL, "")] * rival)]:
                outcome = run(Job(toolkit, corpus, tag, folder, *asked))
                results["rows"].append({"corpus": corpus, "toolkit": toolkit, "tag": tag, "outcome": outcome})
                if out is not None:
                    out.mkdir(parents=True, exist_ok=True)
                    (out / "tagging.md").write_text(markdown(results) + "\n", encoding="utf-8")
                    (out / "tagging.json").write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    print(markdown(results))


if __name__ == "__main__":
    main()
