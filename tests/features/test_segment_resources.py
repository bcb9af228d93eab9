"""Lexicons, clusters and vectors in templates of segments, against functions that look words up in dicts and lists."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from crfkit import CRF, Clusters, Lexicon, Segments, SegmentTemplate, WordVectors, load
from crfkit.errors import ArgumentError, FeatureError, InputError, NotLoadedError, TemplateError
from tests.cli.commands import complaint, run

LISTS = {"city": ["york", "new york", "rio"], "person": ["york", "ann lee york"]}
PATHS = {"new": "0010", "york": "0011", "rio": "01", "in": "110", "is": "1110"}
ROWS = {"new": [1.0, 0.5], "york": [-2.0, 0.25], "ann": [0.0, 3.0], "in": [0.0, 0.0]}
TEXT = """
any=%in[segment,0,places]
city=%in[segment,0,places,city]/%positions[segment]
state=%in[first,0,places,city]|%in[last+1,0,places]
paths=%cluster[segment,0,2]
ends=%cluster[first,0,brown]|%cluster[last-1,0,brown,3]
text=%x[segment,0]
mean=%vector[segment,0,glove]
U1:%vector[first-1,0,glove]
"""
X = [
    ["Ann", "Lee", "York", "is", "in", "New", "York"],
    ["in", "Rio", "is", "York"],
    ["York"],
    ["new", "York", "york", "Rio", "Ann"],
]
SPANS: Any = [
    [(0, 3, "PER"), (5, 7, "LOC")],
    [(1, 2, "LOC"), (3, 4, "PER")],
    [(0, 1, "LOC")],
    [(0, 2, "LOC"), (4, 5, "PER")],
]


def resources() -> dict[str, Any]:
    return {
        "places": Lexicon.build(LISTS, fold_case=True),
        "brown": Clusters.build(PATHS, fold_case=True),
        "glove": WordVectors.build(ROWS, fold_case=True),
    }


def _states(words: list[str], entries: list[str]) -> list[str]:
    """B I E S of the longest entries from left to right; "" outside."""
    found = [""] * len(words)
    start = 0
    while start < len(words):
        ends = [end for end in range(start + 1, len(words) + 1) if " ".join(words[start:end]) in entries]
        if ends:
            n = max(ends) - start
            found[start : start + n] = ["S"] if n == 1 else ["B", *"I" * (n - 2), "E"]
        start = max(ends, default=start + 1)
    return found


def by_hand(x: list[str], start: int, end: int) -> dict[str, float]:
    """What the template gives, by dicts."""
    words = [word.lower() for word in x]
    text = " ".join(words[start:end])
    names: dict[str, float] = {}
    if lists := [name for name, entries in LISTS.items() if text in entries]:
        names["any=" + "+".join(lists)] = 1.0
    if text in LISTS["city"]:
        names[f"city=1/{end - start}"] = 1.0
    states = {name: _states(words, entries) for name, entries in LISTS.items()}
    here = states["city"][start]
    behind = f"_B+{end - len(x) + 1}"
    if end < len(x):
        behind = "+".join(f"{states[name][end]}-{name}" for name in LISTS if states[name][end])
    if here and behind:
        names[f"state={here}|{behind}"] = 1.0
    if all(word in PATHS for word in words[start:end]):
        names["paths=" + " ".join(PATHS[word][:2] for word in words[start:end])] = 1.0
    before = "_B-1" if end < 2 else PATHS.get(words[end - 2], "")[:3]
    if words[start] in PATHS and before:
        names[f"ends={PATHS[words[start]]}|{before}"] = 1.0
    names["text=" + " ".join(x[start:end])] = 1.0
    for k in range(2):
        column = [ROWS.get(word, [0.0, 0.0])[k] for word in words]
        names[f"mean[{k}]"] = sum(column[start:end]) / (end - start)
        names[f"U1[{k}]"] = column[start - 1] if start else 0.0
    return {name: value for name, value in names.items() if value}


def _segments(x: list[str]) -> list[tuple[int, int]]:
    return [(start, end) for end in range(1, len(x) + 1) for start in range(end)]


def test_features_of_every_segment() -> None:
    template = SegmentTemplate(TEXT).bind(resources())
    for x in X:
        read = template.open(0, x)
        for start, end in _segments(x):
            found = {name: value for name, value in read(start, end) if value}
            assert found == pytest.approx(by_hand(x, start, end)), (x, start, end)
            plain = [name for name in by_hand(x, start, end) if "[" not in name]
            assert sorted(template.expand(x, start, end)) == sorted(plain)
    assert template.columns == {0}
    assert template == SegmentTemplate(TEXT)


def test_models_are_those_of_functions(tmp_path: Path) -> None:
    given = resources()
    first = CRF(Segments(segment_features=SegmentTemplate(TEXT)), "U0:%x[0,0]", l2=0.1, resources=given)
    second = CRF(Segments(segment_features=by_hand), "U0:%x[0,0]", l2=0.1)
    first.fit(X, SPANS)
    second.fit(X, SPANS)
    assert {*first.structure_names_} == {*second.structure_names_}
    where = [second.structure_names_.index(name) for name in first.structure_names_]
    n = len(where)
    np.testing.assert_allclose(first.weights_[-n:], second.weights_[-n:][where], atol=1e-4)
    for a, b in zip(first.predict_marginals(X), second.predict_marginals(X), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-4)
    expected = first.predict_nbest(X, 3)
    first.save(tmp_path / "m")
    first.save(tmp_path / "bundled", bundle=True)
    for again in (
        load(tmp_path / "m", resources=given),
        load(tmp_path / "bundled"),
        pickle.loads(pickle.dumps(first)),
    ):
        assert again.predict_nbest(X, 3) == expected
        assert again.get_params()["resources"] == given
        again.save(tmp_path / "again", bundle=True)
        assert load(tmp_path / "again").predict_nbest(X, 3) == expected
        assert again.fit(X, SPANS).predict_nbest(X, 3) == expected


def test_explanations_add_up() -> None:
    crf = CRF(Segments(segment_features=SegmentTemplate(TEXT)), "pos", l2=0.1, resources=resources()).fit(
        X, SPANS
    )
    found = crf.explain_span(X[0], 5, 7, "LOC")
    assert sum(part.value for part in found.parts) == pytest.approx(found.log_odds)
    marginal = next(
        s for s in crf.predict_spans(X[:1], threshold=0.01)[0] if (s.start, s.end, s.label) == (5, 7, "LOC")
    )
    assert found.probability == pytest.approx(marginal.probability)


def test_threads_and_training_further() -> None:
    structure = Segments(segment_features=SegmentTemplate(TEXT))
    one, two = (CRF(structure, "pos", resources=resources(), n_threads=n).fit(X, SPANS) for n in (1, 2))
    assert np.array_equal(one.weights_, two.weights_)
    one.partial_fit([["in", "Ann"]], [["O", "B-PER"]])
    assert "PER mean[1]" in one.structure_names_


def test_resources_that_are_missing(tmp_path: Path) -> None:
    given = resources()
    template = SegmentTemplate("c=%in[segment,0,places]", source="seg.txt")
    with pytest.raises(
        FeatureError, match=r"seg.txt:1: %in reads the lexicon 'places', but it was not given"
    ):
        CRF(Segments(segment_features=template), "pos").fit(X, SPANS)
    with pytest.raises(
        FeatureError, match=r"seg.txt:1: %in reads lexicon, but 'places' is of the kind clusters"
    ):
        CRF(Segments(segment_features=template), "U:%x[0,0]", resources={"places": given["brown"]}).fit(
            X, SPANS
        )
    with pytest.raises(
        ArgumentError, match=r"resources has 'brown', but the macros of the template read 'places'"
    ):
        CRF(Segments(segment_features=template), "U:%x[0,0]", resources=given).fit(X, SPANS)
    with pytest.raises(FeatureError, match=r"it was not given"):
        template.expand(X[0], 0, 1)
    with pytest.raises(
        FeatureError, match=r":1: the lexicon 'places' has no list 'river', expected one of 'city'"
    ):
        SegmentTemplate("c=%in[segment,0,places,river]").bind(given).expand(X[0], 0, 1)
    crf = CRF(Segments(segment_features=template), resources={"places": given["places"]})
    crf.fit([[[word] for word in x] for x in X], SPANS).save(tmp_path / "m")  # features are not a template
    alone = load(tmp_path / "m")
    with pytest.raises(NotLoadedError, match="the model needs the lexicon 'places'"):
        alone.predict([[["York"]]])
    with pytest.raises(NotLoadedError):
        alone.save(tmp_path / "n", bundle=True)
    with pytest.raises(ArgumentError, match="not what the model was trained with"):
        load(tmp_path / "m", resources={"places": Lexicon.build(["Rome"])})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("c=%in[segment,0]", r"expected %in\[place,column,lexicon\] or .*, place being segment"),
        ("c=%in[0,0,cities]", r"expected %in\[place,column,lexicon\]"),
        ("c=%in[first,x,cities]", r"expected %in\[place,column,lexicon\]"),
        ("c=%in[first,0,cities,city,more]", r"expected %in\[place,column,lexicon\]"),
        ("c=%in[first,0,cities", r"expected %in\[place,column,lexicon\]"),
        ("c=%cluster[last,0,0]", r"expected %cluster\[place,column\], with the name"),
        ("c=%cluster[segment]", r"expected %cluster\[place,column\]"),
        ("v=%vector[segment,0]", r"expected %vector\[place,column,vectors\]"),
        ("v=%vector[segment,0,glove]|%x[first,0]", "expected %vector alone on a line"),
        ("v=%x[first,0]%vector[segment,0,glove]", "expected %vector alone on a line"),
        ("v=%vector[segment,0,glove] x", "expected %vector alone on a line"),
        ("v=%vector[first,0,a]\nv=%vector[last,0,a]", "template:2: there are two blocks named 'v'"),
        ("w=%word[first,0]", "unknown function %word: expected one of x, .*, in, cluster, vector, positions"),
    ],
)
def test_errors_name_their_place(text: str, message: str) -> None:
    with pytest.raises(TemplateError, match=message):
        SegmentTemplate(text)


def test_several_clusters_need_a_name() -> None:
    two = {"a": Clusters.build(PATHS), "b": Clusters.build(PATHS)}
    template = SegmentTemplate("c=%cluster[first,0]")
    with pytest.raises(InputError, match="names no clusters, and there are several: a, b"):
        template.bind(two).expand(["new"], 0, 1)
    assert template.bind({"a": two["a"]}).expand(["new"], 0, 1) == ["c=0010"]
    assert template.bind({"a": two["a"]}).expand(["old"], 0, 1) == []


def test_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("train.txt").write_text("in O\nNew B-LOC\nYork I-LOC\n\nYork B-LOC\nis O\n\nNew B-LOC\nYork I-LOC\n")
    Path("cities.txt").write_text("New York\nYork\nRio Branco\n")
    Path("glove.txt").write_text("New 0.5 1 2\nYork 1 2 0.5\nRio 1 2 0.5\n")
    Path("segments.txt").write_text("city=%in[segment,0,cities]\nmean=%vector[segment,0,glove]\n")
    Path("template.txt").write_text("U0:%x[0,0]\n")
    given = ["train", "train.txt", "--model", "m.crf", "--structure", "segments", "--quiet"]
    given += ["--segment-template", "segments.txt", "--template", "template.txt"]
    named = ["--resource", "cities=cities.txt", "--resource", "glove=glove.txt"]
    assert "segments.txt:1: %in reads the lexicon 'cities', but it was not given" in complaint(*given)
    run(*given, *named)
    assert "LOC city=1" in run("inspect", "m.crf").stdout
    assert "the model needs the" in complaint("tag", "m.crf", "train.txt")
    tagged = run("tag", "m.crf", "train.txt", *named).stdout
    assert "York I-LOC I-LOC" in tagged
    run(*given, *named, "--bundle")
    assert run("tag", "m.crf", "train.txt").stdout == tagged
