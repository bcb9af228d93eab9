"""Models as folders of the Hugging Face hub: the model file, its settings, and a model card; with or without network.

model.crf       what `crfkit.load` reads; loading it executes nothing
config.json     type, labels, sizes and settings, for people and programs
README.md       the model card: metadata of the hub, what the model is, how to use it, its scores
"""

import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from crfkit.errors import ArgumentError, FileFormatError, MissingFileError, UnwritableFileError
from crfkit.integrations.model_card import ModelCard
from crfkit.models import CRF, Parser, describe, write_model_file
from crfkit.pipeline import load

__all__ = ["ModelCard", "from_pretrained", "push_to_hub", "read_config", "save_pretrained"]

MODEL, CONFIG, CARD = "model.crf", "config.json", "README.md"


def save_pretrained(
    model: Any,
    folder: str | os.PathLike[str],
    *,
    card: ModelCard | None = None,
    single_precision: bool = False,
    **about: Any,
) -> Path:
    """Write a trained model of any kind into a folder in the layout of the hub, and return the folder.

    What the card says is given as a `ModelCard`, or as its fields: `name`, `language`, `license`, `datasets`, `metrics`,
    `evaluated_on`, `tags`, `description`. `single_precision` makes the model file almost half as long.

    >>> crf = CRF(features="names").fit([["Ann", "saw", "Rome"]], [["B-PER", "O", "B-LOC"]])
    >>> folder = save_pretrained(crf, "names", language="en", license="mit", metrics={"f1": 0.87}, evaluated_on="my test")
    >>> sorted(path.name for path in folder.iterdir())
    ['README.md', 'config.json', 'model.crf']
    >>> from_pretrained("names").classes_
    ['B-LOC', 'B-PER', 'O']
    """
    if card is not None and about:
        raise ArgumentError(f"{next(iter(about))} was given beside a card, expected it in the card")
    found = ModelCard(**about) if card is None else card
    file = model.to_file(single_precision=single_precision)
    config = _config(model)
    folder = Path(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_model_file(file, folder / MODEL)
        text = json.dumps(config, ensure_ascii=False, indent=1)
        (folder / CONFIG).write_text(text + "\n", encoding="utf-8")
        (folder / CARD).write_text(found.to_text(config), encoding="utf-8")
    except OSError as error:
        raise UnwritableFileError(f"{folder}: cannot be written ({error.strerror or error})") from None
    return folder


def from_pretrained(
    name: str | os.PathLike[str],
    *,
    revision: str | None = None,
    functions: Any = None,
    trust_functions: bool = False,
    **download: Any,
) -> Any:
    """The model of a folder, or of a repository of the hub such as "someone/names", which is downloaded.

    A folder needs no network. `functions` and `trust_functions` as for `crfkit.load`; `download` goes to
    `huggingface_hub.snapshot_download` (`cache_dir`, `token`, `local_files_only`, …).
    """
    folder = Path(name)
    if not folder.is_dir():
        folder = _download(str(name), revision, download)
    path = folder / MODEL
    if not path.is_file():
        raise MissingFileError(f"{folder}: there is no {MODEL}, expected a folder that save_pretrained wrote")
    return load(path, functions, trust_functions=trust_functions)


def read_config(folder: str | os.PathLike[str]) -> dict[str, Any]:
    """What `config.json` of a folder says."""
    path = Path(folder) / CONFIG
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise MissingFileError(f"{path}: cannot be read ({error.strerror or error})") from None
    except ValueError:
        raise FileFormatError(f"{path}: is not JSON") from None
    if not isinstance(found, dict):
        raise FileFormatError(f"{path}: is a {type(found).__name__}, expected an object")
    return found


def push_to_hub(
    model: Any,
    repository: str,
    *,
    card: ModelCard | None = None,
    private: bool | None = None,
    token: str | bool | None = None,
    message: str = "Upload model",
    single_precision: bool = False,
    **about: Any,
) -> Any:
    """Upload a trained model to a repository of the hub, such as "someone/names", which is made if it is not there.

    The card as for `save_pretrained`. `token`: the one to use; None: the one that you are logged in with.
    """
    hub = _huggingface_hub()
    api = hub.HfApi(token=token)
    with tempfile.TemporaryDirectory() as folder:
        about = about if card is not None else {"name": repository.rpartition("/")[2], **about}
        save_pretrained(model, folder, card=card, single_precision=single_precision, **about)
        api.create_repo(repository, exist_ok=True, private=private)
        return api.upload_folder(repo_id=repository, folder_path=folder, commit_message=message)


def _download(name: str, revision: str | None, options: Mapping[str, Any]) -> Path:
    if name.count("/") > 1 or name.startswith((".", "/", "~")) or os.sep * 2 in name:
        raise MissingFileError(f"{name}: there is no such folder")
    try:
        hub = _huggingface_hub()
    except ImportError as error:
        raise MissingFileError(f"{name}: there is no such folder, and {error}") from None
    wanted = [MODEL, CONFIG, CARD]
    try:
        return Path(hub.snapshot_download(name, revision=revision, allow_patterns=wanted, **options))
    except Exception as error:  # those of the hub and of its network library
        error.add_note(f"{name} is no folder here, so it was taken for a repository of the hub")
        raise


def _huggingface_hub() -> Any:
    try:
        import huggingface_hub
    except ImportError:
        raise ImportError("the hub needs huggingface_hub: pip install huggingface_hub") from None
    return huggingface_hub


def _config(model: Any) -> dict[str, Any]:
    """Type, labels, sizes and settings of a trained model."""
    from crfkit import __version__

    config: dict[str, Any] = {
        "library_name": "crfkit",
        "model_type": "crfkit",
        "architectures": [type(model).__name__],
        "crfkit_version": __version__,
        "file": MODEL,
    }
    if isinstance(model, CRF | Parser):
        known = describe(model, n_features=0)
        labels: Sequence[str] = known["labels"]
        config |= {
            "id2label": {str(number): label for number, label in enumerate(labels)},
            "label2id": {label: number for number, label in enumerate(labels)},
            "sizes": known["sizes"],
            "settings": known["settings"],
            "training": known["training"],
        }
    else:
        config["settings"] = {name: str(getattr(model, name)) for name in model._defaults()}
    return config
