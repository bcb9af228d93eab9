"""`crfkit serve`: names of models and errors before it begins."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("starlette", reason='needs Starlette: pip install ".[serve]"')
pytest.importorskip("uvicorn", reason='needs uvicorn: pip install ".[serve]"')

from crfkit import Pipeline, TreebankTagger
from crfkit.cli.serve import load_served, name_models
from crfkit.compat import write_crfsuite
from crfkit.data import Sentence, Word
from crfkit.errors import ArgumentError, FileFormatError, MissingFileError, NotLoadedError
from crfkit.features import Lexicon
from crfkit.models import CRF
from crfkit.structures import Chain
from tests.cli.commands import run


def test_names_of_models(model: str) -> None:
    assert name_models([model]) == {"m": Path(model)}
    assert name_models([model, f"other={model}"]) == {"m": Path(model), "other": Path(model)}
    with pytest.raises(ArgumentError, match="two models are called m"):
        name_models([model, model])
    with pytest.raises(MissingFileError, match="no such model file"):
        name_models(["nosuch.crf"])
    with pytest.raises(FileFormatError, match=r"not a file but a folder, expected .*, such as .*m\.crf"):
        name_models([str(Path(model).parent)])


def test_models_of_other_toolkits(tmp_path: Path) -> None:
    crf = CRF(Chain(start=False, end=False), l2=0.1).fit([[["w=a"], ["w=b"]]], [["A", "B"]])
    write_crfsuite(crf, tmp_path / "m.crfsuite")
    assert load_served(tmp_path / "m.crfsuite").predict([[["w=a"]]]) == [["A"]]


def test_a_model_without_its_resources_is_not_served(tmp_path: Path) -> None:
    cities = Lexicon.build(["Rome"])
    crf = CRF(features="names", resources={"cities": cities}).fit([["in", "Rome"]], [["O", "B-LOC"]])
    crf.save(tmp_path / "named.crf")
    crf.save(tmp_path / "bundled.crf", bundle=True)
    with pytest.raises(NotLoadedError, match=r"named\.crf: .*needs the lexicon 'cities'.*--bundle"):
        load_served(tmp_path / "named.crf")
    assert load_served(tmp_path / "bundled.crf").predict([["Rome"]]) == [["B-LOC"]]
    sentences = [Sentence([Word("in", upos="ADP"), Word("Rome", upos="PROPN")])] * 12
    TreebankTagger(resources={"cities": cities}).fit(sentences).save(tmp_path / "named.tagger")
    Pipeline([TreebankTagger(resources={"cities": cities})], folds=2).fit(sentences).save(tmp_path / "p")
    for name in ("named.tagger", "p"):
        with pytest.raises(NotLoadedError, match="needs the lexicon 'cities'"):
            load_served(tmp_path / name)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nosuch.crf"], "nosuch.crf: there is no such model file"),
        (["train.txt"], "train.txt: "),
        (["m.crf", "--save-dir", "."], "--save-dir was given without --train"),
        (["m.crf", "--train", "--save-dir", "nosuch"], "there is no such folder"),
        (["m.crf", "--host", "256.1.1.1"], "cannot listen there"),
        (["a b=m.crf"], "the name of a model is 'a b'"),
        (["m.crf", "--body-seconds", "0"], "body_seconds is 0.0, expected a number above 0"),
    ],
)
@pytest.mark.usefixtures("model")
def test_errors(arguments: list[str], message: str) -> None:
    result = run("serve", *arguments, status=2)
    assert message in result.output
