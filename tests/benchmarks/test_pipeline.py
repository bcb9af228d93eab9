"""`benchmarks.pipeline` measures what it says, on a few sentences."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from benchmarks.corpora import find_corpus

from benchmarks import pipeline
from crfkit.evaluation import TREEBANK_METRICS

needs_english = pytest.mark.skipif(
    find_corpus(pipeline.FOLDER, pipeline.FILE.format("train")) is None,
    reason="the corpus is not on this machine",
)


@needs_english
def test_a_few_sentences(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pipeline.main(["--quick", "--only", "ours", "--out", str(tmp_path)])
    figures = json.loads((tmp_path / "pipeline.json").read_text())["toolkits"]["crfkit"]
    assert list(figures["text"]) == list(figures["tokens"]) == list(figures["tags"]) == list(TREEBANK_METRICS)
    assert figures["tokens"]["Words"] == figures["tokens"]["Sentences"] == figures["tags"]["AllTags"] == 1.0
    assert 0.5 < figures["text"]["Words"] < 1.0
    assert min(figures["fit_cpu"], figures["run_cpu"]) > 0
    assert figures["words"] > 500
    printed = capsys.readouterr().out
    assert printed == (tmp_path / "pipeline.md").read_text()
    las = [f"{100 * figures[given]['LAS']:.2f}" for given in pipeline.GIVEN]
    assert f"| LAS | {' | '.join(las)} |" in printed
