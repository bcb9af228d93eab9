"""The chunk preset on CoNLL-2000, and what a user waits for from a cold start: the import, one tagged sentence."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import crfkit
from benchmarks.measure import PROJECT
from benchmarks.tasks import CHUNK, sentences
from crfkit.data import write_columns
from crfkit.evaluation import span_report

IMPORT = "import time; t = time.perf_counter(); import crfkit; print(time.perf_counter() - t)"
REPEATS = 5


def cold_start(folder: Path, part: float, iterations: int) -> dict[str, Any]:
    """F1 of the preset, and seconds in new processes (best of five) with the model that was trained."""
    train, test = sentences("train", part), sentences("test", part)
    model = crfkit.CRF(
        features="chunks", span_states=False, optimizer=crfkit.LBFGS(max_iterations=iterations), n_threads=2
    )
    model.fit(
        [[row[:CHUNK] for row in rows] for rows in train], [[row[CHUNK] for row in rows] for rows in train]
    )
    gold = [[row[CHUNK] for row in rows] for rows in test]
    predicted = model.predict([[row[:CHUNK] for row in rows] for rows in test])
    model_path, file_path = folder / "chunks.crf", folder / "sentence.txt"
    model.save(model_path)
    with file_path.open("w", encoding="utf-8") as stream:
        write_columns(test[0], stream)
    return {
        "f1": span_report(gold, predicted, "IOB2").overall.f1,
        "import": min(_imported() for _ in range(REPEATS)),
        "tag": min(_tagged(model_path, file_path) for _ in range(REPEATS)),
        "model_mb": model_path.stat().st_size / 1e6,
    }


def _imported() -> float:
    command = [sys.executable, "-c", IMPORT]
    return float(subprocess.run(command, cwd=PROJECT, capture_output=True, check=True).stdout)


def _tagged(model: Path, file: Path) -> float:
    command = [sys.executable, "-m", "crfkit", "tag", str(model), str(file)]
    start = time.perf_counter()
    subprocess.run(command, cwd=PROJECT, capture_output=True, check=True)
    return time.perf_counter() - start
