"""From a cold start: `import crfkit`, and `crfkit tag` of one sentence, each in a new process."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import crfkit
from benchmarks.corpora import corpus_path
from crfkit.data import read_columns, write_columns

IMPORT = "import time; t = time.perf_counter(); import crfkit; crfkit.CRF; print(time.perf_counter() - t)"
REPEATS = 5


def cold_start(folder: Path, part: float, iterations: int) -> dict[str, Any]:
    """Seconds, best of five; the model is the chunk preset trained on CoNLL-2000."""
    sentences = [s.rows for s in read_columns(corpus_path("conll2000", "train.txt"), comment=None)]
    sentences = sentences[: round(part * len(sentences))]
    model = crfkit.CRF(features="chunks", optimizer=crfkit.LBFGS(max_iterations=iterations), n_threads=2)
    model.fit(
        [[row[:2] for row in rows] for rows in sentences], [[row[2] for row in rows] for rows in sentences]
    )
    model_path, file_path = folder / "startup.crf", folder / "sentence.txt"
    model.save(model_path)
    with file_path.open("w", encoding="utf-8") as stream:
        write_columns(sentences[0], stream)
    return {
        "import": min(_imported() for _ in range(REPEATS)),
        "tag": min(_tagged(model_path, file_path) for _ in range(REPEATS)),
        "model_mb": model_path.stat().st_size / 1e6,
    }


def _imported() -> float:
    return float(subprocess.run([sys.executable, "-c", IMPORT], capture_output=True, check=True).stdout)


def _tagged(model: Path, file: Path) -> float:
    start = time.perf_counter()
    subprocess.run([sys.executable, "-m", "crfkit", "tag", model, file], capture_output=True, check=True)
    return time.perf_counter() - start
