"""`python -m benchmarks.pipeline`: UD English EWT from raw text to trees, beside UDPipe 1 trained on the same files.

Both are trained on the training file, with the dev file to choose among passes, in a process of its own on one thread, in
CPU seconds; the model is saved, loaded, and asked for the raw text, for the gold tokens, and for the gold tokens and tags of
the dev file. ``--test`` asks for the test file instead. Training takes long, of UDPipe hours: ``--models FOLDER`` keeps
models and the figures of their training there, and uses those that are there, such as parts of UDPipe that
`python -m benchmarks.rival_udpipe` has trained one by one.
``--only`` leaves out one of the two, ``--quick`` is a smoke test.
"""

from __future__ import annotations

import argparse
import gc
import io
import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
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
from crfkit.data import Sentence, read_conllu, write_conllu
from crfkit.evaluation import TREEBANK_METRICS, evaluate_treebank
from crfkit.pipeline import Pipeline, WordList, raw_text

RESULTS = PROJECT / "benchmarks" / "results"
QUICK = 60  # sentences of each file
OURS, RIVAL = "crfkit", "UDPipe 1"
GIVEN = {"text": "raw text", "tokens": "gold tokens", "tags": "gold tags"}
FOLDER, FILE = "ud_english_ewt", "en_ewt-ud-{}.conllu"


class Job(NamedTuple):
    """What a process of its own measures."""

    toolkit: str
    folder: str  # of the models
    test: str  # "dev" or "test"
    limit: int | None
    words: str | None = None  # a file with words of the language


def measure(job: Job) -> Outcome:
    """Train, save, load, analyse, in this process."""
    gold = _read(job.test, job.limit)
    text = raw_text(gold)
    way = ours if job.toolkit == OURS else theirs
    outcome, asked = way(job)
    from_text, run_cpu, run_peak = asked(text)
    given, _, _ = asked([_without_analysis(sentence) for sentence in gold])
    tagged, _, _ = asked(gold)
    return outcome | {
        "run_cpu": run_cpu,
        "run_peak_mb": run_peak,
        "words": sum(len(sentence.words) for sentence in from_text),
        "text": _figures(gold, from_text),
        "tokens": _figures(gold, given),
        "tags": _figures(gold, tagged),
    }


# of raw text, of sentences without tags, or with tags that are kept: sentences, CPU seconds, peak MB
Asked = Callable[[str | list[Sentence]], tuple[list[Sentence], float, float]]


def ours(job: Job) -> tuple[Outcome, Asked]:
    """crfkit, trained with its defaults."""
    model = Path(job.folder) / "crfkit.pipeline"
    figures = model.with_suffix(".json")
    if not model.exists():
        training, dev = _read("train", job.limit), _read("dev", job.limit)
        model.parent.mkdir(parents=True, exist_ok=True)
        gc.collect()
        restart_peak_mb()
        start = time.process_time()
        words = None if job.words is None else WordList.read(job.words)
        trained = Pipeline(n_threads=1, words=words).fit(
            training, dev=dev, checkpoint=model.with_suffix(".steps"), verbose=1
        )
        found = {"fit_cpu": time.process_time() - start, "peak_mb": peak_mb()}
        trained.save(model)
        figures.write_text(json.dumps(found), encoding="utf-8")
        del trained, training, dev
        gc.collect()

    def ask(given: str | list[Sentence]) -> tuple[list[Sentence], float, float]:
        restart_peak_mb()
        pipeline = Pipeline.load(model)
        pipeline.n_threads = 1
        begin = time.process_time()
        if isinstance(given, str):
            found = pipeline(given, input="text")
        elif given[0].words[0].upos == "_":
            found = pipeline.predict(given)
        else:  # the parser alone
            found = pipeline.components_[-1].predict(given)
        return found, time.process_time() - begin, peak_mb()

    return json.loads(figures.read_text(encoding="utf-8")) | {"model_mb": model.stat().st_size / 1e6}, ask


def theirs(job: Job) -> tuple[Outcome, Asked]:
    """UDPipe, trained part by part."""
    training, dev = (corpus_path(FOLDER, FILE.format(part)) for part in ("train", "dev"))
    model, parts = rival_udpipe.train_parts("en", training, dev, Path(job.folder), job.limit)
    outcome = {
        "fit_cpu": sum(part["cpu_s"] for part in parts.values()),
        "peak_mb": max(part["peak_mb"] for part in parts.values()),
        "model_mb": model.stat().st_size / 1e6,
        "parts": parts,
    }

    def ask(given: str | list[Sentence]) -> tuple[list[Sentence], float, float]:
        form, tagged = "tokenize", False
        if not isinstance(given, str):
            form, stream, tagged = "conllu", io.StringIO(), given[0].words[0].upos != "_"
            write_conllu(given, stream)
            given = stream.getvalue()
        restart_peak_mb()
        found, seconds = rival_udpipe.annotate(model, given, form, tagged=tagged)
        peak = peak_mb()
        return list(read_conllu(io.StringIO(found))), seconds, peak

    return outcome, ask


def _read(part: str, limit: int | None) -> list[Sentence]:
    return list(islice(read_conllu(corpus_path(FOLDER, FILE.format(part))), limit))


def _without_analysis(sentence: Sentence) -> Sentence:
    """The words of a sentence alone."""
    words = [
        word._replace(lemma="_", upos="_", xpos="_", feats="_", head=None, deprel="_", deps="_")
        for word in sentence.words
    ]
    return Sentence(words, sentence.multiwords, comments=sentence.comments)


def _figures(gold: list[Sentence], found: list[Sentence]) -> dict[str, float]:
    """F1 of all metrics of the shared task."""
    report = evaluate_treebank(gold, found)
    return {name: counts.f1 for name, counts in report.counts.items()}


def run(job: Job) -> Outcome:
    """Measure in a fresh process."""
    print(job.toolkit, "…", end=" ", file=sys.stderr, flush=True)
    outcome: Outcome = run_module("pipeline", "--job", json.dumps(job))
    print(f"LAS {outcome['text']['LAS']:.2%}", file=sys.stderr, flush=True)
    return outcome


COSTS: tuple[tuple[str, Callable[[Mapping[str, Any]], str]], ...] = (
    ("training, CPU seconds", lambda o: f"{o['fit_cpu']:,.0f}"),
    ("peak memory of training, MB", lambda o: f"{o['peak_mb']:,.0f}"),
    ("model file, MB", lambda o: f"{o['model_mb']:.1f}"),
    ("words a CPU second, from raw text", lambda o: f"{o['words'] / o['run_cpu']:,.0f}"),
    ("peak memory of running, MB", lambda o: f"{o['run_peak_mb']:,.0f}"),
)


def markdown(results: Mapping[str, Any]) -> str:
    """The table of the shared task, F1 in per cent, and what it costs."""
    found, outcomes = results["machine"], results["toolkits"]
    heads = [f"{name}, {given}" for given in GIVEN.values() for name in outcomes]
    lines = [
        f"{found['processor']}, Python {found['python']}; one thread, CPU seconds; {results['test']} file.",
        "",
        f"| F1 | {' | '.join(heads)} |",
        "|---|" + "---:|" * len(heads),
    ]
    for name in TREEBANK_METRICS:
        cells = [f"{100 * o[given][name]:.2f}" for given in GIVEN for o in outcomes.values()]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    lines += ["", f"| | {' | '.join(outcomes)} |", "|---|" + "---:|" * len(outcomes)]
    lines += (f"| {title} | {' | '.join(shown(o) for o in outcomes.values())} |" for title, shown in COSTS)
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print the table, and write it with all figures to the folder of results."""
    options = argparse.ArgumentParser(
        prog="python -m benchmarks.pipeline", description="from raw text to trees"
    )
    options.add_argument("--quick", action="store_true", help="a smoke test on a few sentences")
    options.add_argument("--test", action="store_true", help="ask for the test file, not the dev file")
    options.add_argument("--only", choices=["ours", "rival"], help="only crfkit, or only UDPipe")
    options.add_argument("--words", type=Path, metavar="FILE", help="words of the language, for crfkit")
    options.add_argument("--models", type=Path, metavar="FOLDER", help="where models are kept")
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
    test = "test" if given.test else "dev"
    words = None if given.words is None else str(given.words.resolve())
    with TemporaryDirectory(prefix="crfkit-bench-") as temporary:
        folder, limit = str((given.models or Path(temporary)).resolve()), QUICK if given.quick else None
        outcomes = {toolkit: run(Job(toolkit, folder, test, limit, words)) for toolkit in toolkits}
    results = {"machine": machine(), "test": test, "toolkits": outcomes}
    text = markdown(results)
    print(text)
    out = given.out or (None if given.quick else RESULTS)
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        (out / "pipeline.md").write_text(text + "\n", encoding="utf-8")
        (out / "pipeline.json").write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
