"""`Parser(vectors=…)`: what vectors tell of words that the training set does not have."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from crfkit import LBFGS, Checkpoint, Clusters, Lexicon, Parser, Pipeline, WordVectors, load
from crfkit.data import Sentence, write_conllu
from crfkit.errors import ArgumentError, InputError, NotLoadedError
from crfkit.models import describe, read_model_file, write_model_file
from tests.cli.commands import run
from tests.oracles.treebanks import random_treebank
from tests.oracles.word_kinds import ANIMALS, NEW, SEEN, TIMES, trees

RANDOM = np.random.default_rng(0)
VECTORS = WordVectors.build(
    {word: RANDOM.normal([3, 0, 1], 0.1) for word in ANIMALS}
    | {word: RANDOM.normal([0, 3, 1], 0.1) for word in TIMES}
)


KINDS = [("spanning", 1), ("projective", 1), ("projective", 2), ("spanning", 2)]


def same_answers(one: Parser, other: Parser) -> None:
    for a, b in zip(one.arc_probabilities(NEW), other.arc_probabilities(NEW), strict=True):
        assert a.tobytes() == b.tobytes()


@pytest.fixture(scope="module")
def parser() -> Parser:
    return Parser(l2=0.1, vectors=VECTORS).fit(SEEN)


@pytest.mark.parametrize(("structure", "order"), KINDS)
def test_vectors_tell_of_new_words(structure: str, order: int) -> None:
    def parse(vectors: WordVectors | None) -> list[list[tuple[int | None, str]]]:
        parser = Parser(l2=0.1, structure=structure, order=order, vectors=vectors)
        return trees(parser.fit(SEEN).predict(NEW))

    assert parse(VECTORS) == trees(NEW)
    first, second = parse(None)
    assert first == second  # without vectors all new words look alike


@pytest.mark.parametrize(("structure", "order"), KINDS)
def test_values_of_zero_change_nothing(structure: str, order: int) -> None:
    """Words without a vector, and vectors of words that there are not."""
    sentences = random_treebank([3, 5, 8, 4] * 2, 2)
    other = WordVectors.build({"nowhere": [1.0, 2.0]})
    settings: dict[str, Any] = {"l2": 0.5, "structure": structure, "order": order}
    one, two = (Parser(vectors=given, **settings).fit(sentences) for given in (other, None))
    assert len(one.weights_) == len(two.weights_)
    for a, b in zip(one.arc_probabilities(sentences), two.arc_probabilities(sentences), strict=True):
        assert a.tobytes() == b.tobytes()


def test_turned_vectors_are_the_same_model() -> None:
    """The minimum of the objective does not change where all vectors are rotated."""
    turn, _ = np.linalg.qr(np.random.default_rng(1).normal(size=(3, 3)))
    turned = WordVectors.build({word: turn @ VECTORS[word] for word in ANIMALS + TIMES})
    settings: dict[str, Any] = {"optimizer": LBFGS(tolerance=1e-9), "structure": "spanning", "order": 1}
    one, two = (Parser(l2=0.5, vectors=given, **settings).fit(SEEN) for given in (VECTORS, turned))
    for a, b in zip(one.arc_probabilities(NEW), two.arc_probabilities(NEW), strict=True):
        assert a == pytest.approx(b, abs=1e-5)  # vectors are kept in single precision


def test_files_name_the_vectors(parser: Parser, tmp_path: Path) -> None:
    parser.save(tmp_path / "m")
    assert "resource.vectors" not in read_model_file(tmp_path / "m").arrays
    same_answers(load(tmp_path / "m", resources={"vectors": VECTORS}), parser)
    missing = load(tmp_path / "m")
    with pytest.raises(NotLoadedError, match="needs the word vectors 'vectors'"):
        missing.predict(NEW)
    with pytest.raises(NotLoadedError):
        missing.save(tmp_path / "again", bundle=True)
    with pytest.raises(NotLoadedError):
        missing.fit(SEEN)
    missing.save(tmp_path / "again")  # which still names them
    same_answers(load(tmp_path / "again", resources={"vectors": VECTORS}), parser)
    for wrong, message in (
        ({"vectors": WordVectors.build({"a": [1, 2, 3]})}, "not what the model was trained with"),
        ({"vectors": Lexicon.build(["Rome"])}, "given lexicon"),
        ({"other": VECTORS}, "the model needs 'vectors'"),
    ):
        with pytest.raises(ArgumentError, match=message):
            load(tmp_path / "m", resources=wrong)


def test_files_hold_the_vectors_where_asked(parser: Parser, tmp_path: Path) -> None:
    parser.save(tmp_path / "m", bundle=True)
    again = load(tmp_path / "m")
    assert again.vectors == VECTORS
    same_answers(again, parser)
    file = read_model_file(tmp_path / "m")
    bundled = file.arrays["resource.vectors"].copy()
    bundled[: len(bundled) // 2] = 7
    changes: list[dict[str, Any]] = [
        {"resource.vectors": bundled},
        {"vector_keys": file.arrays["vector_keys"][::-1].copy()},
        {"vector_counts": file.arrays["vector_counts"][1:]},
        {"vector_labels": np.full_like(file.arrays["vector_labels"], 4)},
        {"vector_keys": file.arrays["vector_keys"][1:], "vector_counts": file.arrays["vector_counts"][1:]},
    ]
    for change in changes:
        write_model_file(file._replace(arrays=file.arrays | change), tmp_path / "bad")
        with pytest.raises(InputError):
            load(tmp_path / "bad")
    resources = file.settings["resources"]["vectors"]
    for settings in ({"vector_size": 4}, {"vector_size": 2**40}, {"resources": {"cities": resources}}):
        write_model_file(file._replace(settings=file.settings | settings), tmp_path / "bad")
        with pytest.raises(InputError):
            load(tmp_path / "bad")


def test_copies(parser: Parser) -> None:
    same_answers(pickle.loads(pickle.dumps(parser)), parser)


def test_clusters_beside_vectors(tmp_path: Path) -> None:
    clusters = Clusters.build(dict.fromkeys(ANIMALS, "0010110") | dict.fromkeys(TIMES, "0011010"))
    both = Parser(l2=0.1, clusters=clusters, vectors=VECTORS).fit(SEEN)
    both.save(tmp_path / "m")
    same_answers(load(tmp_path / "m", resources={"vectors": VECTORS}), both)
    same_answers(load(tmp_path / "m", resources={"vectors": VECTORS, "clusters": clusters}), both)


def test_weights_to_begin_with(parser: Parser) -> None:
    """The weights of vectors are taken over, those of labels by their names; not those of vectors of another size."""

    def renamed(label: str) -> str:
        return {"obl": "a", "nsubj": "z"}.get(label, label)

    others = [Sentence([word._replace(deprel=renamed(word.deprel)) for word in one.words]) for one in SEEN]
    settings: dict[str, Any] = {"optimizer": LBFGS(max_iterations=1), "l2": 0.1}
    fitted = Parser(optimizer=LBFGS(max_iterations=60), l2=0.1, vectors=VECTORS).fit(SEEN)
    same = Parser(vectors=VECTORS, **settings).fit(SEEN, start=fitted)
    assert same.history_[0].objective <= fitted.history_[-1].objective + 1e-9
    other = Parser(vectors=VECTORS, **settings).fit(others, start=fitted)
    n_rows = other._model.arc_map.layout.vectors.n_weights
    assert n_rows == fitted._model.arc_map.layout.vectors.n_weights
    wider = WordVectors.build({word: np.ones(5) for word in ANIMALS})
    Parser(vectors=wider, **settings).fit(SEEN, start=fitted)


def test_going_on_from_a_checkpoint(tmp_path: Path) -> None:
    whole = Parser(l2=0.1, vectors=VECTORS, optimizer="adagrad").fit(SEEN)
    path = tmp_path / "checkpoint"
    Parser(l2=0.1, vectors=VECTORS, optimizer="adagrad").fit(
        SEEN, checkpoint=Checkpoint(path), callback=lambda progress: progress.iteration == 3
    )
    again = Parser(l2=0.1, vectors=VECTORS, optimizer="adagrad").fit(
        SEEN, checkpoint=Checkpoint(path, resume=True)
    )
    assert again.weights_.tobytes() == whole.weights_.tobytes()
    other = Parser(l2=0.1, vectors=WordVectors.build({"a": [1, 2, 3]}), optimizer="adagrad")
    with pytest.raises(InputError):
        other.fit(SEEN, checkpoint=Checkpoint(path, resume=True))


@pytest.mark.parametrize(("structure", "order"), [("spanning", 1), ("projective", 2)])
def test_explanations_add_up(structure: str, order: int) -> None:
    parser = Parser(l2=0.1, vectors=VECTORS, structure=structure, order=order).fit(SEEN)
    found = parser.explain_arc(NEW[0], 1)
    assert "head.vector" in str(found)
    assert sum(part.value for part in found.parts) == pytest.approx(found.log_odds, abs=1e-9)


def test_errors(parser: Parser) -> None:
    with pytest.raises(ArgumentError, match=r"vectors is 'glove\.txt', expected crfkit.WordVectors or None"):
        Parser(vectors="glove.txt").fit(SEEN)  # type: ignore[arg-type]
    other = pickle.loads(pickle.dumps(parser)).set_params(vectors=None)
    with pytest.raises(
        ArgumentError, match="vectors is None, but the parser was trained with vectors of 3 numbers"
    ):
        other.predict(NEW)


@pytest.mark.parametrize("order", [1, 2])
def test_training_goes_on_where_no_word_had_a_vector(order: int) -> None:
    """Then there are no weights of vectors, before or after."""
    settings: dict[str, Any] = {"structure": "spanning", "order": order, "l2": 0.1}
    sentences = random_treebank([3, 5, 4], 2)
    some = WordVectors.build({sentences[0].words[0].form: [1.0, 2.0, 3.0, 4.0, 5.0]})
    none = WordVectors.build({"nowhere": [1.0, 2.0, 3.0, 4.0, 5.0]})
    without = Parser(**settings).fit(sentences)
    for before, after in ((none, none), (none, some), (some, none)):
        first = Parser(vectors=before, **settings).fit(sentences)
        Parser(vectors=after, **settings).fit(sentences, start=first)
    same = Parser(vectors=none, **settings).fit(sentences, start=without)
    again = Parser(**settings).fit(sentences, start=without)
    assert same.weights_.tobytes() == again.weights_.tobytes()


def test_what_is_learnt(parser: Parser) -> None:
    sizes = describe(parser)["sizes"]
    assert sizes["arc weights"] + sizes["label weights"] + sizes["vector weights"] == sizes["weights"]


def test_in_a_pipeline(parser: Parser, tmp_path: Path) -> None:
    """Its file holds the vectors."""
    pipeline = Pipeline([Parser(l2=0.1, vectors=VECTORS)]).fit(SEEN)
    pipeline.save(tmp_path / "p")
    assert trees(load(tmp_path / "p").predict(NEW)) == trees(NEW)


def test_the_command_line(tmp_path: Path) -> None:
    files = {
        name: str(tmp_path / name) for name in ("train.conllu", "new.conllu", "m", "b", "v", "v.vec", "out")
    }
    for name, sentences in (("train.conllu", SEEN), ("new.conllu", NEW)):
        with Path(files[name]).open("w", encoding="utf-8") as stream:
            write_conllu(sentences, stream)
    VECTORS.save(files["v"])
    given = ["train-parser", files["train.conllu"], "--l2", "0.1", "--quiet", "--vectors", files["v"]]
    run(*given, "--model", files["m"])
    run(*given, "--model", files["b"], "--bundle")
    assert trees(load(files["b"]).predict(NEW)) == trees(NEW)
    named = ["--resource", f"vectors={files['v']}"]
    assert "100.00" in run("eval", files["m"], files["new.conllu"], *named).output
    run("parse", files["m"], files["new.conllu"], "--output", files["out"], *named)
    assert "nsubj" in Path(files["out"]).read_text()
    assert "vector" in run("explain", files["m"], files["new.conllu"], "--position", "1", *named).output
    lines = [f"{word} " + " ".join(map(str, VECTORS[word].tolist())) for word in ANIMALS + TIMES]
    Path(files["v.vec"]).write_text("\n".join(lines))
    run(*given[:-1], files["v.vec"], "--model", files["b"], "--bundle")
    assert trees(load(files["b"]).predict(NEW)) == trees(NEW)
