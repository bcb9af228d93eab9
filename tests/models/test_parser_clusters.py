"""`Parser(clusters=…)`: what classes of words tell of words that the training set does not have."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from crfkit import Clusters, Parser, load
from crfkit.data import write_conllu
from crfkit.errors import ArgumentError, InputError
from crfkit.features import encode_sentences
from crfkit.models import read_model_file, write_model_file
from tests.cli.commands import run
from tests.oracles.treebanks import random_treebank
from tests.oracles.word_kinds import ANIMALS, NEW, SEEN, TIMES, trees

CLUSTERS = Clusters.build(dict.fromkeys(ANIMALS, "0010110") | dict.fromkeys(TIMES, "0011010"))


@pytest.mark.parametrize(("structure", "order"), [("spanning", 1), ("projective", 2), ("spanning", 2)])
def test_classes_tell_of_new_words(structure: str, order: int) -> None:
    def parse(clusters: Clusters | None) -> list[list[tuple[int | None, str]]]:
        parser = Parser(l2=0.1, structure=structure, order=order, clusters=clusters)
        return trees(parser.fit(SEEN).predict(NEW))

    assert parse(CLUSTERS) == trees(NEW)
    first, second = parse(None)
    assert first == second  # without classes all new words look alike


def test_the_names_of_classes_do_not_matter() -> None:
    """Paths with 0 and 1 exchanged are the same tree of classes."""
    sentences = random_treebank([3, 5, 8, 4] * 4, 2)
    forms = sorted({word.form for one in sentences for word in one.words})
    random = np.random.default_rng(0)
    paths = {form: "".join(random.choice(list("01"), 8)) for form in forms[::2]}  # others have no class
    turned = {form: path.translate(str.maketrans("01", "10")) for form, path in paths.items()}
    one, two, without = (
        Parser(l2=0.5, clusters=given).fit(sentences)
        for given in (Clusters.build(paths), Clusters.build(turned), None)
    )
    assert len(one.weights_) == len(two.weights_) > len(without.weights_)
    for a, b in zip(one.arc_probabilities(sentences), two.arc_probabilities(sentences), strict=True):
        assert a == pytest.approx(b, abs=1e-8)
    changes = [
        np.abs(a - b).max()
        for a, b in zip(one.arc_probabilities(sentences), without.arc_probabilities(sentences), strict=True)
    ]
    assert max(changes) > 1e-4


def test_beginnings_of_paths_are_coarser_classes() -> None:
    """New words have paths that differ from those of the seen ones behind the sixth character."""
    near = dict.fromkeys(ANIMALS[6:], "0010111") | dict.fromkeys(TIMES[6:], "0011011")
    seen = {word: CLUSTERS[word] for word in ANIMALS[:6] + TIMES[:6]}
    parser = Parser(l2=0.1, clusters=Clusters.build(seen | near)).fit(SEEN)
    assert trees(parser.predict(NEW)) == trees(NEW)
    # Flat classes have no beginnings.
    flat = Parser(l2=0.1, clusters=Clusters.build({word: f"x{path}" for word, path in (seen | near).items()}))
    first, second = trees(flat.fit(SEEN).predict(NEW))
    assert first == second


def test_files_hold_the_clusters(tmp_path: Path) -> None:
    parser = Parser(l2=0.1, clusters=CLUSTERS).fit(SEEN)
    parser.save(tmp_path / "m")
    again = load(tmp_path / "m")
    assert again.clusters == CLUSTERS
    for a, b in zip(again.arc_probabilities(NEW), parser.arc_probabilities(NEW), strict=True):
        assert a.tobytes() == b.tobytes()
    file = read_model_file(tmp_path / "m")
    held = {name: values for name, values in file.arrays.items() if name != "resource.clusters"}
    damaged = file.arrays["resource.clusters"].copy()
    damaged[: len(damaged) // 2] = 7
    for arrays in (held, held | {"resource.clusters": damaged}):
        write_model_file(file._replace(arrays=arrays), tmp_path / "bad")
        with pytest.raises(InputError):
            load(tmp_path / "bad")


def test_explanations_name_classes() -> None:
    parser = Parser(l2=0.1, clusters=CLUSTERS).fit(SEEN)
    found = parser.explain_arc(NEW[0], 1)
    assert "cluster" in str(found)


def test_errors() -> None:
    with pytest.raises(ArgumentError, match=r"clusters is 'brown\.txt'"):
        Parser(clusters="brown.txt").fit(SEEN)  # type: ignore[arg-type]


def test_paths_are_of_all_words() -> None:
    treebank = encode_sentences(SEEN, clusters=CLUSTERS)
    assert treebank.n_sentences == len(SEEN)
    with pytest.raises(ValueError, match="a path for each of the 3 words"):
        type(treebank)([list(SEEN[0].words)], ["0"])


def test_the_command_line(tmp_path: Path) -> None:
    with (tmp_path / "train.conllu").open("w", encoding="utf-8") as stream:
        write_conllu(SEEN, stream)
    CLUSTERS.write(tmp_path / "clusters.txt")
    given = [str(tmp_path / name) for name in ("train.conllu", "m", "clusters.txt")]
    run("train-parser", given[0], "--model", given[1], "--clusters", given[2], "--l2", "0.1", "--quiet")
    assert trees(load(tmp_path / "m").predict(NEW)) == trees(NEW)
