"""Segments with labels of IOB1: the same model as of BIO, with other labels at its edges."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from crfkit import CRF, InputError, Segments, load
from crfkit.errors import ImpossibleLabelsError, LabelError, UnsupportedError
from crfkit.structures import bio_to_iob1, iob1_to_bio
from tests.cli.commands import run
from tests.oracles.segmentations import labels_of, segmentations

X = [["a", "b", "c", "c"], ["b", "a"], ["c", "b", "b", "a"], []]
SPANS: list[list[tuple[int, int, str]]] = [
    [(0, 2, "X"), (2, 3, "X")],
    [(1, 2, "Y")],
    [(0, 1, "Y"), (1, 2, "X")],
    [],
]
IOB1 = [["I-X", "I-X", "B-X", "O"], ["O", "I-Y"], ["I-Y", "I-X", "O", "O"], []]
BIO = [["B-X", "I-X", "B-X", "O"], ["O", "B-Y"], ["B-Y", "B-X", "O", "O"], []]


def _iob1(segments: Any) -> list[str]:
    """The labels of IOB1, from their definition."""
    found: list[str] = []
    for start, end, kind in segments:
        anew = start and found[-1] in (f"B-{kind}", f"I-{kind}")
        labels = ["B" if anew else "I", *"I" * (end - start - 1)]
        found += ["O"] if kind == "O" else [f"{letter}-{kind}" for letter in labels]
    return found


def test_conversion_of_all_segmentations() -> None:
    for segments in segmentations(5, ["O", "P", "Q"], "bio", {}):
        bio, iob1 = labels_of(segments, "bio"), _iob1(segments)
        assert iob1_to_bio(iob1) == bio
        assert bio_to_iob1(bio) == iob1
    assert iob1_to_bio(["I", "B", "O", "I"]) == ["B", "B", "O", "B"]


def test_the_model_is_that_of_bio(tmp_path: Path) -> None:
    bio: CRF[Any] = CRF(Segments(scheme="bio"), "pos", l2=0.1).fit(X, [[*BIO[0]], *BIO[1:3], []])
    fitted = [CRF(Segments(scheme="iob1"), "pos", l2=0.1).fit(X, y, dev=(X, y)) for y in (IOB1, SPANS)]
    crf = fitted[0]
    assert np.array_equal(crf.weights_, fitted[1].weights_)
    assert crf.classes_ == ["B-X", "B-Y", "I-X", "I-Y", "O"]
    assert crf.predict(X) == IOB1
    assert crf.score(X, IOB1) == crf.score(X, SPANS) == crf.score(X, IOB1, metric="accuracy") == 1.0
    assert bio.predict(X) == BIO
    crf.save(tmp_path / "m")
    for copy in (load(tmp_path / "m"), pickle.loads(pickle.dumps(crf))):
        assert copy.structure == crf.structure
        assert copy.predict(X) == IOB1
        best = copy.predict_nbest(X[:1], 1000)[0]
        types = ["O", "X", "Y"]
        assert sorted(y for _, y in best) == sorted(_iob1(s) for s in segmentations(4, types, "bio", {}))
        logs = copy.log_probability([X[0]] * len(best), [y for _, y in best])
        np.testing.assert_allclose(np.exp(logs), [p for p, _ in best], rtol=1e-9)
        assert {tuple(y) for y in copy.sample(X[:1], 20, 0)[0]} <= {tuple(y) for _, y in best}
        spans = copy.predict_spans(X[:1], decode="viterbi")[0]
        assert [(span.start, span.end, span.label) for span in spans] == SPANS[0]
    crf.partial_fit([["d"]], [["I-Z"]])
    assert crf.predict([["d"]]) == [["I-Z"]]


@pytest.mark.parametrize(
    ("y", "kind", "message"),
    [
        (
            ["I-X", "O", "B-X", "O"],
            ImpossibleLabelsError,
            "sequence 0, position 2: the label 'B-X' of the scheme iob1",
        ),
        (["I-X", "E-X", "O", "O"], LabelError, "sequence 0: The label 'E-X' is none of the scheme iob1"),
        (["I-X", None, "O", "O"], UnsupportedError, "sequence 0: None and sets of labels do not go"),
        (["I-X", {"O", "I-X"}, "O", "O"], UnsupportedError, "sequence 0: None and sets of labels do not go"),
    ],
)
def test_other_labels_are_refused(y: list[Any], kind: type[InputError], message: str) -> None:
    with pytest.raises(kind, match=message):
        CRF(Segments(scheme="iob1"), "pos").fit(X[:1], [y])


def test_what_depends_on_the_label_before_is_refused() -> None:
    allowed = [[None] * len(x) for x in X]
    with pytest.raises(UnsupportedError, match="allowed labels do not go with the scheme iob1"):
        CRF(Segments(scheme="iob1"), "pos").fit(X, IOB1, allowed=allowed)
    crf: CRF[Any] = CRF(Segments(scheme="iob1"), "pos").fit(X, IOB1)
    with pytest.raises(UnsupportedError, match="allowed labels do not go with the scheme iob1"):
        crf.predict(X, allowed=allowed)
    with pytest.raises(UnsupportedError, match="expected predict_spans, or a model of the scheme bio"):
        crf.predict_marginals(X)
    with pytest.raises(InputError, match=r"labels of IOB1 are read by Segments\(scheme='iob1'\)"):
        CRF(Segments(), "pos").fit(X, IOB1)


def test_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    lines = [
        "\n".join(f"{w} {b}" for w, b in zip(x, y, strict=True)) for x, y in zip(X[:3], IOB1[:3], strict=True)
    ]
    Path("train.txt").write_text("\n\n".join(lines) + "\n")
    given = "train", "train.txt", "--model", "m.crf", "--structure", "segments", "--l2", "0.1", "--quiet"
    run(*given, "--scheme", "iob1")
    tagged = run("tag", "m.crf", "train.txt").stdout
    assert [line.split()[1:] for line in tagged.splitlines() if line] == [[b, b] for y in IOB1 for b in y]
    assert "100" in run("eval", "m.crf", "train.txt").stdout
