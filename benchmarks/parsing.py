"""`python -m benchmarks.parsing`: dependency parsing with gold tokens, tags and features, beside UDPipe 1.

UD English EWT, Ancient Greek, Latin, Polish, German. Each training runs in a process of its own on one thread, in CPU
seconds; the model is saved, loaded and asked. ``--only ours`` leaves out UDPipe, which takes many times as long, ``--dev``
tests on dev files in place of test files, ``--quick`` is a smoke test, ``--order`` and ``--structure`` are those of the
parser.
"""

from __future__ import annotations

import argparse
import gc
import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
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
from benchmarks.trees import is_installed
from crfkit import Parser, load
from crfkit.data import Sentence, read_conllu
from crfkit.evaluation import evaluate_trees

RESULTS = PROJECT / "benchmarks" / "results"
QUICK = 60  # sentences of each file
OURS, RIVAL = "crfkit", "UDPipe 1"


class Corpus(NamedTuple):
    """Where a language is learned and tested."""

    title: str
    folder: str
    train: str
    test: str
    dev: str | None = None
    single_root: bool = True


CORPORA = {
    "en": Corpus(
        "English, EWT",
        "ud_english_ewt",
        "en_ewt-ud-train.conllu",
        "en_ewt-ud-test.conllu",
        "en_ewt-ud-dev.conllu",
    ),
    "grc": Corpus(
        "Ancient Greek, Perseus: UD dev → UD test",
        "ancient_greek_perseus",
        "grc_perseus-ud-dev.conllu",
        "grc_perseus-ud-test.conllu",
    ),
    "agdt": Corpus(
        "Ancient Greek, AGDT (other labels, many roots) → UD test",
        "ancient_greek_perseus",
        "agdt-train.conllu",
        "grc_perseus-ud-test.conllu",
        single_root=False,
    ),
    "la": Corpus(
        "Latin, Perseus", "ud_latin_perseus", "la_perseus-ud-train.conllu", "la_perseus-ud-test.conllu"
    ),
    "pl": Corpus(
        "Polish, LFG, PDB dev and PUD → PDB", "ud_polish", "pl_mixed-train.conllu", "pl_pdb-ud-test.conllu"
    ),
    "de": Corpus(
        "German, LIT, PUD and GSD dev → GSD", "ud_german", "de_mixed-train.conllu", "de_gsd-ud-test.conllu"
    ),
}


class Job(NamedTuple):
    """What a process of its own measures."""

    toolkit: str
    corpus: str
    model: str
    on_dev: bool
    limit: int | None
    order: int | None = None  # None: the default of the parser
    structure: str | None = None
    models: str | None = None  # a folder that keeps UDPipe's
    passes: int | None = None  # of UDPipe
    vectors: str | None = None  # a folder with those of UDPipe


def files_of(job: Job) -> tuple[Path, Path]:
    """Training file and test file."""
    corpus = CORPORA[job.corpus]
    test = corpus.dev if job.on_dev and corpus.dev else corpus.test
    return corpus_path(corpus.folder, corpus.train), corpus_path(corpus.folder, test)


def measure(job: Job) -> Outcome:
    """Train, save, load, parse, in this process."""
    training, test = files_of(job)
    gold = list(islice(read_conllu(test), job.limit))
    way = ours if job.toolkit == OURS else theirs
    return way(job, training, test, gold) | {"model_mb": Path(job.model).stat().st_size / 1e6}


def ours(job: Job, training: Path, test: Path, gold: list[Sentence]) -> Outcome:
    """Figures of crfkit."""
    sentences = list(islice(read_conllu(training), job.limit))
    gc.collect()
    restart_peak_mb()
    start = time.process_time()
    asked = {name: value for name in ("order", "structure") if (value := getattr(job, name)) is not None}
    parser = Parser(single_root=CORPORA[job.corpus].single_root, n_threads=1, **asked).fit(sentences)
    fit_cpu, peak = time.process_time() - start, peak_mb()
    parser.save(job.model, single_precision=True)
    opened = load(job.model).set_params(n_threads=1)
    start = time.process_time()
    predicted = opened.predict(gold)
    parse_cpu = time.process_time() - start
    return {
        "sentences": len(sentences),
        "words": sum(len(sentence.words) for sentence in sentences),
        "labels": len(parser.classes_),
        "order": parser.order,
        "structure": parser.structure_reason_,
        "weights": len(parser.weights_),
        "fit_cpu": fit_cpu,
        "peak_mb": peak,  # of the whole process, the sentences included
        "parse_cpu": parse_cpu,
        **accuracy(gold, predicted),
    }


def theirs(job: Job, training: Path, test: Path, gold: list[Sentence]) -> Outcome:
    """Figures of UDPipe."""
    corpus = CORPORA[job.corpus]
    heldout = None if corpus.dev is None else corpus_path(corpus.folder, corpus.dev)
    folder = Path(job.models or Path(job.model).parent)
    vectors = None if job.vectors is None else Path(job.vectors)
    model, figures = rival_udpipe.find_part(
        job.corpus, "parser", training, heldout, folder, job.limit, job.passes, vectors
    )
    Path(job.model).write_bytes(model.read_bytes())
    found, parse_cpu = rival_udpipe.parse(model, test, job.limit)
    predicted = [
        replace(
            sentence,
            words=[
                word._replace(head=head, deprel=label)
                for word, (head, label) in zip(sentence.words, arcs, strict=True)
            ],
        )
        for sentence, arcs in zip(gold, found, strict=True)
    ]
    return {
        "fit_cpu": figures["cpu_s"],
        "peak_mb": figures["peak_mb"],
        "options": figures["options"],
        "parse_cpu": parse_cpu,
        **accuracy(gold, predicted),
    }


def accuracy(gold: list[Sentence], predicted: list[Sentence]) -> Outcome:
    """UAS, LAS and CLAS as the CoNLL-2018 shared task counts."""
    report = evaluate_trees(gold, predicted)
    return {"uas": report.uas, "las": report.las, "clas": report.clas, "test_sentences": report.n_sentences}


def run(job: Job) -> Outcome:
    """Measure in a fresh process."""
    print(CORPORA[job.corpus].title, job.toolkit, "…", end=" ", file=sys.stderr, flush=True)
    with TemporaryDirectory(prefix="crfkit-bench-") as folder:
        described = json.dumps(job._replace(model=f"{folder}/parser.model"))
        outcome: Outcome = run_module("parsing", "--job", described)
    print(f"UAS {outcome['uas']:.2%}, LAS {outcome['las']:.2%}", file=sys.stderr, flush=True)
    return outcome


ROWS: tuple[tuple[str, Callable[[Mapping[str, Any]], str]], ...] = (
    ("UAS", lambda o: f"{o['uas']:.2%}"),
    ("LAS", lambda o: f"{o['las']:.2%}"),
    ("CLAS", lambda o: f"{o['clas']:.2%}"),
    ("training, CPU seconds", lambda o: f"{o['fit_cpu']:,.0f}"),
    ("peak memory, MB", lambda o: f"{o['peak_mb']:,.0f}"),
    ("model file, MB", lambda o: f"{o['model_mb']:.1f}"),
    ("parsing, sentences a second", lambda o: f"{o['test_sentences'] / o['parse_cpu']:,.0f}"),
)


def markdown(results: Mapping[str, Any]) -> str:
    """One table for each corpus."""
    found = results["machine"]
    blocks = [f"{found['processor']}, Python {found['python']}; one thread, CPU seconds."]
    for name, outcomes in results["corpora"].items():
        lines = [f"| {CORPORA[name].title} | {' | '.join(outcomes)} |", "|---|" + "---:|" * len(outcomes)]
        for title, shown in ROWS:
            lines.append(f"| {title} | {' | '.join(shown(outcome) for outcome in outcomes.values())} |")
        own = outcomes.get(OURS)
        if own:
            size = f"{own['sentences']:,} sentences, {own['words']:,} words, {own['labels']} labels."
            lines += ["", f"{size} Order {own['order']}; {own['structure']}."]
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print the tables, and write them with all figures to the folder of results."""
    options = argparse.ArgumentParser(prog="python -m benchmarks.parsing", description="dependency parsing")
    options.add_argument("--quick", action="store_true", help="a smoke test on a few sentences")
    options.add_argument("--dev", action="store_true", help="test on the dev file where there is one")
    options.add_argument("--only", choices=["ours", "rival"], help="only crfkit, or only UDPipe")
    options.add_argument("--order", type=int, choices=[1, 2], help="of the parser (default: its own)")
    options.add_argument("--structure", choices=["auto", "spanning", "projective"], help="likewise")
    options.add_argument("--models", type=Path, metavar="FOLDER", help="keep UDPipe's models there")
    options.add_argument("--passes", type=int, help="of UDPipe")
    options.add_argument("--vectors", type=Path, metavar="FOLDER", help="of UDPipe: LANGUAGE_parser.vectors")
    options.add_argument("--corpus", action="append", choices=list(CORPORA), help="only this one")
    options.add_argument("--out", type=Path, help=f"folder of results (default {RESULTS}; none with --quick)")
    options.add_argument("--job", help=argparse.SUPPRESS)
    given = options.parse_args(arguments)
    if given.job:
        print(json.dumps(measure(Job(*json.loads(given.job)))))
        return
    toolkits = {"ours": [OURS], "rival": [RIVAL], None: [OURS, RIVAL]}[given.only]
    if RIVAL in toolkits and not is_installed("ufal.udpipe"):
        print("ufal.udpipe is not installed: UDPipe is left out", file=sys.stderr)
        toolkits = [OURS]
    limit = QUICK if given.quick else None
    folders = [None if path is None else str(path.resolve()) for path in (given.models, given.vectors)]
    asked = (given.dev, limit, given.order, given.structure, folders[0], given.passes, folders[1])
    corpora = {
        name: {toolkit: run(Job(toolkit, name, "", *asked)) for toolkit in toolkits}
        for name in given.corpus or CORPORA
    }
    results = {"machine": machine(), "corpora": corpora}
    text = markdown(results)
    print(text)
    out = given.out or (None if given.quick else RESULTS)
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        (out / "parsing.md").write_text(text + "\n", encoding="utf-8")
        (out / "parsing.json").write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
