"""Models as folders of the hub: what is saved is what is loaded, the card is what was said, and nothing needs a network."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import crfkit
from crfkit import CRF, Parser, Pipeline, errors
from crfkit.data import Sentence, Word
from crfkit.integrations import hub
from crfkit.integrations.hub import ModelCard, from_pretrained, push_to_hub, save_pretrained

X, Y = [["Ann", "saw", "Rome"]], [["B-PER", "O", "B-LOC"]]


def names() -> CRF:
    return CRF(features="names", l2=0.1).fit(X, Y)


def tree() -> Sentence:
    return Sentence(
        [
            Word("Dogs", "dog", "NOUN", head=2, deprel="nsubj"),
            Word("bark", "bark", "VERB", head=0, deprel="root"),
        ]
    )


def metadata(card: str) -> dict[str, Any]:
    """The header of a card: names, and values that are JSON."""
    _, header, _ = card.split("---\n", 2)
    lines = (line.partition(": ") for line in header.splitlines())
    return {name: json.loads(value) for name, _, value in lines}


def test_what_is_saved_is_what_is_loaded(tmp_path: Path) -> None:
    crf = names()
    assert save_pretrained(crf, tmp_path / "a" / "names") == tmp_path / "a" / "names"
    loaded = from_pretrained(tmp_path / "a" / "names")
    assert loaded.weights_.tobytes() == crf.weights_.tobytes()
    assert crfkit.load(tmp_path / "a" / "names" / "model.crf").predict(X) == Y
    save_pretrained(crf, tmp_path / "a" / "names", single_precision=True)
    np.testing.assert_allclose(from_pretrained(tmp_path / "a" / "names").weights_, crf.weights_, rtol=1e-6)


def test_every_kind_of_model(tmp_path: Path) -> None:
    pipeline = Pipeline(folds=2).fit([tree()] * 4)
    models = [Parser(order=1).fit([tree()]), pipeline, *pipeline.components_, pipeline.tokenizer_]
    for number, model in enumerate(models):
        save_pretrained(model, tmp_path / str(number))
        assert type(from_pretrained(tmp_path / str(number))) is type(model)
        config = hub.read_config(tmp_path / str(number))
        assert config["architectures"] == [type(model).__name__]
        assert f"A `{type(model).__name__}` of crfkit" in (tmp_path / str(number) / "README.md").read_text()


def test_config(tmp_path: Path) -> None:
    save_pretrained(names(), tmp_path)
    config = hub.read_config(tmp_path)
    assert config["library_name"] == "crfkit"
    assert config["crfkit_version"] == crfkit.__version__
    assert config["id2label"] == {"0": "B-LOC", "1": "B-PER", "2": "O"}
    assert config["label2id"]["O"] == 2
    assert config["settings"]["l2"] == {"default": 0.1, "character": 0.01}
    assert config["sizes"]["weights"] == len(names().weights_)


def test_the_card_says_what_was_given(tmp_path: Path) -> None:
    save_pretrained(
        names(),
        tmp_path,
        name="Names: a test",
        description="Finds names.\n\n- quickly",
        language=["en", "no"],  # a word that YAML would read as false
        license="mit",
        datasets=["conll2003"],
        metrics={"f1": 0.875, "precision": 0.9},
        evaluated_on='my "test" set',
        tags=["ner"],
    )
    text = (tmp_path / "README.md").read_text(encoding="utf-8")
    found = metadata(text)
    assert found["language"] == ["en", "no"]
    assert found["license"] == "mit"
    assert found["datasets"] == ["conll2003"]
    assert found["tags"] == ["crfkit", "crf", "CRF", "ner"]
    assert found["pipeline_tag"] == "token-classification"
    [result] = found["model-index"][0]["results"]
    assert result["metrics"] == [{"type": "f1", "value": 0.875}, {"type": "precision", "value": 0.9}]
    assert result["dataset"]["name"] == 'my "test" set'
    for part in (
        "# Names: a test",
        "- quickly",
        "| f1 | 0.875 |",
        "`B-PER`",
        "from_pretrained",
        "| l2 | {'default': 0.1, 'character': 0.01} |",
    ):
        assert part in text
    assert text.endswith("\n")


def test_the_hub_reads_the_card(tmp_path: Path) -> None:
    """By its own library, where that is installed."""
    huggingface_hub = pytest.importorskip("huggingface_hub")
    save_pretrained(
        names(), tmp_path, name="n", language="no", license="mit", metrics={"f1": 0.5}, evaluated_on="x"
    )
    data = huggingface_hub.ModelCard.load(tmp_path / "README.md").data
    assert data.language == ["no"]
    assert data.license == "mit"
    assert data.library_name == "crfkit"
    assert data.eval_results[0].metric_value == 0.5


def test_a_card_without_anything(tmp_path: Path) -> None:
    save_pretrained(names(), tmp_path, card=ModelCard())
    text = (tmp_path / "README.md").read_text(encoding="utf-8")
    assert set(metadata(text)) == {"library_name", "pipeline_tag", "tags"}
    assert "Scores" not in text


class FakeHub:
    """What of huggingface_hub is called, in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.calls: list[tuple[str, dict[str, Any]]] = []

    def module(self) -> SimpleNamespace:
        return SimpleNamespace(HfApi=self.api, snapshot_download=self.snapshot_download)

    def api(self, token: Any) -> FakeHub:
        self.calls.append(("HfApi", {"token": token}))
        return self

    def create_repo(self, repository: str, **options: Any) -> None:
        self.calls.append(("create_repo", options))
        (self.folder / repository).mkdir(parents=True, exist_ok=True)

    def upload_folder(self, *, repo_id: str, folder_path: str, commit_message: str) -> str:
        for path in Path(folder_path).iterdir():
            (self.folder / repo_id / path.name).write_bytes(path.read_bytes())
        return f"https://hub.example/{repo_id}"

    def snapshot_download(self, name: str, **options: Any) -> str:
        self.calls.append(("snapshot_download", options))
        return str(self.folder / name)


def test_upload_and_download(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = FakeHub(tmp_path / "hub")
    monkeypatch.setitem(sys.modules, "huggingface_hub", fake.module())
    monkeypatch.chdir(tmp_path)
    crf = names()
    assert (
        push_to_hub(crf, "someone/names", private=True, language="en") == "https://hub.example/someone/names"
    )
    loaded = from_pretrained("someone/names", revision="main", local_files_only=True)
    assert loaded.weights_.tobytes() == crf.weights_.tobytes()
    assert dict(fake.calls) == {
        "HfApi": {"token": None},
        "create_repo": {"exist_ok": True, "private": True},
        "snapshot_download": {
            "revision": "main",
            "allow_patterns": ["model.crf", "config.json", "README.md"],
            "local_files_only": True,
        },
    }
    assert "# names\n" in (tmp_path / "hub" / "someone" / "names" / "README.md").read_text(encoding="utf-8")


def test_a_failed_download_says_that_there_is_no_such_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(name: str, **options: Any) -> None:
        raise OSError("no network")

    monkeypatch.setitem(sys.modules, "huggingface_hub", SimpleNamespace(snapshot_download=fail))
    with pytest.raises(OSError, match="no network") as caught:
        from_pretrained("nosuch")
    assert caught.value.__notes__ == ["nosuch is no folder here, so it was taken for a repository of the hub"]


def test_errors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)  # as where it is not installed
    crf = names()
    with pytest.raises(FileNotFoundError, match="someone/none: there is no such folder, and the hub needs"):
        from_pretrained("someone/none")
    with pytest.raises(FileNotFoundError, match="there is no such folder"):
        from_pretrained("./none")
    with pytest.raises(ImportError, match="pip install huggingface_hub"):
        push_to_hub(crf, "someone/names")
    with pytest.raises(errors.MissingFileError, match=r"there is no model\.crf"):
        from_pretrained(tmp_path)
    with pytest.raises(errors.ArgumentError, match="metrics has 'high' for 'f1'"):
        save_pretrained(crf, tmp_path, metrics={"f1": "high"})
    with pytest.raises(errors.ArgumentError, match="language was given beside a card"):
        save_pretrained(crf, tmp_path, card=ModelCard(), language="en")
    with pytest.raises(ValueError, match="This CRF is not trained"):
        save_pretrained(CRF(), tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(errors.UnwritableFileError, match="cannot be written"):
        save_pretrained(crf, tmp_path / "file" / "folder")
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(errors.FileFormatError, match="is not JSON"):
        hub.read_config(tmp_path)
