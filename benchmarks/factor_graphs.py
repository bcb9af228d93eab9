"""Exact inference on the instances of UAI-2014 beside pyAgrum and pgmpy: one core, the same limits, a process each.

    python -m benchmarks.factor_graphs [--results FILE] [--only REGEX] [--toolkits crfkit,pyagrum]
                                       [--seconds 90] [--gigabytes 6]

Seconds are processor time for all marginals, without loading. The other toolkits come with pip install pyagrum pgmpy. What
FILE has already is not measured again, and what is measured is added to it, so that a run can be continued.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.corpora import corpus_path
from benchmarks.machine import machine
from benchmarks.measure import PROJECT, THREAD_VARIABLES

Row = dict[str, Any]
TOOLKITS = ("crfkit", "pyagrum", "pgmpy")
WALL = 8  # seconds by the clock for each second of processor time, where other processes use the machine
NEAR_LOG10_Z, NEAR_MARGINALS = 1e-8, 1e-9


def instances(folder: Path) -> list[Path]:
    """Unpack the instances; the models, each with its evidence in a file beside it."""
    with tarfile.open(corpus_path("uai", "uai2014-mar.tar.xz")) as archive:
        archive.extractall(folder, filter="data")
    return sorted(folder.glob("*.uai"), key=_natural)


def _natural(path: Path) -> tuple[str, int]:
    name, _, number = path.stem.rpartition("_")
    return name.lower(), int(number)


def measure(toolkit: str, model: Path, seconds: float, gigabytes: float) -> Row:
    """The figures of one toolkit on one instance; marginals go to a file beside the model."""
    marginals = model.with_name(f"{model.stem}.{toolkit}.npz")
    arguments = [toolkit, model, f"{model}.evid", seconds, gigabytes, marginals]
    command = [sys.executable, "-W", "ignore", "-m", "benchmarks.graph_contenders", *map(str, arguments)]
    environment = os.environ | dict.fromkeys(THREAD_VARIABLES, "1")
    row: Row = {"instance": model.stem, "toolkit": toolkit, "load": os.getloadavg()[0]}
    try:
        done = subprocess.run(
            command,
            cwd=PROJECT,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=60 + WALL * seconds,
        )
    except subprocess.TimeoutExpired:
        return row | {"error": f"more than {seconds:g} s"}
    if done.returncode:
        signals = {-24: f"more than {seconds:g} s", -9: "killed"}  # SIGXCPU, SIGKILL
        last = (done.stderr.strip().splitlines() or ["nothing"])[-1]
        return row | {"error": signals.get(done.returncode, f"status {done.returncode}: {last[:200]}")}
    row |= json.loads(done.stdout.splitlines()[-1])
    return row | ({"marginals": str(marginals)} if "error" not in row else {})


def compare(rows: Iterable[Row]) -> list[Row]:
    """How far pyAgrum's and pgmpy's answers are from crfkit's, for each instance that both finished."""
    finished = {(row["instance"], row["toolkit"]): row for row in rows if "error" not in row}
    found = []
    for (instance, toolkit), row in finished.items():
        ours = finished.get((instance, "crfkit"))
        if toolkit == "crfkit" or ours is None:
            continue
        found.append(
            {
                "instance": instance,
                "toolkit": toolkit,
                "log10_z": abs(ours["log10_z"] - row["log10_z"]),
                "marginals": distance(ours["marginals"], row["marginals"]),
                "ratio": row["cpu"] / ours["cpu"],
            }
        )
    return found


def distance(one: str, other: str) -> float:
    """The largest difference of two files of marginals; NaN where one is gone."""
    if not (Path(one).exists() and Path(other).exists()):
        return math.nan
    with np.load(one) as a, np.load(other) as b:
        return max((float(np.abs(a[name] - b[name]).max()) for name in a.files), default=0.0)


def agrees(row: Row) -> bool:
    """Whether answers are the same; pgmpy has no log Z."""
    same_z = row["toolkit"] == "pgmpy" or row["log10_z"] <= NEAR_LOG10_Z
    return bool(same_z and row["marginals"] <= NEAR_MARGINALS)


def geometric_mean(ratios: Sequence[float]) -> float:
    return math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else math.nan


def table(rows: Sequence[Row]) -> str:
    """What was measured, an instance a line, and what follows from it."""
    by = {(row["instance"], row["toolkit"]): row for row in rows}
    toolkits = [toolkit for toolkit in TOOLKITS if any(key[1] == toolkit for key in by)]
    names = list(dict.fromkeys(row["instance"] for row in rows))
    apart = {(row["instance"], row["toolkit"]): row for row in compare(rows)}
    head = [
        "instance",
        *(f"{t} s" for t in toolkits),
        *(f"{t} MB" for t in toolkits),
        "predicted MB",
        "width",
    ]
    head += ["log10 Z", "Δ log10 Z", "Δ marginals"]
    lines = [head]
    for name in names:
        ours = by.get((name, "crfkit"), {})
        other = apart.get((name, "pyagrum")) or apart.get((name, "pgmpy")) or {}
        lines.append(
            [
                name,
                *(_written(by.get((name, t), {}), "cpu", ".3f") for t in toolkits),
                *(_written(by.get((name, t), {}), "peak_mb", ".0f") for t in toolkits),
                *(
                    _written(ours, "predicted_mb", ".0f"),
                    _written(ours, "width", "d"),
                    _written(ours, "log10_z", ".6f"),
                ),
                *(_written(other, "log10_z", ".0e"), _written(other, "marginals", ".0e")),
            ]
        )
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    text = ["  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)) for line in lines]
    return "\n".join([*text, "", *_summary(rows)])


def _summary(rows: Sequence[Row]) -> list[str]:
    lines = []
    for toolkit in TOOLKITS:
        of = [row for row in rows if row["toolkit"] == toolkit]
        if of:
            done = [row for row in of if "error" not in row]
            lines.append(f"{toolkit}: {len(done)} of {len(of)} finished")
    for toolkit in TOOLKITS[1:]:
        both = [row for row in compare(rows) if row["toolkit"] == toolkit]
        if both:
            wrong = [row["instance"] for row in both if not agrees(row)]
            lines.append(
                f"{toolkit}: {geometric_mean([row['ratio'] for row in both]):.1f} times the seconds of crfkit "
                f"(geometric mean of {len(both)}; least {min(row['ratio'] for row in both):.2f}); "
                f"answers differ on: {', '.join(wrong) or 'none'}"
            )
    ours = [row for row in rows if row["toolkit"] == "crfkit" and "error" not in row and row["peak_mb"] > 50]
    if ours:
        ratios = [row["predicted_mb"] / row["peak_mb"] for row in ours]
        lines.append(
            f"predicted / peak memory, where it is more than 50 MB: {min(ratios):.2f} … {max(ratios):.2f} ({len(ours)})"
        )
    refused = [
        row["wall"] for row in rows if row["toolkit"] == "crfkit" and "SizeLimit" in row.get("error", "")
    ]
    if refused:
        lines.append(f"crfkit refused {len(refused)}, each within {max(refused):.2f} s by the clock")
    lines += [f"{row['toolkit']} {row['instance']}: {row['error']}" for row in rows if "error" in row]
    return lines


def _written(row: Row, key: str, how: str) -> str:
    if "error" in row:
        return "–"
    value = row.get(key)
    return "" if value is None or value != value else format(value, how)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--results", type=Path, help="a file of JSON lines; marginals are kept in its folder")
    parser.add_argument("--only", default="", help="a regular expression for names of instances")
    parser.add_argument("--toolkits", default=",".join(TOOLKITS))
    parser.add_argument("--seconds", type=float, default=90)
    parser.add_argument("--gigabytes", type=float, default=6)
    options = parser.parse_args()
    print(json.dumps(machine()))
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.results.resolve().parent if options.results else Path(temporary)
        rows: list[Row] = []
        if options.results and options.results.exists():
            rows = [json.loads(line) for line in options.results.read_text().splitlines()]
        known = {(row["instance"], row["toolkit"]) for row in rows}
        for model in instances(folder):
            for toolkit in options.toolkits.split(","):
                if (model.stem, toolkit) in known or not re.search(options.only, model.stem):
                    continue
                row = measure(toolkit, model, options.seconds, options.gigabytes)
                rows.append(row)
                if options.results:
                    with options.results.open("a") as stream:
                        stream.write(json.dumps(row) + "\n")
                print(
                    json.dumps({key: value for key, value in row.items() if key != "marginals"}), flush=True
                )
        print(table(rows))


if __name__ == "__main__":
    main()
