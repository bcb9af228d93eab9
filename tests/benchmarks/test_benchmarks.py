"""The benchmark's own parts, and one quick run of it from end to end."""

from __future__ import annotations

import json
import math
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks.corpora import find_corpus

from benchmarks import (
    ablation,
    bigrams,
    chain,
    column_files,
    costs,
    curves,
    decoding,
    explanations,
    morphology,
    orders,
    penalties,
    projective_trees,
    projectivity,
    segments,
    span_probabilities,
    table,
    tasks,
    trees,
    two_builds,
    unlabelled,
    use_log,
)
from crfkit import CRF, SGD, SpanningTree, StopReason, Template
from crfkit.inference import TreeBatch
from tests.needs import needs_rival

ROWS: list[tuple[str, ...]] = [("He", "PRP", "B-NP"), ("reckons", "VBZ", "B-VP"), (".", ".", "O")]


def test_chunk_features_leave_out_what_lies_outside_the_sentence() -> None:
    first, second, last = tasks.chunk_features(ROWS)
    assert first == [
        *("w[0]=He", "w[1]=reckons", "w[2]=.", "w[0]|w[1]=He|reckons"),
        *(
            "p[0]=PRP",
            "p[1]=VBZ",
            "p[2]=.",
            "p[0]|p[1]=PRP|VBZ",
            "p[1]|p[2]=VBZ|.",
            "p[0]|p[1]|p[2]=PRP|VBZ|.",
        ),
        "__BOS__",
    ]
    assert "p[-1]|p[0]|p[1]=PRP|VBZ|." in second
    assert last[-1] == "__EOS__"


def test_crfpp_features_name_the_rows_outside_the_sentence() -> None:
    first, _, last = tasks.crfpp_features(ROWS)
    assert len(first) == len(last) == 19
    assert {"U00:_B-2", "U01:_B-1", "U05:_B-1/He", "U20:_B-2/_B-1/PRP"} <= set(first)
    assert {"U03:_B+1", "U04:_B+2", "U22:./_B+1/_B+2"} <= set(last)


def test_tag_features_have_proper_affixes_only() -> None:
    first, _, _ = tasks.tag_features(ROWS)
    assert [feature for feature in first if "[0]" in feature] == [
        *("w[0]=He", "lower[0]=he", "shape[0]=Xx", "prefix[0]=H", "suffix[0]=e")
    ]


def run_of(*durations: tuple[float, float], start: float = 1.0) -> dict[str, object]:
    """A training run whose iterations took these CPU seconds and arrived at these objectives."""
    ticks, cpu = [], start
    for seconds, objective in durations:
        cpu += seconds
        ticks.append((cpu, 100.0, objective))
    return {"descent_start": (start, 99.0), "ticks": ticks}


def test_pooled_takes_the_least_seconds_of_each_iteration() -> None:
    short, longer = run_of((2, 9.0), (1, 5.0)), run_of((1, 9.0), (3, 5.0), (4, 2.0), start=7)
    curve = curves.pooled([short, longer], n_threads=1)
    assert curve == curves.Curve(seconds=(1, 1, 4), objectives=(9.0, 5.0, 2.0))
    assert curve.seconds_per_iteration == 2
    assert curve.first(2).seconds_per_iteration == 1


def test_seconds_to_gap_counts_from_the_start_of_the_descent() -> None:
    curve = curves.Curve(seconds=(1, 2, 4), objectives=(200.0, 100.009, 100.0))
    assert curve.seconds_to_gap(100.0) == 3
    assert curve.seconds_to_gap(99.999) == 7
    assert math.isinf(curve.seconds_to_gap(99.0))


def test_one_thread_is_timed_by_the_processor_and_two_by_the_wall() -> None:
    assert [curves.clock_of(1), curves.clock_of(2)] == ["cpu", "wall"]


def test_table_compares_with_the_rival() -> None:
    figures = dict.fromkeys((key for _, key, _, _ in table.FIGURES), 10.0)
    rival = figures | {"toolkit": "crfsuite", "version": "python-crfsuite 1", "n_threads": 1}
    ours = rival | {"toolkit": "crfkit", "version": "crfkit 2", "n_threads": 2, "tokens_per_second": 45.0}
    ours |= {"seconds_per_iteration": 4.0, "seconds_to_gap": math.inf, "f1": None}
    text = table.markdown(
        {
            "machine": {"processor": "P", "cores": 2, "python": "3"},
            "speed": {"chunk": {"iterations": 7, "rows": [rival, ours]}},
            "optimum": {},
            "scaling": {},
            "startup": None,
        }
    )
    assert "| python-crfsuite 1, 1 thread | crfkit 2, 2 threads |" in text
    assert "| seconds per iteration | 10.000 | 4.000 (2.5×) |" in text
    assert "tokens per second | 10 | 45 (4.5×) |" in text
    assert "gap of 1e-4 | 10.0 | not reached |" in text
    assert "objective after 7 iterations | 10.00 | 10.00 |" in text


needs_corpus = pytest.mark.skipif(
    find_corpus("conll2000", "train.txt") is None, reason="the CoNLL-2000 corpus is not on this machine"
)


@needs_corpus
@needs_rival
def test_quick_run_measures_both_toolkits(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    chain.main(["--quick", "--task", "chunk", "--only", "speed", "--out", str(tmp_path)])
    results = json.loads((tmp_path / "chain.json").read_text(encoding="utf-8"))
    rows = results["speed"]["chunk"]["rows"]
    assert [(row["toolkit"], row["n_threads"]) for row in rows] == list(chain.CONTENDERS)
    for row in rows:
        assert row["seconds_per_iteration"] > 0
        assert row["tokens_per_second"] > 0
        assert row["accuracy"] > 0.8
    objectives = [row["objective"] for row in rows]
    assert objectives[1] == pytest.approx(objectives[0], rel=1e-6)
    assert objectives[2] == objectives[1]  # the same bits for any number of threads
    assert (tmp_path / "chain.md").read_text(encoding="utf-8").strip() == capsys.readouterr().out.strip()


@pytest.mark.skipif(
    find_corpus("ud_latin_perseus", "la_perseus-ud-train.conllu") is None, reason="the corpus is not here"
)
def test_quick_run_of_morphology(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    morphology.main(["--quick", "--language", "la", "--out", str(tmp_path)])
    outcome = json.loads((tmp_path / "morphology.json").read_text(encoding="utf-8"))["languages"]["la"]
    assert outcome["sentences"] == morphology.QUICK
    assert 0.3 < outcome["unknown"] + 0.1 < outcome["accuracy"] < outcome["known"] < 1
    assert 0.8 < outcome["coverage"]["covered"] < 1
    assert outcome["peak_mb"] > outcome["model_mb"] > 0
    assert (tmp_path / "morphology.md").read_text(encoding="utf-8").strip() == capsys.readouterr().out.strip()


@pytest.mark.skipif(
    find_corpus("ud_latin_perseus", "la_perseus-ud-train.conllu") is None, reason="the corpus is not here"
)
def test_quick_run_of_ablation(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["--quick", "--corpus", "la-xpos", "--out", str(tmp_path), "~near l2=2"]
    ablation.main(command)
    table = capsys.readouterr().out
    outcome = json.loads((tmp_path / "ablation.json").read_text(encoding="utf-8"))
    whole, without = (outcome[f"morphology{edits}"]["la-xpos"] for edits in ("", " ~near l2=2"))
    assert whole["weights"] > without["weights"] > 0
    assert f"| the preset | {whole['score']:.2f} |" in table
    assert f"| ~near l2=2 | {without['score'] - whole['score']:+.2f} |" in table
    ablation.main(command)  # which measures nothing again
    assert capsys.readouterr().out == table


@pytest.mark.skipif(
    find_corpus("ud_latin_perseus", "la_perseus-ud-train.conllu") is None, reason="the corpus is not here"
)
def test_an_interrupted_run_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CRF, "stop_reason_", StopReason.INTERRUPTED)
    with pytest.raises(KeyboardInterrupt):
        ablation.main(["--quick", "--corpus", "la-xpos", "--out", str(tmp_path)])
    assert not (tmp_path / "ablation.json").exists()


def template_of(crf: CRF[Any]) -> str:
    assert isinstance(crf.features, Template)
    return crf.features.text


def test_edits_of_templates_and_settings() -> None:
    crf = ablation.new_model("morphology", "~near +shape optimizer=sgd optimizer__max_iterations=3")
    text = template_of(crf)
    assert "near=" not in text
    assert "shape=%shape[0,0]\n" in text
    assert (crf.l2, crf.optimizer) == ({"default": 1.0}, SGD(max_iterations=3))
    crf = ablation.new_model("pos", "affixes?10 ~prefix +suffix_1 l2=2")
    text = template_of(crf)
    assert "suffix3=%lower_suffix[0,0,3]|%rare[0,0,10]\nsuffix4=" in text
    assert "prefix2=" not in text
    assert "suffix2[-1]=%lower_suffix[-1,0,2]\n" in text
    assert crf.l2 == 2
    assert ablation.new_model("names", "span_states=iobes").span_states == "iobes"


@pytest.mark.skipif(
    find_corpus("ud_latin_perseus", "la_perseus-ud-train.conllu") is None, reason="the corpus is not here"
)
def test_folds_are_parts_of_a_sample(capsys: pytest.CaptureFixture[str]) -> None:
    corpus = ablation.CORPORA["la-upos"]._replace(sample=2)
    folds = [ablation.read_data(fold) for fold in corpus.folds(3)]
    sample = [
        x for n, (x, _) in enumerate(ablation._read(corpus, corpus.train)) if n // ablation.BLOCK % 2 == 0
    ]
    assert sorted(x for fold in folds for x in fold.held_out) == sorted(sample)
    assert all(sorted(fold.X + fold.held_out) == sorted(sample) for fold in folds)
    ablation.main(["--quick", "--corpus", "la-upos", "--folds", "2", "~suffix"])
    assert "| ~suffix |" in capsys.readouterr().out


def test_parts_in_one_piece_are_learned_from() -> None:
    split = ablation.Split(3, 2, 3, run=2)
    assert [split.is_learned(block) for block in range(8)] == [True, True, *[False] * 4, True, True]
    assert [split.is_out(block) for block in range(8)] == [*[False] * 4, True, True, False, False]


def test_uses_of_test_files_are_logged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(use_log, "LOG", tmp_path / "log")
    use_log.log_test("some/file", "CRF(a\n b)", 0.5)
    use_log.log_test("other", "CRF()", 1)
    assert [line.split("\t")[1:] for line in (tmp_path / "log").read_text(encoding="utf-8").splitlines()] == [
        ["some/file", "50.00%", "CRF(a b)"],
        ["other", "100.00%", "CRF()"],
    ]


@pytest.mark.skipif(find_corpus("conll2000", "train.txt") is None, reason="the corpus is not here")
def test_quick_run_of_segments(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    segments.main(["--quick", "--out", str(tmp_path)])
    outcome = json.loads((tmp_path / "segments.json").read_text(encoding="utf-8"))
    assert list(outcome["iteration"]["seconds"])[:2] == ["chain", "segments"]
    assert [row["longest"] for row in outcome["lengths"]] == [1, 2, 5]
    assert all(row["f1"] > 0.8 for row in outcome["accuracy"].values())
    assert (tmp_path / "segments.md").read_text(encoding="utf-8").strip() == capsys.readouterr().out.strip()


@pytest.mark.skipif(find_corpus("conll2000", "train.txt") is None, reason="the corpus is not here")
def test_quick_run_of_orders(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    orders.main(["--quick", "--held-out", "--task", "chunks", "--out", str(tmp_path)])
    outcome = json.loads((tmp_path / "orders.json").read_text(encoding="utf-8"))["tasks"]["chunks"]
    assert outcome["sentences"] == orders.QUICK * 4 // 5
    assert list(outcome["orders"]) == ["1", "2", "auto"]
    assert outcome["orders"]["1"]["patterns"] == 0 < outcome["orders"]["2"]["patterns"]
    assert all(row["f1"] > 0.8 for row in outcome["orders"].values())
    assert outcome["orders"]["auto"]["rounds"][0]["n_patterns"] == 0
    assert (tmp_path / "orders.md").read_text(encoding="utf-8").strip() == capsys.readouterr().out.strip()


def test_the_benchmark_of_bigrams_times_random_chains() -> None:
    assert bigrams.random_position(70, 3, repeats=1) > 0.0


def test_quick_run_of_trees(capsys: pytest.CaptureFixture[str]) -> None:
    trees.main(["--quick"])
    printed = capsys.readouterr().out
    assert "crfkit, one root" in printed
    assert "LAPACK, many roots" in printed


def test_quick_run_of_projective_trees(capsys: pytest.CaptureFixture[str]) -> None:
    projective_trees.main(["--quick"])  # compares log Z with that of the rivals that are installed
    printed = capsys.readouterr().out
    assert "first order: best trees" in printed
    assert "adjacent siblings: log Z and marginals" in printed


@pytest.mark.skipif(not trees.is_installed("torch_struct"), reason="torch-struct is not installed")
@pytest.mark.parametrize("structure", [trees.ONE, trees.MANY], ids=["one root", "many roots"])
def test_torch_struct_sums_the_same_trees(structure: SpanningTree) -> None:
    scores = np.random.default_rng(0).normal(size=(3, 8, 8))
    log_partition, gradient = trees.torch_struct_way(scores, "float64", not structure.single_root)()
    batch = TreeBatch(structure, scores, [7, 7, 7])
    np.testing.assert_allclose(log_partition, batch.log_partition(), atol=1e-3)  # it adds 1e-5 to each weight
    expected = np.array(batch.marginals())[:, 1:, 1:]
    expected[:, range(7), range(7)] = np.array(batch.marginals())[:, 0, 1:]
    np.testing.assert_allclose(gradient, expected, rtol=0, atol=1e-3)


def test_packages_that_are_not_there() -> None:
    assert trees.is_installed("numpy.linalg")
    assert not trees.is_installed("nosuchpackage")
    assert not trees.is_installed("nosuchpackage.inside")


@pytest.mark.parametrize("structure", [trees.ONE, trees.MANY], ids=["one root", "many roots"])
def test_determinants_of_the_benchmark_are_right(structure: SpanningTree) -> None:
    scores = np.random.default_rng(0).normal(size=(3, 8, 8))
    log_partition, marginals = trees.determinants(scores, structure.single_root)
    batch = TreeBatch(structure, scores, [7, 7, 7])
    np.testing.assert_allclose(log_partition, batch.log_partition(), rtol=1e-10)
    np.testing.assert_allclose(marginals, np.asarray(batch.marginals())[:, :, 1:], rtol=0, atol=1e-10)


@pytest.mark.skipif(
    find_corpus("ud_latin_perseus", "la_perseus-ud-train.conllu") is None, reason="the corpus is not here"
)
def test_quick_run_of_projectivity(capsys: pytest.CaptureFixture[str]) -> None:
    projectivity.main(["--quick", "--language", "la"])
    printed = capsys.readouterr().out
    assert "Latin: 30 training sentences" in printed
    assert re.search(r"\| projective trees \| .* \| 0\.0 % \|", printed)


def test_a_build_beside_itself(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """On data that is drawn: the same answers."""
    monkeypatch.setenv("CRFKIT_DATA", "/nonexistent")
    two_builds.main([sys.executable, sys.executable, "--quick", "--only", "lattice", "--only", "parsing"])
    rows = [line.strip("| ").split(" | ") for line in capsys.readouterr().out.splitlines()[2:]]
    assert [row[-1] for row in rows] == ["0", "0"]
    assert all(float(row[1]) > 0 for row in rows)


def test_what_differs_between_builds_is_said() -> None:
    old: dict[str, object] = {"cpu": 2.0, "iteration": 0.2, "peak_mb": 40.0, "value": 100.0}
    pair = two_builds.Pair(old, {**old, "cpu": 3.0, "iteration": None, "peak_mb": 20.0, "value": 100.001})
    row = two_builds.row_of("chain", pair)
    assert row == ["chain", "2.000", "3.000", "1.500", "–", "40.0", "20.0", "0.500", "1e-05"]
    assert two_builds.best([old, {**old, "cpu": 1.0, "iteration": None}])["cpu"] == 1.0


@pytest.mark.skipif(find_corpus("conll2002", "esp.train") is None, reason="the corpus is not here")
def test_quick_run_of_span_probabilities(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    span_probabilities.main(["--quick", "--dev", "--language", "spanish", "--out", str(tmp_path)])
    written = json.loads((tmp_path / "span_probabilities.json").read_text(encoding="utf-8"))
    for outcome in written["languages"]["spanish"].values():
        rows = outcome["rows"]
        assert rows["all, exact"]["area"] > max(rows["all, average"]["area"], rows["all, minimum"]["area"])
        assert all(0 <= row.get("calibration_error", 0) < 0.3 for row in rows.values())
        assert outcome["f1"]["viterbi"] > 0.5
    text = (tmp_path / "span_probabilities.md").read_text(encoding="utf-8")
    assert text.strip() == capsys.readouterr().out.strip()


@pytest.mark.skipif(find_corpus("conll2002", "esp.train") is None, reason="the corpus is not here")
def test_quick_run_of_costs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    costs.main(["--quick", "--out", str(tmp_path)])
    rows = json.loads((tmp_path / "costs.json").read_text(encoding="utf-8"))["languages"]["spanish"]
    found = [
        row["viterbi"]["recall"] / row["viterbi"]["precision"] for row in rows
    ]  # spans found for each gold one
    assert found[0] < found[3] < found[-1]
    assert (tmp_path / "costs.md").read_text(encoding="utf-8").strip() == capsys.readouterr().out.strip()


@pytest.mark.skipif(find_corpus("conll2002", "esp.train") is None, reason="the corpus is not here")
def test_decodings_have_the_highest_expected_figures(capsys: pytest.CaptureFixture[str]) -> None:
    decoding.main(["--quick", "--task", "spanish"])
    rows = [line.strip("| ").split(" | ") for line in capsys.readouterr().out.splitlines()[2:]]
    found = {row[1]: (float(row[2]), float(row[4])) for row in rows}
    assert max(found, key=lambda decode: found[decode][0]) == "marginal"
    assert found["f1"][1] == max(expected for _, expected in found.values())


@pytest.mark.slow
@pytest.mark.skipif(find_corpus("conll2002", "esp.train") is None, reason="the corpus is not here")
def test_quick_runs_of_penalties_and_few_labels(capsys: pytest.CaptureFixture[str]) -> None:
    penalties.main(["--quick", "--task", "spanish"])
    rows = [line.strip("| ").split(" | ") for line in capsys.readouterr().out.splitlines()[2:]]
    assert rows[-1][1].startswith("auto: ")
    assert float(rows[-1][2]) > 30
    unlabelled.main(["--quick", "--language", "spanish"])
    rows = [line.strip("| ").split(" | ") for line in capsys.readouterr().out.splitlines()[2:]]
    assert [row[2] for row in rows][2:] == ["self_train", "tri_train"]
    assert all(float(row[3]) > 20 for row in rows)


@pytest.mark.skipif(
    any(
        find_corpus(*file) is None
        for file in (
            ("conll2000", "train.txt"),
            ("conll2002", "esp.train"),
            ("ud_english_ewt", "en_ewt-ud-train.conllu"),
        )
    ),
    reason="a corpus is not here",
)
def test_quick_run_of_explanations(capsys: pytest.CaptureFixture[str]) -> None:
    explanations.main(["--quick"])
    printed = capsys.readouterr().out
    assert printed.count("| explain |") == 6
    assert printed.count("| explain_span |") == 5
    assert printed.count("| explain_arc |") == 2


def test_the_template_of_column_files_has_the_features_of_the_lists() -> None:
    template = Template.parse(column_files.template_text())
    assert [template.expand([row[:2] for row in ROWS], i)[0] for i in range(3)] == tasks.crfpp_features(ROWS)


@pytest.mark.skipif(find_corpus("conll2000", "train.txt") is None, reason="CoNLL-2000 is not on this machine")
def test_quick_run_of_column_files(capsys: pytest.CaptureFixture[str]) -> None:
    column_files.main(["--quick", "--threads", "1", "2"])
    text = capsys.readouterr().out
    assert "| crfkit, column file | 1 |" in text
    assert "| crfkit, lists of features | 2 |" in text
