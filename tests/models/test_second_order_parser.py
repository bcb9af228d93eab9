"""`Parser(structure=…, order=2)`: which trees it gives, its answers, files and errors."""

from __future__ import annotations

import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from crfkit import AdaGrad, Parser, load
from crfkit.data import Sentence
from crfkit.errors import ArgumentError, InputError, UnsupportedError
from crfkit.features import ArcMap, ArcPruner, encode_sentences, known_trees, labels_of, lift_crossing_arcs
from crfkit.models import MissingColumns, read_model_file, write_model_file
from tests.oracles.treebanks import random_treebank

TREES = random_treebank([1, 3, 5, 8, 13, 4, 6] * 3, 0)
NEW = random_treebank([2, 7, 9], 1)


def crosses(sentence: Sentence) -> bool:
    spans = [sorted((word.head or 0, m)) for m, word in enumerate(sentence.words, start=1)]
    return any(a < c < b < d for a, b in spans for c, d in spans)


def projective(sentences: list[Sentence]) -> list[Sentence]:
    return [sentence for sentence in sentences if not crosses(sentence)]


@pytest.fixture(scope="module", params=["projective", "spanning"])
def parser(request: pytest.FixtureRequest) -> Parser:
    return Parser(l2=0.1, structure=request.param, order=2, n_threads=1).fit(TREES)


def test_which_trees(parser: Parser) -> None:
    assert parser.structure_ == parser.structure
    assert parser.structure_reason_ == f"{parser.structure} trees were asked for"
    parsed = parser.predict(TREES + NEW)
    if parser.structure == "projective":
        assert not any(map(crosses, parsed))
    else:
        assert any(map(crosses, parsed))
    assert all(sum(word.head == 0 for word in sentence.words) == 1 for sentence in parsed)
    assert parser.score(projective(TREES)) > 0.9


def test_auto_chooses_by_the_training_set() -> None:
    flat = Parser(optimizer=AdaGrad(max_iterations=1, rate=0.1)).fit(projective(TREES))
    assert flat.structure_ == "projective"
    assert (
        flat.structure_reason_
        == "projective trees: 0.00% of the words of the training set have crossing arcs"
    )
    assert Parser(optimizer=AdaGrad(max_iterations=1, rate=0.1)).fit(TREES).structure_ == "spanning"


def test_probabilities(parser: Parser) -> None:
    for p, labelled in zip(
        parser.arc_probabilities(NEW), parser.arc_probabilities(NEW, labelled=True), strict=True
    ):
        np.testing.assert_allclose(p[:, 1:].sum(axis=0), 1.0, atol=1e-9)
        np.testing.assert_allclose(labelled.sum(axis=2), p, atol=1e-12)
    found = parser.predict_nbest(NEW, 4)
    for trees in found:
        probabilities = [tree.probability for tree in trees]
        assert probabilities == sorted(probabilities, reverse=True)
        assert np.exp(parser.log_likelihood([tree.sentence for tree in trees])) == pytest.approx(
            probabilities, rel=1e-6
        )
    assert [trees[0].sentence for trees in found] == parser.predict(NEW, decode="best")


def test_the_best_tree_with_its_bound(parser: Parser) -> None:
    found = parser.predict_best(NEW)
    assert [one.sentence for one in found] == parser.predict(NEW, decode="best")
    assert all(one.optimal and one.gap < 1e-6 and one.bound >= one.score for one in found)
    first = Parser(l2=0.1, structure="spanning", order=1).fit(TREES)
    for one, scores in zip(first.predict_best(NEW), first.arc_scores(NEW), strict=True):
        assert one.optimal
        score = sum(
            scores[word.head, m, first.classes_.index(word.deprel)]
            for m, word in enumerate(one.sentence.words, start=1)
            if word.head is not None
        )
        assert one.score == pytest.approx(score, rel=1e-12)
    with pytest.raises(InputError, match="max_iterations"):
        parser.predict_best(NEW, max_iterations=0)


def test_trees_with_arcs_that_were_left_out(parser: Parser) -> None:
    """They have no probability, but one as in training."""
    turned = [
        replace(
            one,
            words=[
                word._replace(head=m - 1 if m > 1 else 0, deprel=word.deprel)
                for m, word in enumerate(one.words, start=1)
            ],
        )
        for one in TREES
    ]
    found, added = parser.log_likelihood(turned), parser.log_likelihood(turned, add_arcs=True)
    assert np.isinf(found).any()
    assert np.isfinite(added).all()


def test_a_file_gives_the_same_parser(parser: Parser, tmp_path: Path) -> None:
    parser.save(tmp_path / "m")
    again = load(tmp_path / "m")
    assert again.get_params(deep=False) == parser.get_params(deep=False) | {"n_threads": None}
    assert (again.structure_, again.structure_reason_) == (parser.structure_, parser.structure_reason_)
    for a, b in zip(again.arc_probabilities(NEW), parser.arc_probabilities(NEW), strict=True):
        assert a.tobytes() == b.tobytes()
    parser.save(tmp_path / "small", single_precision=True)
    assert load(tmp_path / "small").predict(NEW) == parser.predict(NEW)


def test_a_file_holds_features_of_both_models_once(parser: Parser, tmp_path: Path) -> None:
    """A file with all features of the first-order model gives the same parser."""
    parser.save(tmp_path / "m")
    file = read_model_file(tmp_path / "m")
    own = {name for name in file.arrays if name.startswith("pruner_")}
    assert own == {"pruner_arc_keys", "pruner_shared_arc_keys", "pruner_weights"}
    pruner = parser._get_model().pruner
    assert pruner is not None
    layout = pruner.arc_map.layout
    assert len(file.arrays["pruner_arc_keys"]) < len(layout.arc_keys)
    arrays: dict[str, npt.NDArray[Any]] = {**file.arrays, "pruner_arc_keys": layout.arc_keys}
    shared = arrays.pop("pruner_shared_arc_keys")
    write_model_file(file._replace(arrays=arrays), tmp_path / "all")
    for a, b in zip(
        load(tmp_path / "all").arc_probabilities(NEW), parser.arc_probabilities(NEW), strict=True
    ):
        assert a.tobytes() == b.tobytes()
    for bits in (shared[:-1], ~shared, shared.astype(np.int64)):
        write_model_file(
            file._replace(arrays=file.arrays | {"pruner_shared_arc_keys": bits}), tmp_path / "bad"
        )
        with pytest.raises(InputError):
            load(tmp_path / "bad")


def test_first_order_models_with_labels(parser: Parser, tmp_path: Path) -> None:
    """Parsers of before have one: their files give the same answers, with arrays of labels or those of the parser."""
    labels = labels_of(TREES)
    treebank = encode_sentences(TREES)
    trees = known_trees(TREES, labels)
    if parser.structure == "projective":
        lifted = lift_crossing_arcs(treebank, trees)
        assert (lifted.heads != trees.heads).any()  # some labels are at other arcs: the arrays differ
    arc_map = ArcMap.learn(treebank, trees, labels, 1)
    weights = np.random.default_rng(6).normal(0, 0.3, arc_map.n_weights).astype(np.float32)
    old = copy.copy(parser)
    model = parser._get_model()._replace(pruner=ArcPruner(arc_map, weights.astype(np.float64)))
    old._set_model(model, parser.weights_)
    old.save(tmp_path / "m")
    file = read_model_file(tmp_path / "m")
    assert ("pruner_labels" in file.arrays) == (parser.structure == "projective")
    del file.settings["pruning"]["coarse"]  # as before
    write_model_file(file, tmp_path / "m")
    changed = False
    for a, b, c in zip(
        load(tmp_path / "m").arc_probabilities(NEW),
        old.arc_probabilities(NEW),
        parser.arc_probabilities(NEW),
        strict=True,
    ):
        assert a.tobytes() == b.tobytes()
        changed |= a.tobytes() != c.tobytes()
    assert changed


def test_the_same_bits_for_any_number_of_threads(parser: Parser) -> None:
    other = Parser(l2=0.1, structure=parser.structure, order=2, n_threads=3).fit(TREES)
    assert other.weights_.tobytes() == parser.weights_.tobytes()


def test_partly_annotated_trees(parser: Parser) -> None:
    some = [
        replace(
            one,
            words=[
                word._replace(head=None, deprel="_") if m % 3 == 0 else word
                for m, word in enumerate(one.words)
            ],
        )
        for one in projective(TREES)
    ]
    taught = Parser(l2=0.1, structure=parser.structure, order=2).fit(some)
    assert taught.score(projective(TREES)) > 0.5
    assert (taught.log_likelihood(some) >= taught.log_likelihood(projective(TREES)) - 1e-6).all() or (
        parser.structure == "spanning"
    )


def test_no_projective_tree_agrees() -> None:
    """Two arcs that are known cross, and a third head is unknown: no lifting says what is right."""
    crossing = next(one for one in TREES if crosses(one) and len(one.words) > 4)
    spans = {m: sorted((word.head or 0, m)) for m, word in enumerate(crossing.words, start=1)}
    keep = next((m, k) for m, (a, b) in spans.items() for k, (c, d) in spans.items() if a < c < b < d)
    words = [
        word if m in keep else word._replace(head=None) for m, word in enumerate(crossing.words, start=1)
    ]
    with pytest.raises(InputError, match="no projective tree agrees"):
        Parser(structure="projective").fit([TREES[0], replace(crossing, words=words)])


def test_scores_of_arcs_are_not_all_there_is(parser: Parser) -> None:
    with pytest.raises(UnsupportedError, match="siblings and grandparents"):
        parser.arc_scores(NEW)


def test_first_order_projective_parsers() -> None:
    parser = Parser(l2=0.1, structure="projective", order=1).fit(TREES)
    assert not any(map(crosses, parser.predict(NEW)))
    assert parser.weights_.size < Parser(l2=0.1, structure="projective").fit(TREES).weights_.size


def test_columns_that_may_be_read(tmp_path: Path) -> None:
    parser = Parser(columns=["form", "upos"], optimizer=AdaGrad(max_iterations=2, rate=0.1)).fit(TREES)
    other = [
        replace(one, words=[word._replace(lemma="?", xpos="?", feats="Case=Voc") for word in one.words])
        for one in NEW
    ]
    expected = parser.arc_probabilities(NEW)
    parser.save(tmp_path / "m")
    for one in (parser, load(tmp_path / "m")):
        for a, b in zip(one.arc_probabilities(other), expected, strict=True):
            assert a.tobytes() == b.tobytes()
    blind = [replace(one, words=[word._replace(upos="_") for word in one.words]) for one in NEW]
    with pytest.warns(MissingColumns, match="UPOS tags"):
        parser.predict(blind)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"structure": "chain"}, "structure is 'chain', expected 'auto' or 'spanning' or 'projective'"),
        ({"order": 3}, "order is 3, expected 1 or 2"),
        ({"columns": "upos"}, "columns is 'upos', expected None or a list of some of form, lemma"),
        ({"columns": ["deprel"]}, "columns has 'deprel', expected some of form, lemma, upos, xpos, feats"),
        ({"order": True}, "order is True, expected 1 or 2"),
    ],
)
def test_bad_settings(settings: dict[str, object], words: str) -> None:
    with pytest.raises(ArgumentError, match=words):
        Parser(**settings).fit(TREES)  # type: ignore[arg-type]
