"""Checkpoints: a training on disk, to go on from with the same bits.

A checkpoint is written like a model file (safetensors, nothing in it is executed) and replaces the one before in a single
step. It knows the settings and the data it belongs to; with others it is refused.
"""

from __future__ import annotations

import dataclasses
import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from crfkit.data import InputError
from crfkit.models import disk, model_file
from crfkit.models.chain_model import ChainModel
from crfkit.models.gold import checked_lists
from crfkit.models.lesson import Lesson
from crfkit.models.model_file import ModelFile
from crfkit.optimizers import Snapshot, Watch

TYPE = "checkpoint"
STOPPING = ("max_iterations", "tolerance", "change", "period")  # of an optimizer: they change no step
Settings = dict[str, str]


def settings_of(params: Mapping[str, Any]) -> Settings:
    """The parameters of a CRF that decide every step of its training, as text."""
    optimizer = params["optimizer"]
    if dataclasses.is_dataclass(optimizer) and not isinstance(optimizer, type):
        free = () if getattr(optimizer, "scheduled", False) else STOPPING
        method = {k: v for k, v in dataclasses.asdict(optimizer).items() if k not in free}
        optimizer = f"{type(optimizer).__name__} {method}"
    features = params["features"]
    text = {"features": features if isinstance(features, str) else type(features).__name__}
    names = ("structure", "l1", "l2", "all_pairs", "all_arcs", "min_count", "facets")
    return {"optimizer": str(optimizer), **text, **{name: repr(params[name]) for name in names}}


def data_of(lesson: Lesson, sample_weight: Any, dev: Any, optimizer: str) -> Settings:
    """A fingerprint of the training data and of what they call for."""
    model = lesson.model
    digest = hashlib.blake2b(digest_size=16)
    names = (
        model.encoder.vocabulary.to_bytes(),
        model.encoder.arc_vocabulary.to_bytes(),
        model.labels.classes,
    )
    layout = dataclasses.replace(model.feature_map)
    dataset = dataclasses.replace(lesson.dataset, inputs=None)
    patterns = None if model.patterns is None else (model.patterns.names, lesson.starts)
    for thing in (dataset, lesson.annotation, sample_weight, names, layout, patterns):
        _add(digest, thing)
    return {
        "data": digest.hexdigest(),
        "dev": "none" if dev is None else f"{len(dev[1])} sequences",
        "dev data": "none" if dev is None else _held_out(model, *dev),
        "chosen optimizer": optimizer,
    }


def _held_out(model: ChainModel, X: Any, y: Any, allowed: Any = None) -> str:
    """A fingerprint of a dev set as the model sees it, with its labels."""
    digest = hashlib.blake2b(digest_size=16)
    dataset = model.encode(X, allowed)
    _add(digest, dataclasses.replace(dataset, inputs=None))
    _add(digest, checked_lists(y, dataset.sequence_ptr, "dev "))
    return digest.hexdigest()


def _add(digest: Any, thing: Any) -> None:
    """Arrays by their bytes, everything else by what it is made of."""
    if isinstance(thing, np.ndarray):
        digest.update(f"{thing.dtype.str}{thing.shape}".encode())
        digest.update(np.ascontiguousarray(thing).data)
    elif dataclasses.is_dataclass(thing) and not isinstance(thing, type):
        for field in dataclasses.fields(thing):
            if field.init:
                _add(digest, getattr(thing, field.name))
    elif isinstance(thing, Mapping):
        _add(digest, list(thing.items()))
    elif isinstance(thing, tuple | list):
        digest.update(f"{type(thing).__name__} of {len(thing)}".encode())
        for part in thing:
            _add(digest, part)
    elif isinstance(thing, set | frozenset):  # in no order of their own
        _add(digest, sorted(map(repr, thing)))
    else:
        digest.update(repr(thing).encode("utf-8", "surrogatepass"))


def open_for(path: str | os.PathLike[str], settings: Settings, *, resume: bool) -> ModelFile | None:
    """The checkpoint to go on from, if there is one and that is wanted; refused if it is of other settings."""
    disk.check_writable(path)
    if not resume or not Path(path).exists():
        return None
    file = model_file.decode(disk.read_bytes(path), str(path))
    if file.type != TYPE:
        raise InputError(f"{path}: its type is {file.type[:40]!r}, expected {TYPE!r}")
    _compare(path, file, settings)
    return file


def _compare(path: str | os.PathLike[str], file: ModelFile, expected: Settings) -> None:
    known = file.settings.get("of")
    for name, value in expected.items():
        before = known.get(name) if isinstance(known, dict) else None
        if before == value:
            continue
        if name in ("data", "dev data"):
            what = "training data" if name == "data" else "dev data"
            raise InputError(f"{path}: the checkpoint is of other {what}, expected those it was written for")
        raise InputError(f"{path}: the checkpoint was written with {name} {before}, but it is {value} now")


def watched(
    watch: Watch,
    path: str | os.PathLike[str],
    settings: Settings,
    data: Settings,
    saved: ModelFile | None,
    every: int,
) -> Watch:
    """A watch that writes the checkpoint, and goes on from the one that was saved; that of other data is refused."""
    resume = None
    if saved is not None:
        _compare(path, saved, data)
        resume = _snapshot(path, saved)

    def save(snapshot: Snapshot) -> None:
        content = {"of": {**settings, **data}, "numbers": snapshot.numbers}
        with disk.replacing(path) as stream:
            stream.write(model_file.encode(ModelFile(TYPE, content, snapshot.arrays)))

    return dataclasses.replace(watch, save=save, every=every, resume=resume)


def _snapshot(path: str | os.PathLike[str], saved: ModelFile) -> Snapshot:
    """What a checkpoint holds, if all of it is there."""
    numbers = saved.settings.get("numbers")
    arrays = {name: np.ascontiguousarray(array) for name, array in saved.arrays.items()}
    shapes = {arrays[name].shape if name in arrays else None for name in ("start", "x")}
    if (
        not isinstance(numbers, dict)
        or len(shapes) != 1
        or None in shapes
        or not len(arrays.get("history", ()))
    ):
        raise InputError(f"{path}: the checkpoint is damaged: a part of it is missing")
    return Snapshot(numbers, arrays)
