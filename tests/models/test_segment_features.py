"""Features of whole segments: functions, matches of rules, columns and dictionaries."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from crfkit import CRF, InputError, SegmentMatches, Segments, load

WORDS = [["we", "flew", "to", "New", "York"], ["York", "is", "old"], ["Paris", "and", "New", "York"]]
SPANS: list[list[tuple[int, int, str]]] = [[(3, 5, "LOC")], [(0, 1, "LOC")], [(2, 4, "LOC"), (0, 1, "LOC")]]
CITIES = {"cities": ["New York", ("Rio", "Branco"), "Paris"]}


def capitals(x: Any, start: int, end: int) -> Any:
    return {"capitals": sum(word.istitle() for word in x[start:end]), "whole": 1.0}


def last_word(x: Any, start: int, end: int) -> Any:
    return [f"last={x[end - 1].lower()}"] if end - start > 1 else None


def test_features_of_segments(tmp_path: Path) -> None:
    structure = Segments(4, segment_features=[capitals, 0, last_word], dictionaries=CITIES)
    crf = CRF(structure, features="U:%x[0,0]\nB", l2=0.1).fit(WORDS, SPANS)
    assert {"LOC in cities", "LOC 0=New York", "LOC capitals", "LOC last=york", "O whole"} <= {
        *crf.structure_names_
    }
    assert "O in cities" not in crf.structure_names_
    crf.save(tmp_path / "m")
    with pytest.raises(InputError, match="not loaded"):
        load(tmp_path / "m").predict(WORDS)
    given = load(tmp_path / "m", [capitals, last_word])
    trusted = load(tmp_path / "m", trust_functions=True)
    for copy in (given, trusted, pickle.loads(pickle.dumps(crf))):
        assert copy.structure == structure
        assert copy.predict_nbest(WORDS, 3) == crf.predict_nbest(WORDS, 3)
    sparse = CRF(structure, features="U:%x[0,0]\nB", l1=0.3, l2=0.1).fit(WORDS, SPANS)
    assert 0 < len(sparse.structure_names_) < len(crf.structure_names_)
    assert crf.predict([["in", "Rio", "Branco"]]) == [["O", "B-LOC", "I-LOC"]]


def test_features_that_do_not_occur_keep_their_weights() -> None:
    structure = Segments(4, segment_features=[capitals], dictionaries=CITIES)
    crf = CRF(structure, features="U:%x[0,0]\nB").fit(WORDS, SPANS)

    def weights() -> dict[str, float]:
        own = crf.weights_[-len(crf.structure_names_) :]
        return dict(zip(crf.structure_names_, own.tolist(), strict=True))

    before = weights()
    after = (crf.partial_fit([["they", "ran"]] * 5, [["O", "O"]] * 5), weights())[1]
    assert before["LOC in cities"] == after["LOC in cities"] != 0
    assert before["O whole"] != after["O whole"]


def all_matches(x: Any) -> Any:
    """What `capitals` and `last_word` say of each segment, those of more than 4 words too."""
    for end in range(len(x), 0, -1):
        for start in range(end):
            yield start, end, last_word(x, start, end)
            yield start, end, capitals(x, start, end)


def title_matches(x: Any) -> Any:
    for start, word in enumerate(x):
        if word.istitle():
            yield start, start + 1, f"title {word}"
            yield start, start + 2 if start + 2 <= len(x) else start + 1, {"two": 2.0}


def title_of(x: Any, start: int, end: int) -> Any:
    found: dict[str, float] = {}
    for s, e, names in title_matches(x):
        if (s, e) == (start, end):
            found.update({names: 1.0} if isinstance(names, str) else names)
    return found


@pytest.mark.parametrize("dense", [[], [0]])
@pytest.mark.parametrize("dictionaries", [{}, CITIES])
def test_matches_of_segments_are_features_of_segments(
    dense: list[int], dictionaries: dict[str, Any], tmp_path: Path
) -> None:
    models = [
        CRF(
            Segments(4, "bio", segment_features=[*dense, *features], dictionaries=dictionaries), "pos", l2=0.1
        ).fit(WORDS, SPANS)
        for features in (
            [SegmentMatches(all_matches), SegmentMatches(title_matches)],
            [last_word, capitals, title_of],
        )
    ]
    sparse, called = models
    assert sparse.structure_names_ == called.structure_names_
    assert np.array_equal(sparse.weights_, called.weights_)
    assert sparse.predict_nbest(WORDS, 3) == called.predict_nbest(WORDS, 3)
    sparse.save(tmp_path / "m")
    with pytest.raises(InputError, match="not loaded"):
        load(tmp_path / "m").predict(WORDS)
    for copy in (
        load(tmp_path / "m", [all_matches, title_matches]),
        load(tmp_path / "m", trust_functions=True),
    ):
        assert copy.structure == sparse.structure
        assert copy.predict_nbest(WORDS, 3) == sparse.predict_nbest(WORDS, 3)


def test_matches_that_no_segment_of_the_training_data_has(tmp_path: Path) -> None:
    names = {}
    for unseen in (False, True):
        structure = Segments(segment_features=SegmentMatches(all_matches, unseen=unseen))
        crf = CRF(structure, "pos", l2=0.1).fit(WORDS, SPANS)
        names[unseen] = {*crf.structure_names_}
        crf.save(tmp_path / "m")
        assert load(tmp_path / "m").structure.segment_features[0].unseen == unseen
    assert names[True] - names[False] == {
        f"LOC last={word}" for word in ("flew", "to", "new", "is", "old", "and")
    }
    assert "O last=york" not in names[True]  # outside is one position each


@pytest.mark.filterwarnings("ignore::crfkit.models.UnsavableModel")
def test_matches_that_are_none_are_refused() -> None:
    for wrong, message in (
        ([(0, 9, "a")], r"sequence 0: the segment feature '<lambda>' gives the segment \(0, 9\)"),
        ([(1, 1, "a")], r"gives the segment \(1, 1\), expected a start and an end within its 5 positions"),
        ([(0.5, 1.5, "a")], r"gives the segment \(0\.5, 1\.5\), expected a start and an end within"),
        ([(0, 1, [3])], "expected names or {name: number}"),
        ([(0, 1)], r"the segment feature '<lambda>' failed \(ValueError"),
    ):
        listed: Any = wrong
        structure = Segments(3, segment_features=SegmentMatches(lambda x, listed=listed: listed))  # type: ignore[misc]
        with pytest.raises(InputError, match=message):
            CRF(structure, features="pos").fit(WORDS, SPANS)
    with pytest.raises(InputError, match="expected a function of x"):
        SegmentMatches("a")  # type: ignore[arg-type]


@pytest.mark.filterwarnings("ignore::crfkit.models.UnsavableModel")
def test_functions_that_give_nonsense_are_named() -> None:
    for wrong in (
        lambda x, s, e: [3],
        lambda x, s, e: True,
        lambda x, start, end: {"a": "b"},
        lambda x, start, end: x[99],
    ):
        with pytest.raises(InputError, match=r"sequence 0, positions 0 to 0: the segment feature '<lambda>'"):
            CRF(Segments(3, segment_features=wrong), features="pos").fit(WORDS, SPANS)
    with pytest.raises(InputError, match="a dictionary needs a word"):
        CRF(Segments(3, dictionaries=CITIES)).fit([[{"w": 1}]], [["B-X"]])
    with pytest.raises(InputError, match="has no import path"):
        CRF(Segments(2, segment_features=lambda x, s, e: "a"), features="pos").fit(WORDS, SPANS).save("m")
