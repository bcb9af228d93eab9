"""The finished steps of a training run in a folder, so that a run that was interrupted goes on from there."""

import hashlib
import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from crfkit.data import Sentence, read_conllu, write_conllu
from crfkit.errors import InputError
from crfkit.features import Resource
from crfkit.models import (
    CheckpointError,
    CheckpointMismatchError,
    check_writable,
    replacing,
    write_model_file,
)
from crfkit.pipeline.pipeline_file import to_part

_RUN = "run.json"


class FinishedSteps:
    """Models of components and predictions of folds in a folder; None: nothing is kept.

    The folder says which training and dev sentences, components and folds it belongs to. Those of another run are refused.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str] | None,
        sentences: Sequence[Sentence],
        dev: Sequence[Sentence] | None,
        components: Sequence[Any],
        folds: int,
    ) -> None:
        self._folder = None if folder is None else Path(folder)
        if self._folder is None:
            return
        own = {
            "training data": _digest(sentences),
            "dev data": _digest(dev or ()),
            "components": [repr_settings(component) for component in components],
            "folds": folds,
        }
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise CheckpointError(
                f"{folder}: no folder can be made there ({error.strerror or error})"
            ) from None
        run = self._folder / _RUN
        if run.exists():
            _compare(run, own)
        else:
            check_writable(run)
            with replacing(run) as stream:
                stream.write(json.dumps(own, indent=1).encode())

    def model(self, name: str, resources: Any = None) -> Any | None:
        """The trained component of this name, if it is there; `resources` are those that it was given."""
        path = self._path(name, ".model")
        if path is None or not path.exists():
            return None
        from crfkit.pipeline.loading import load

        try:
            return load(path, resources=resources)
        except InputError as error:
            raise CheckpointError(f"{error}; remove it to train the component again") from None

    def keep_model(self, name: str, component: Any) -> None:
        """Write a trained component, if it can be written."""
        path = self._path(name, ".model")
        if path is not None and hasattr(component, "to_file"):
            write_model_file(to_part(component), path)

    def sentences(self, name: str) -> list[Sentence] | None:
        """The sentences that were kept under a name, if they were."""
        path = self._path(name, ".conllu.gz")
        return None if path is None or not path.exists() else list(read_conllu(path))

    def keep_sentences(self, name: str, sentences: Iterable[Sentence]) -> None:
        """Write sentences; a file that is there is complete."""
        path = self._path(name, ".conllu.gz")
        if path is not None:
            partial = path.with_name(f"partial-{path.name}")
            write_conllu(sentences, partial)
            partial.replace(path)

    def _path(self, name: str, ending: str) -> Path | None:
        return None if self._folder is None or not name else self._folder / f"{name}{ending}"


def _digest(sentences: Sequence[Sentence]) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for sentence in sentences:
        digest.update(
            repr((sentence.words, sentence.multiwords, sentence.comments)).encode("utf-8", "replace")
        )
    return digest.hexdigest()


def repr_settings(component: Any) -> str:
    """The settings of a component, as text; the number of threads is none, and resources are known by their digests."""
    settings = {
        name: {key: one.digest for key, one in value.items()}
        if name == "resources" and value
        else value.digest
        if isinstance(value, Resource)
        else value
        for name, value in sorted(vars(component).items() if component is not None else ())
        if not name.endswith("_") and not name.startswith("_") and name != "n_threads"
    }
    return f"{type(component).__name__} {settings}"


def _compare(run: Path, own: dict[str, Any]) -> None:
    try:
        known = json.loads(run.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise CheckpointError(f"{run}: cannot be read ({error})") from None
    for name, value in own.items():
        if not isinstance(known, dict) or known.get(name) != value:
            raise CheckpointMismatchError(
                f"{run.parent}: the checkpoint is of other {name}, expected those that it was begun with; "
                "take another folder",
                name,
            )
