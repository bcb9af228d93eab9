"""`python -m benchmarks.out_of_core`: training on more data than memory holds.

CoNLL-2000 is encoded (features of the preset `chunks`), and its shards are copied: 50 copies have 10.6 million tokens. That
is the data set that the same file, given 50 times, is encoded to. A few iterations of L-BFGS are then made twice on the
same shards, each time by a process of its own: out of core, as `fit` does it on an encoded data set, and with the losses of
all shards in memory. Shown are the peak of memory, the time of an evaluation (CPU and clock; the first one, which compiles
the shards, apart), and whether the objectives have the same bits.

    python -m benchmarks.out_of_core [--copies 50] [--iterations 4] [--threads 1] [--quick]
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.corpora import corpus_path
from benchmarks.machine import machine
from benchmarks.memory import peak_mb
from benchmarks.table import grid
from crfkit import CRF, LBFGS
from crfkit.data import EncodedDataset, open_dataset, read_pairs
from crfkit.features import EncodingSettings, PairSource, encode_sources
from crfkit.models.training.stored_task import StoredSequences, StoredTask
from crfkit.models.training.train import Plan
from crfkit.objective import Objective, sum_losses

CORPUS = ("conll2000", "train.txt")
HEAD = (
    "data",
    "peak MB",
    "CPU s first",
    "CPU s / evaluation",
    "ns / token",
    "clock s / evaluation",
    "objective",
)


def encode(out: Path, copies: int, limit: int | None, shard_size: int) -> dict[str, Any]:
    """The data set, and what it took to encode one copy."""
    path = corpus_path(*CORPUS)

    def sequences() -> Iterator[Any]:
        return islice(read_pairs(path), limit)

    cpu = time.process_time()
    settings = EncodingSettings("chunks", shard_size=shard_size)
    found = encode_sources([PairSource("one copy", sequences)], out, settings, n_threads=1)
    cpu = time.process_time() - cpu
    repeat(found, copies)
    found = open_dataset(out)
    size = sum(file.stat().st_size for file in out.iterdir()) / 1e6
    return {
        "peak": peak_mb(),
        "cpu": cpu,
        "tokens": found.n_positions,
        "features": found.n_features,
        "shards": found.n_shards,
        "disk": size,
    }


def repeat(dataset: EncodedDataset, copies: int) -> None:
    """Copies the shards of a data set, so that it has all sequences so many times."""
    shards = dataset.head["shards"]
    for i in range(len(shards), copies * len(shards)):
        shutil.copyfile(dataset.files.shard(i % len(shards)), dataset.files.shard(i))
    counts = {name: copies * dataset.head[name] for name in ("n_sequences", "n_positions")}
    dataset.files.head.write_text(json.dumps({**dataset.head, **counts, "shards": shards * copies}))


class Timed:
    """An objective whose evaluations are timed."""

    def __init__(self, objective: Objective) -> None:
        self._objective = objective
        self.seconds: list[tuple[float, float]] = []  # CPU and clock of each evaluation

    def __getattr__(self, name: str) -> Any:
        return getattr(self._objective, name)

    def value_and_gradient(self, w: Any) -> Any:
        """The same answer."""
        began, cpu = time.perf_counter(), time.process_time()
        answer = self._objective.value_and_gradient(w)
        self.seconds.append((time.process_time() - cpu, time.perf_counter() - began))
        return answer


def train(path: Path, *, in_memory: bool, iterations: int, n_threads: int) -> dict[str, Any]:
    """A few iterations, and what they took."""
    crf: CRF[str] = CRF(optimizer=LBFGS(max_iterations=iterations), n_threads=n_threads)
    encoded = StoredTask(crf._settings(), open_dataset(path)).encode(Plan(), n_threads)
    assert isinstance(encoded, StoredSequences)
    objective = encoded.objective(n_threads, None)
    if in_memory:
        potentials = encoded.model.potentials
        stored = encoded.stored
        losses = [potentials.shard_loss(*shard, n_threads, stored.n_shards) for shard in stored.shards()]
        objective = Objective(sum_losses(losses), l1=objective.l1, l2=objective.l2)
    timed = Timed(objective)
    outcome = LBFGS(max_iterations=iterations).minimize(
        timed, np.zeros(objective.n_weights), n_threads=n_threads
    )
    return {
        "peak": peak_mb(),
        "seconds": timed.seconds,
        "weights": objective.n_weights,
        "objectives": [record.objective.hex() for record in outcome.history],
    }


def row(name: str, found: dict[str, Any], n_tokens: int) -> list[str]:
    """Of the table."""
    first, *others = found["seconds"]
    cpu, clock = np.median(others, axis=0)
    return [
        name,
        f"{found['peak']:,.0f}",
        f"{first[0]:.2f}",
        f"{cpu:.2f}",
        f"{cpu / n_tokens * 1e9:.0f}",
        f"{clock:.2f}",
        f"{float.fromhex(found['objectives'][-1]):.6f}",
    ]


def run(job: str, arguments: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """A job in a process of its own."""
    command = [
        sys.executable,
        "-W",
        "ignore",
        "-m",
        "benchmarks.out_of_core",
        "--job",
        job,
        "--folder",
        str(folder),
    ]
    for name in ("copies", "iterations", "threads", "limit", "shard_size"):
        if getattr(arguments, name) is not None:
            command += [f"--{name.replace('_', '-')}", str(getattr(arguments, name))]
    found: dict[str, Any] = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    return found


def main(given: list[str] | None = None) -> None:
    """Write the table to standard output."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--copies", type=int, default=50)
    parser.add_argument("--iterations", type=int, default=4)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--limit", type=int, help="sentences of a copy")
    parser.add_argument("--shard-size", type=int, default=1 << 18)
    parser.add_argument("--quick", action="store_true", help="three copies of 200 sentences")
    parser.add_argument("--folder", type=Path, help="keep the data set here")
    parser.add_argument("--job", choices=("encode", "stored", "memory"), help=argparse.SUPPRESS)
    arguments = parser.parse_args(given)
    if arguments.job == "encode":
        made = encode(arguments.folder, arguments.copies, arguments.limit, arguments.shard_size)
        print(json.dumps(made))
        return
    if arguments.job:
        options = {"iterations": arguments.iterations, "n_threads": arguments.threads}
        print(json.dumps(train(arguments.folder, in_memory=arguments.job == "memory", **options)))
        return
    if arguments.quick:
        arguments.copies, arguments.limit, arguments.iterations = 3, 200, 3
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        compare(arguments, Path(folder) / "data")


def compare(arguments: argparse.Namespace, folder: Path) -> None:
    """Encode, train twice, and write the table."""
    encoded = run("encode", arguments, folder)
    print(f"{machine()}\n{arguments.threads} thread(s)\n")
    print(
        f"encoded {encoded['tokens']:,} tokens, {encoded['features']:,} features, {encoded['shards']} shards, "
        f"{encoded['disk']:,.0f} MB on disk; one copy took {encoded['cpu']:.1f} CPU s, peak {encoded['peak']:,.0f} MB\n"
    )
    stored, memory = (run(job, arguments, folder) for job in ("stored", "memory"))
    rows = [
        row(name, found, encoded["tokens"])
        for name, found in (("out of core", stored), ("in memory", memory))
    ]
    print(grid(HEAD, rows))
    same = stored["objectives"] == memory["objectives"]
    cpu, clock = (
        np.median(stored["seconds"][1:], axis=0) / np.median(memory["seconds"][1:], axis=0)
    ).tolist()
    print(f"\nthe same bits of the objective in all iterations: {same}")
    print(f"an evaluation out of core takes {cpu:.2f} times the CPU and {clock:.2f} times the clock")


if __name__ == "__main__":
    main()
