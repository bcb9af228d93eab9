"""The benchmark of organisation names: its matches and patterns on small sentences, and one quick run."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks.corpora import find_corpus
from benchmarks.gazetteers import BLOCK, Gazetteers, Match, columns
from benchmarks.name_patterns import NamePatterns
from benchmarks.name_segments import NameSegments
from benchmarks.name_spans import candidates, ending_spans, whole_names
from benchmarks.name_types import all_types, choose, only_organisations
from benchmarks.name_types import organisations as organisation_labels
from benchmarks.scored_labels import ScoredLabels, runs_of

from benchmarks import organisations
from crfkit import Span

needs_gazetteers = pytest.mark.skipif(
    find_corpus("zh_gazetteer", "suffix_nt.tsv") is None, reason="the gazetteers are not on this machine"
)
needs_corpus = pytest.mark.skipif(
    find_corpus("msra", "msra_train.txt") is None, reason="the MSRA corpus is not on this machine"
)


def test_only_organisations_become_labels() -> None:
    tags = ["B-ORG", "I-ORG", "I-ORG", "O", "B-LOC", "I-LOC", "B-ORG"]
    assert organisation_labels(tags) == ["B", "I", "E", "O", "O", "O", "S"]


def test_marks_between_names_of_one_type_have_a_type() -> None:
    tags = ["B-ORG", "I-ORG", "O", "B-ORG", "O", "B-LOC", "O", "B-LOC"]
    labels = ["B-ORG", "E-ORG", "S-ORG+ORG", "S-ORG", "O", "S-LOC", "O", "S-LOC"]
    assert all_types("甲乙、丙、丁的戊", tags) == labels
    assert only_organisations(labels) == ["B", "E", "O", "S", "O", "O", "O", "O"]


def test_names_are_chosen_by_the_mean_of_probabilities() -> None:
    one = [Span(0, 2, "", 0.5), Span(1, 4, "", 0.4), Span(5, 6, "", 0.6)]
    other = [Span(0, 2, "LOC", 0.9), Span(1, 4, "ORG", 0.5), Span(5, 6, "ORG", 0.1)]
    assert choose([one, other], 0.35) == [(1, 4), (5, 6)]
    assert choose([one, other], 0.4) == [(1, 4)]
    assert choose([one], 0.35) == [(0, 2), (5, 6)]


def test_columns_show_the_longest_match_of_each_kind() -> None:
    matches = [Match(0, 2, "known", "always"), Match(0, 3, "known", "rarely"), Match(2, 4, "place", "")]
    positions = columns("abcd", matches)
    assert [position[2] for position in positions] == ["B rarely", "I rarely", "E rarely", "-"]
    assert [position[0] for position in positions] == ["-", "-", "B", "E"]


def test_spans_end_as_organisations_do_and_hold_no_stop() -> None:
    matches = [Match(5, 6, "ending", "f"), Match(3, 4, "place", "")]
    assert list(ending_spans("ab，def", matches, frozenset("，^d"))) == [(4, 6), (3, 6)]


def test_whole_names_inside_longer_ones_have_weights_of_their_own() -> None:
    matches = [Match(0, 2, "known", "always"), Match(0, 4, "organisation", ""), Match(5, 7, "place", "")]
    assert whole_names(matches) == {
        (0, 2): ["whole known always, in a longer one"],
        (0, 4): ["whole organisation "],
    }


def test_candidates_have_two_characters_at_least() -> None:
    matches = [Match(0, 1, "organisation", ""), Match(1, 4, "known", "always")]
    assert candidates("abcdefgh", matches, frozenset()) == [(1, 4)]


@needs_gazetteers
def test_a_name_is_known_where_a_far_sentence_has_it() -> None:
    filler = [f"第{n}句" for n in range(3 * BLOCK)]
    texts = ["甲乙丙来了", "见甲乙丙", *filler, "甲乙丙在此", "丁戊己来了"]
    names = [[(0, 3)], [(1, 4)], *([] for _ in filler), [(0, 3)], [(0, 3)]]
    gazetteers = Gazetteers(texts, names)

    def known(text: str) -> list[tuple[int, int, str]]:
        return [(m.begin, m.end, m.detail) for m in gazetteers.matches(text) if m.kind == "known"]

    assert known("甲乙丙来了") == [(0, 3, "always, once")]  # its neighbour does not count
    assert known("甲乙丙在此") == [(0, 3, "always")]
    assert known("丁戊己来了") == []
    assert known("说丁戊己") == [(1, 4, "always, once")]
    assert known("说甲乙丙") == [(1, 4, "always")]


@needs_gazetteers
def test_patterns_fire_where_labels_agree() -> None:
    gazetteers = Gazetteers(["北京甲公司", "甲公司"], [[(0, 5)], []])
    text = "（北京乙公司）、北京甲公司、北京甲公司"
    rows = [(character,) for character in text]
    runs = runs_of(NamePatterns(gazetteers)(rows))
    name = ["B", "I", "I", "I", "E"]
    labels = ["O", *name, "O", "O", *name, "O", *name]
    right = ScoredLabels(labels, runs).active
    assert "place … 公司" in right
    assert "whole known always, once" in right
    assert "（ before … 公司" in right
    assert "from 北京 to 公司" in right
    assert right.count("twice") == right.count("members") == 1
    assert "marks disagree" not in right
    wrong = ScoredLabels(["B", "I", "I", "I", "I", "E", *labels[6:]], runs).active
    assert wrong.count("marks disagree") == 1
    assert ScoredLabels(["O"] * len(text), runs).active == []


@needs_gazetteers
def test_rules_of_one_span_are_features_of_segments() -> None:
    gazetteers = Gazetteers(["北京甲公司", "甲公司"], [[(0, 5)], []])
    rows = [(character,) for character in "（北京乙公司）、北京甲公司、北京甲公司"]
    found = {(start, end): names for start, end, names in NameSegments(gazetteers)(rows)}
    assert {"place … 公司", "（ before … 公司", "from 北京 to 公司"} <= {*found[1, 6]}
    assert "whole known always, once" in found[8, 13]
    runs = runs_of(NamePatterns(gazetteers, NameSegments.FAMILIES)(rows))
    in_patterns = {(start, start + len(run), name) for (start, run), names in runs.items() for name in names}
    assert in_patterns == {(*span, name) for span, names in found.items() for name in names}


@needs_gazetteers
@needs_corpus
def test_quick_run_has_all_rows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    organisations.main(["--quick", "--out", str(tmp_path)])
    text = (tmp_path / "organisations.md").read_text(encoding="utf-8")
    assert text.strip() == capsys.readouterr().out.strip()
    rows = [line for line in text.splitlines() if line.startswith("| ")][2:]
    assert len(rows) == 5 + len(organisations.N_BEST)
    organisations.main(["--quick", "--part", "types", "--out", str(tmp_path)])
    rows += [line for line in capsys.readouterr().out.splitlines() if line.startswith("| ")][2:]
    assert [row.split("|")[1].strip() for row in rows[-2:]] == [
        "segments, three types, from 0.35 on",
        "mean of both, from 0.35 on",
    ]
    for row in rows:
        assert all(0 <= float(figure) <= 100 for figure in row.split("|")[2:5])
