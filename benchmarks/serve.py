"""`python -m benchmarks.serve`: the server under load, beside the library in batches; a table on standard output.

Measured on names of CoNLL-2002 Spanish (without the corpora, on the sentences of `crfkit demo`):

    batches    tokens a second of /tag with 200 sentences a request, and of `CRF.predict` with the same; by the clock, and by
               the processor time of the process that answers
    latency    requests of one sentence: what the server answers at most, and the latencies at half of that rate
    soak       the same rate for --minutes: errors, and the memory of the server at the beginning and at the end

The load comes from a process of its own on the same machine, and takes processor time there.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.corpora import find_corpus
from benchmarks.http_load import LoadPlan, Seen
from crfkit import CRF, LBFGS, load
from crfkit.data import read_columns

PROJECT = Path(__file__).resolve().parent.parent
TICK = os.sysconf("SC_CLK_TCK")


class Server:
    """`crfkit serve` in a process of its own."""

    def __init__(self, model: Path, *options: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "crfkit", "serve", f"m={model}", "--port", "0", *options],
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stderr is not None
        found = re.search(r"http://[\d.]+:(\d+)", self.process.stderr.readline())
        assert found is not None
        self.port = int(found[1])

    def load(self, bodies: list[str], seconds: float, **options: Any) -> Seen:
        """Ask /tag from another process."""
        plan = LoadPlan(self.port, "/tag", bodies, seconds, **options)
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.http_load"],
            input=json.dumps(vars(plan)),
            capture_output=True,
            text=True,
            check=True,
            cwd=PROJECT,
        )
        return Seen(**json.loads(done.stdout))

    def processor_seconds(self) -> float:
        """Processor time of the server until now."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / TICK

    def memory(self) -> float:
        """Resident memory in MB."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.partition("VmRSS:")[2].split()[0]) / 1024


@contextlib.contextmanager
def running(model: Path, *options: str) -> Iterator[Server]:
    """A server that is stopped at the end."""
    server = Server(model, *options)
    try:
        yield server
    finally:
        server.process.terminate()
        server.process.wait(60)
        assert server.process.stderr is not None
        server.process.stderr.close()


def sentences(part: str) -> tuple[list[list[str]], list[list[str]]]:
    """Words and labels."""
    path = find_corpus("conll2002", {"train": "esp.train", "test": "esp.testa"}[part])
    if path is None:
        from crfkit.cli.demonstration.sample import draw_names

        drawn = draw_names(part)
        return drawn.words, drawn.labels
    found = [one.rows for one in read_columns(path)]
    return [[row[0] for row in rows] for rows in found], [[row[-1] for row in rows] for rows in found]


def train(file: Path, iterations: int) -> CRF[Any]:
    """The model that is served."""
    words, labels = sentences("train")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        crf: CRF[Any] = CRF(features="names", optimizer=LBFGS(max_iterations=iterations)).fit(words, labels)
    crf.save(file)
    return crf


def measure_library(crf: CRF[Any], batches: list[list[list[str]]], seconds: float) -> tuple[float, float]:
    """Tokens a second by the clock, and by processor time."""
    crf.predict(batches[0])
    n_tokens, began, began_cpu = 0, time.perf_counter(), time.process_time()
    while time.perf_counter() - began < seconds:
        for batch in batches:
            crf.predict(batch)
            n_tokens += sum(map(len, batch))
    return n_tokens / (time.perf_counter() - began), n_tokens / (time.process_time() - began_cpu)


def measure_batches(
    server: Server, batches: list[list[list[str]]], seconds: float
) -> tuple[float, float, Seen]:
    """The same of the server."""
    bodies = [json.dumps({"tokens": batch}, ensure_ascii=False) for batch in batches]
    server.load(bodies, 1.0)
    before = server.processor_seconds()
    seen = server.load(bodies, seconds)
    spent = server.processor_seconds() - before
    sizes = [sum(map(len, batch)) for batch in batches]
    n_tokens = seen.n_requests * sum(sizes) / len(sizes)
    return n_tokens / seen.seconds, n_tokens / spent, seen


def measure_latency(server: Server, words: list[list[str]], seconds: float) -> tuple[float, Seen]:
    """Requests a second at most, and what was seen at half of that."""
    bodies = [json.dumps({"tokens": [one]}, ensure_ascii=False) for one in words[:500]]
    server.load(bodies, 1.0)
    most = server.load(bodies, seconds, connections=16)
    capacity = most.n_requests / most.seconds
    return capacity, server.load(bodies, seconds, connections=64, rate=capacity / 2)


def soak(server: Server, words: list[list[str]], rate: float, minutes: float) -> None:
    """The rate for minutes, in pieces; memory after each."""
    bodies = [json.dumps({"tokens": [one]}, ensure_ascii=False) for one in words[:500]]
    statuses: dict[str, int] = {}
    memory = []
    for _ in range(max(int(minutes * 2), 2)):
        seen = server.load(bodies, 30.0 if minutes >= 1 else 2.0, connections=64, rate=rate)
        for status, count in seen.statuses.items():
            statuses[status] = statuses.get(status, 0) + count
        memory.append(server.memory())
    shown = ", ".join(f"{value:.1f}" for value in memory)
    print(
        f"soak: {minutes:g} minutes at {rate:.0f} requests a second: statuses {statuses}; memory in MB: {shown}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=8.0, help="of each measurement")
    parser.add_argument("--minutes", type=float, default=0.0, help="of the soak; 0: none")
    parser.add_argument(
        "--rate", type=float, help="requests a second of the soak; default: half of the capacity"
    )
    parser.add_argument("--model", type=Path, help="the model file; trained and written if it is not there")
    parser.add_argument("--iterations", type=int, default=30, help="of training")
    parser.add_argument("--threads", type=int, help="of the library and of the server")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        file = arguments.model or Path(folder) / "m.crf"
        crf = load(file) if file.exists() else train(file, arguments.iterations)
        crf.set_params(n_threads=arguments.threads)
        words, _ = sentences("test")
        batches = [words[i : i + 200] for i in range(0, len(words) - 199, 200)] or [words]
        print(f"load of the machine before: {os.getloadavg()[0]:.1f}, processors: {os.cpu_count()}")
        clock, cpu = measure_library(crf, batches, arguments.seconds)
        print(f"library in batches: {clock:,.0f} tokens/s, {cpu:,.0f} tokens per processor second")
        threads = () if arguments.threads is None else ("--threads", str(arguments.threads))
        with running(file, *threads) as server:
            by_clock, by_cpu, seen = measure_batches(server, batches, arguments.seconds)
            print(
                f"server in batches: {by_clock:,.0f} tokens/s ({by_clock / clock:.0%}), {by_cpu:,.0f} tokens per processor "
                f"second ({by_cpu / cpu:.0%}); statuses {seen.statuses}"
            )
            capacity, half = measure_latency(server, words, arguments.seconds)
            p50, p90, p99 = (1000 * half.quantile(share) for share in (0.5, 0.9, 0.99))
            print(
                f"one sentence a request: {capacity:,.0f} requests/s at most; at half of it p50 {p50:.1f} ms, "
                f"p90 {p90:.1f} ms, p99 {p99:.1f} ms; statuses {half.statuses}"
            )
            if arguments.minutes:
                soak(server, words, arguments.rate or capacity / 2, arguments.minutes)


if __name__ == "__main__":
    main()
