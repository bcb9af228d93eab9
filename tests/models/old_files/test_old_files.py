"""Model files and checkpoints of earlier versions open, and give the answers of the code that wrote them.

`write.py` says what they are and which version wrote them. They stay as they are; where names change, this file follows.
"""

from __future__ import annotations

import io
import json
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load

import crfkit
from crfkit.data import read_conllu
from tests.models.old_files import functions

FOLDER = Path(__file__).parent


def names(prefix: str = "") -> list[str]:
    """Files whose names begin so; without a prefix, those of chains."""
    found = sorted(path.stem for path in FOLDER.glob(f"{prefix}*.crf"))
    return [name for name in found if prefix or not name.startswith(("parser", "checkpoint"))]


def recorded(name: str) -> dict[str, Any]:
    """What belongs to a file: its input, and the answers of the code that wrote it."""
    content: dict[str, Any] = read_json(name)
    inputs = read_json("inputs")
    return content | {key: inputs[content[key]] for key in ("X", "y") if key in content}


def read_json(name: str) -> Any:
    return json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))


def formed(X: Any, form: str) -> Any:
    """Input as a model takes it, from JSON: rows of columns as tuples, numbers as arrays."""
    if form == "columns":
        return [[tuple(row) for row in x] for x in X]
    if form == "matrices":
        return [np.array(x) for x in X]
    if form == "rows":
        return [[{**position, "row": np.array(position["row"])} for position in x] for x in X]
    return X


def gold(y: Any) -> Any:
    """Labels from JSON: a list at a position is a set of labels."""
    return [[set(v) if isinstance(v, list) else v for v in labels] for labels in y]


def opened(name: str) -> Any:
    given = [getattr(functions, function) for function in recorded(name).get("functions", ())]
    return crfkit.load(FOLDER / f"{name}.crf", given or None)


def compare(model: Any, content: dict[str, Any], tolerance: float) -> None:
    """Every answer of a chain beside the recorded one."""
    X, y, allowed = formed(content["X"], content["form"]), gold(content["y"]), content.get("allowed")
    expected = content["answers"]
    assert model.predict(X, allowed=allowed) == expected["labels"]
    n = len(expected["marginals"])  # the last sequences
    marginals = model.predict_marginals(X, allowed=allowed)
    for found, p in zip(marginals[-n:], expected["marginals"], strict=True):
        np.testing.assert_allclose(found, np.reshape(p, found.shape), rtol=0, atol=tolerance)
    log_p = model.log_probability(X, y, allowed=allowed)
    np.testing.assert_allclose(log_p, expected["log_probability"], rtol=tolerance, atol=tolerance)
    n_best = model.predict_nbest(X, 3, allowed=allowed)
    for best, wanted in zip(n_best[-n:], expected["n_best"], strict=True):
        np.testing.assert_allclose([p for p, _ in best], [p for p, _ in wanted], rtol=0, atol=tolerance)
        assert [labels for _, labels in best] == [labels for _, labels in wanted]


def test_the_folder_is_complete() -> None:
    assert (len(names()), len(names("parser")), len(names("checkpoint"))) == (42, 2, 12)


@pytest.mark.parametrize("name", names())
def test_a_model_answers_as_when_it_was_written(name: str) -> None:
    compare(opened(name), recorded(name), tolerance=1e-9)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [name for name in names() if "trained on" in recorded(name)])
def test_a_model_has_the_parameters_that_it_was_trained_with(name: str) -> None:
    """Training it again gives the same answers."""
    if name == "single_precision":
        pytest.skip("its weights were rounded after training")
    content, model = recorded(name), opened(name)
    n, allowed = content["trained on"], content["allowed"]
    X, y = formed(content["X"], content["form"]), gold(content["y"])
    model.fit(X[:n], y[:n], allowed=None if allowed is None else allowed[:n])
    compare(model, content, tolerance=1e-5)


@pytest.mark.parametrize("name", ["functions", "patterns_functions"])
def test_functions_are_found_by_their_import_paths(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The files name the module by the path that it had when they were written."""
    monkeypatch.setitem(sys.modules, "tests.old_files.functions", functions)
    compare(crfkit.load(FOLDER / f"{name}.crf", trust_functions=True), recorded(name), tolerance=1e-9)


@pytest.mark.parametrize("name", names("parser"))
@pytest.mark.parametrize("again", [False, True])
def test_a_parser_answers_as_when_it_was_written(name: str, again: bool) -> None:
    """As it is, and trained again with its parameters."""
    content, parser = recorded(name), crfkit.load(FOLDER / f"{name}.crf")
    sentences = list(read_conllu(io.StringIO(content["conllu"])))
    if again:
        parser.fit(sentences[: content["trained on"]])
    tolerance = 1e-5 if again else 1e-9
    trees = [[[word.head, word.deprel] for word in parsed.words] for parsed in parser.predict(sentences)]
    assert trees == content["trees"]
    for found, arcs in zip(parser.arc_probabilities(sentences), content["arcs"], strict=True):
        np.testing.assert_allclose(found, arcs, rtol=0, atol=tolerance)
    np.testing.assert_allclose(
        parser.log_likelihood(sentences), content["log_likelihood"], rtol=tolerance, atol=tolerance
    )
    for best, wanted in zip(parser.predict_nbest(sentences, 3), content["n_best"], strict=True):
        np.testing.assert_allclose([tree.probability for tree in best], wanted, rtol=0, atol=tolerance)


def resume(content: dict[str, Any], path: Path) -> tuple[Any, list[int]]:
    """Go on from a checkpoint; the model, and the iterations that took place."""
    name, settings = content["parameters"]["optimizer"]
    optimizer = getattr(crfkit, name)(**settings)
    n, seen = content["trained on"], []

    def callback(progress: Any) -> None:
        seen.append(progress.iteration)

    model: Any = crfkit.CRF(**{**content["parameters"], "optimizer": optimizer})
    X, y = content["X"], content["y"]
    dev = (X[n:], y[n:]) if content["dev"] else None
    checkpoint = crfkit.Checkpoint(path, every=1, resume=True)
    model.fit(X[:n], y[:n], dev=dev, callback=callback, checkpoint=checkpoint)
    return model, seen


@pytest.mark.parametrize("name", names("checkpoint"))
def test_a_training_run_goes_on_from_a_checkpoint(name: str, tmp_path: Path) -> None:
    """It ends where a run without interruption ended: fingerprints of settings and data are those of then."""
    content = recorded(name)
    shutil.copy(FOLDER / f"{name}.crf", tmp_path / "old.crf")
    model, seen = resume(content, tmp_path / "old.crf")
    assert seen == [i for i in content["iterations"] if i > content["interrupted"]]
    objectives = [record.objective for record in model.history_]
    # L-BFGS keeps its pairs in single precision, where another order of sums changes later steps.
    single = content["parameters"]["optimizer"][0] == "LBFGS"
    np.testing.assert_allclose(objectives, content["objectives"], rtol=1e-6 if single else 1e-9)
    compare(model, content, tolerance=1e-5 if single else 1e-7)


def test_the_parameters_of_a_layer() -> None:
    torch = pytest.importorskip("torch")
    nn = pytest.importorskip("crfkit.nn")
    content = recorded("layer")
    layer = nn.ChainCRF(labels=["B", "I", "O"], bigrams="bio", dtype=torch.float64)
    stored = load((FOLDER / "layer.safetensors").read_bytes())
    layer.load_state_dict({name: torch.from_numpy(array) for name, array in stored.items()})
    emissions = torch.tensor(content["emissions"], dtype=torch.float64)
    found = layer(emissions, torch.tensor(content["tags"]), reduction="none")
    np.testing.assert_allclose(found.tolist(), content["log_likelihood"], rtol=1e-9)
    assert layer.decode(emissions).tolist() == content["labels"]
