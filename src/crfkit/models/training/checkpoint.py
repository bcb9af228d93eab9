"""Checkpoints: a training run on disk, to go on from with the same bits.

A checkpoint is written like a model file (safetensors, nothing in it is executed) and replaces the one before in a single
step. It knows the settings and the data it belongs to, and is refused with others; a checksum over all that it holds tells
whether it is as it was written.

Functions are compared by their fingerprints (`fingerprint.py`). What feature functions, facets and patterns give on the
training and dev data is compared too: so what may change in a function as it runs, such as a cache, need not count, and a
function that has no fingerprint is known by its name and its values. A metric must have a fingerprint.
"""

import dataclasses
import hashlib
import json
import os
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from crfkit.arrays import Float64s
from crfkit.counts import check_count
from crfkit.data import check_writable, replacing
from crfkit.errors import ArgumentError, InputError
from crfkit.evaluation import Metric
from crfkit.features import FeatureFunctions
from crfkit.models.files import disk, model_file
from crfkit.models.files.file_arrays import current_names
from crfkit.models.files.model_file import ModelFile
from crfkit.models.graph_settings import GraphSettings
from crfkit.models.kinds import kind_of
from crfkit.models.settings import CRFSettings, ParserSettings
from crfkit.models.training.fingerprint import Fingerprint, by_code, compare_by_code
from crfkit.models.warning_types import CheckpointFailed
from crfkit.optimizers import OPTIMIZERS, Snapshot, SnapshotError, Watch

TYPE = "checkpoint"
LATER = {("dropout", 0.0)}  # settings that earlier checkpoints do not have, with what they mean there
STOPPING = ("max_iterations", "tolerance", "change", "period")  # of an optimizer: they change no step
Settings = dict[str, str]
_UNCOMPARED: dict[type, set[str]] = {  # parameters that training does not depend on, or that show in the data
    CRFSettings: {"n_threads", "random_state", "tag_dictionary", "resources", "decode"},
    ParserSettings: {"n_threads"},  # its `decode` finds the trees of the dev set
    GraphSettings: {"n_threads"},
}


@dataclasses.dataclass(frozen=True)
class Checkpoint:
    """The file that keeps the state of a training run, written after every `every`-th iteration.

    With `resume` the run goes on from there, if the file exists, and ends with the same weights, bit for bit, as if
    never interrupted.
    """

    path: str | os.PathLike[str]
    every: int = 10
    resume: bool = False


class CheckpointError(InputError):
    """A checkpoint that cannot be gone on from: it is damaged, or of other data or settings."""


class CheckpointMismatchError(CheckpointError):
    """A checkpoint of other data or settings. `name` says of which: "data", "dev data", "metric", "structure", …"""

    def __init__(self, message: str, name: str = "") -> None:
        super().__init__(message)
        self.name = name


def check_checkpoint(given: object) -> None:
    """Refuse what is no checkpoint, before any work."""
    if not isinstance(given, Checkpoint):
        raise ArgumentError(f"checkpoint is {given!r}, expected crfkit.Checkpoint(path, every=…, resume=…)")
    check_count("every", given.every)


class CheckpointRun:
    """A training run with a checkpoint: goes on from the file, if there is one and that is wanted, and writes it.

    A file that is damaged, or of other settings, is refused at once; one of other data when these are known.
    """

    def __init__(
        self, checkpoint: Checkpoint, settings: CRFSettings | ParserSettings | GraphSettings, metric: object
    ) -> None:
        self._checkpoint = checkpoint
        self._settings = describe_settings(settings, metric)
        self._standard = _standard_values(type(settings))
        self._saved = _open(checkpoint)
        if self._saved is not None:
            self._compare(self._saved, self._settings)

    def merging_start(self, start: Float64s) -> Float64s | None:
        """Weights [D] that tell whether equal features are merged; None: they were not when the checkpoint was written.

        A run that goes on began with weights of its own, whatever is given now.
        """
        if self._saved is None:
            return start
        began = self._saved.arrays.get("start")
        return None if began is not None and began.shape == start.shape else np.zeros_like(start)

    def wrap(self, watch: Watch, data: Settings, optimizer: object) -> Watch:
        """The same watch, which also writes the checkpoint, and begins with the one that was saved."""
        checkpoint, resume = self._checkpoint, None
        settings = self._settings | data | {"chosen optimizer": type(optimizer).__name__}
        if self._saved is not None:
            self._compare(self._saved, settings)
            numbers = self._saved.settings.get("numbers")
            resume = Snapshot(numbers if isinstance(numbers, dict) else {}, self._saved.arrays)

        def save(snapshot: Snapshot) -> None:
            content: dict[str, Any] = {"of": settings, "numbers": snapshot.numbers}
            content["checksum"] = _checksum(content, snapshot.arrays)
            data = model_file.encode(ModelFile(TYPE, content, snapshot.arrays))
            try:
                with replacing(checkpoint.path) as stream:
                    stream.write(data)
            except InputError as error:  # such as a full disk: the run is worth more than its checkpoint
                message = f"no checkpoint was written, training goes on: {error}"
                warnings.warn(message, CheckpointFailed, stacklevel=2)

        return dataclasses.replace(watch, save=save, every=checkpoint.every, resume=resume)

    def _compare(self, file: ModelFile, expected: Settings) -> None:
        _compare(self._checkpoint.path, file, expected, self._standard)


def describe_settings(
    settings: CRFSettings | ParserSettings | GraphSettings, metric: object = None
) -> Settings:
    """The parameters of an estimator, and the metric, that decide every step of its training, as text."""
    texts = {
        field.name: _TEXTS.get(field.name, repr)(getattr(settings, field.name))
        for field in dataclasses.fields(settings)
        if field.name not in _UNCOMPARED[type(settings)]
    }
    return texts | {"metric": _metric_text(metric)}


def _standard_values(settings: type[CRFSettings | ParserSettings | GraphSettings]) -> Settings:
    """The values, as text, of parameters that have a standard one: the files of versions without them mean it."""
    return {
        field.name: _TEXTS.get(field.name, repr)(field.default)
        for field in dataclasses.fields(settings)
        if field.default is not dataclasses.MISSING
    }


def _metric_text(metric: Any) -> str:
    """A metric by its name, where it has one; None is the default, which the data decide."""
    if isinstance(metric, Metric):
        return metric.name
    return str(metric) if metric is None or isinstance(metric, str) else compare_by_code(metric, "metric")


def _optimizer_text(optimizer: Any) -> str:
    if isinstance(optimizer, str):
        return optimizer
    if type(optimizer) not in OPTIMIZERS.values():
        return compare_by_code(optimizer, "optimizer")
    free = () if getattr(optimizer, "scheduled", False) else STOPPING
    settings = dataclasses.asdict(optimizer).items()
    method = {k: v for k, v in settings if k not in free and (k, v) not in LATER}
    return f"{type(optimizer).__name__} {method}"


def _features_text(features: Any) -> str:
    if isinstance(features, FeatureFunctions):  # `memory` changes no bit
        functions = ", ".join(f"{f.name}: {by_code(f, f.function)}" for f in features)
        return f"{functions}; length: {by_code(features.length)}; arcs: {features.transitions}"
    return features if isinstance(features, str) else type(features).__name__


def _structure_text(structure: Any) -> str:
    return structure if isinstance(structure, str) else kind_of(structure).text(structure)


def _facets_text(facets: Any) -> str:
    return repr(facets) if facets in (None, False) or isinstance(facets, str | Mapping) else by_code(facets)


_TEXTS: dict[str, Callable[[Any], str]] = {  # of parameters; the others are numbers and names
    "optimizer": _optimizer_text,
    "features": _features_text,
    "structure": _structure_text,
    "facets": _facets_text,
    "graph_template": by_code,
    "margin": lambda margin: repr(margin or 0.0),
    "span_states": lambda asked: repr(asked or None),
}


def _open(checkpoint: Checkpoint) -> ModelFile | None:
    """The file to go on from, if there is one and that is wanted; refused if damaged."""
    path = checkpoint.path
    check_writable(path)
    if not checkpoint.resume or not Path(path).exists():
        return None
    try:
        file = model_file.decode(disk.read_bytes(path), str(path))
    except InputError as error:
        raise CheckpointError(str(error)) from None
    if file.type != TYPE:
        raise CheckpointError(f"{path}: its type is {file.type[:40]!r}, expected {TYPE!r}")
    content = dict(file.settings)
    if content.pop("checksum", None) != _checksum(content, file.arrays):
        raise CheckpointError(
            f"{path}: the checkpoint is damaged: its checksum is not that of what it holds; "
            "begin without resume, or with another checkpoint"
        )
    return file


@contextmanager
def name_damage(checkpoint: Checkpoint | None) -> Iterator[None]:
    """Names the file whose snapshot the block finds damaged."""
    try:
        yield
    except SnapshotError as error:
        path = "" if checkpoint is None else f"{checkpoint.path}: "
        raise CheckpointError(f"{path}the checkpoint is damaged: {error}") from None


def _checksum(content: Mapping[str, Any], arrays: Mapping[str, Any]) -> str:
    """Over everything but itself."""
    digest = hashlib.blake2b(json.dumps(content, sort_keys=True).encode(), digest_size=16)
    digest.update(Fingerprint().add(dict(arrays)).hexdigest().encode())
    return digest.hexdigest()


def _compare(path: str | os.PathLike[str], file: ModelFile, expected: Settings, standard: Settings) -> None:
    """Refuse a file with other values than expected; one without a value has the standard one, or None."""
    settings = file.settings.get("of")
    known = current_names(settings) if isinstance(settings, dict) else {}
    for name, value in expected.items():
        before = known.get(name, standard.get(name, "None"))
        if before == value:
            continue
        if name in ("data", "dev data"):
            what = "training data" if name == "data" else "dev data"
            raise CheckpointMismatchError(
                f"{path}: the checkpoint is of other {what}, expected those it was written for; or another version "
                "of crfkit wrote it",
                name,
            )
        raise CheckpointMismatchError(
            f"{path}: the checkpoint was written with {name} {before}, but it is {value} now", name
        )
