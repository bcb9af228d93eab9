"""`python -m benchmarks.encoding`: encoding a column file as a data set.

CoNLL-2000, several times, with the features of the preset `chunks`: read by the core, with one thread and with more, and
line by line in Python (one thread). Each run is a process of its own. One thread is timed in CPU seconds, more by the wall
clock too.

    python -m benchmarks.encoding [--copies 10] [--threads 1 2] [--quick]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.corpora import corpus_path
from benchmarks.machine import machine
from benchmarks.memory import peak_mb
from benchmarks.table import grid
from crfkit.data import read_byte_pieces, read_pairs
from crfkit.features import EncodingSettings, PairSource, encode_sources, file_source, read_row_shards

CORPUS = ("conll2000", "train.txt")
HEAD = ("read by", "threads", "CPU s", "clock s", "tokens / CPU s", "peak MB")


def encode(file: Path, out: Path, reader: str, n_threads: int) -> dict[str, Any]:
    """Encode a file, and say what it took."""
    source = file_source(file, partial(read_row_shards, file))
    if reader == "Python":
        source = PairSource(source.name, partial(read_pairs, file))
    cpu, clock = time.process_time(), time.perf_counter()
    found = encode_sources([source], out, EncodingSettings("chunks"), n_threads=n_threads)
    return {
        "cpu": time.process_time() - cpu,
        "clock": time.perf_counter() - clock,
        "tokens": found.n_positions,
        "peak": peak_mb(),
    }


def run(file: Path, folder: Path, reader: str, n_threads: int) -> list[str]:
    """The row of a table, by a process of its own."""
    out = folder / f"{reader}{n_threads}"
    command = [
        sys.executable,
        "-m",
        "benchmarks.encoding",
        "--job",
        reader,
        str(file),
        str(out),
        str(n_threads),
    ]
    found = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    speed = found["tokens"] / found["cpu"]
    times = (f"{found['cpu']:.1f}", f"{found['clock']:.1f}", f"{speed:,.0f}")
    return [reader, str(n_threads), *times, f"{found['peak']:,.0f}"]


def main(given: list[str] | None = None) -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--copies", type=int, default=10)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--quick", action="store_true", help="one copy of a part of the corpus")
    parser.add_argument("--job", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args(given)
    if options.job:
        reader, file, out, n_threads = options.job
        print(json.dumps(encode(Path(file), Path(out), reader, int(n_threads))))
        return
    text = b"".join(read_byte_pieces(corpus_path(*CORPUS)))
    if options.quick:
        text = text[: text.index(b"\n\n", 50_000) + 2]
    with tempfile.TemporaryDirectory() as name:
        file = Path(name) / "train.txt"
        with file.open("wb") as stream:
            stream.writelines([text] * (1 if options.quick else options.copies))
        runs = [("Python", 1), *(("core", n) for n in options.threads)]
        rows = [run(file, Path(name), *kind) for kind in runs]
    print(f"{machine()}\n\n{grid(HEAD, rows)}")


if __name__ == "__main__":
    main()
