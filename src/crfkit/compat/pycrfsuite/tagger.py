"""python-crfsuite's Tagger."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterable
from os import PathLike, fsdecode
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from crfkit import _core
from crfkit.compat.crfsuite_file import MAGIC, CrfsuiteModel
from crfkit.compat.pycrfsuite._dumpparser import ParsedDump, dump_lines
from crfkit.compat.pycrfsuite.items import named

_SHORTEST = 48  # bytes of the header


class Tagger:
    """Labels item sequences with a model file of CRFsuite.

    A question about an instance (`tag`, `probability`, `marginal`) is about the one that `set`, or `tag`, was last given.
    The interpreter lock is released while a question is answered. Threads may share a Tagger as long as each of them only
    calls `tag` with a sequence; for other questions each needs one of its own.
    """

    def __init__(self) -> None:
        self._model: CrfsuiteModel | None = None
        self._design: _core.Design | None = None  # the instance
        self._marginals: npt.NDArray[np.float64] | None = None  # [T, L] of the instance, once asked for
        self._n_sites = 0

    def open(self, name: str | bytes | PathLike[str]) -> contextlib.closing[Tagger]:
        """Open a model file; ValueError where it is not one. A context manager that closes it again."""
        path = fsdecode(name)
        data = Path(path).read_bytes()
        if data[:4] != MAGIC:
            raise ValueError(f"Invalid model file {path!r}")
        if len(data) <= _SHORTEST:
            raise ValueError(f"Model file {path!r} doesn't have a complete header")
        return self._open(data, path)

    def open_inmemory(self, value: bytes) -> contextlib.closing[Tagger]:
        """Open a model from the bytes of its file."""
        if not isinstance(value, bytes):
            raise TypeError(
                f"Argument 'value' has incorrect type (expected bytes, got {type(value).__name__})"
            )
        if value[:4] != MAGIC:
            raise ValueError("Invalid model")
        if len(value) < _SHORTEST:
            raise ValueError("Invalid model: incomplete header")
        return self._open(value, "<bytes>")

    def _open(self, data: bytes, source: str) -> contextlib.closing[Tagger]:
        model = CrfsuiteModel.from_bytes(data, source)
        self.close()
        self._model = model
        return contextlib.closing(self)

    def close(self) -> None:
        """Forget the model."""
        self._model = self._design = self._marginals = None
        self._n_sites = 0

    def labels(self) -> list[str]:
        """The labels of the model."""
        return list(self._opened().labels)

    def set(self, xseq: Any) -> None:
        """Make a sequence of items the instance that questions are about."""
        model, sites = self._opened(), named(xseq)
        self._remember(_core.design_of_names(model.feature_map.layout, model.vocabulary, sites), len(sites))

    def tag(self, xseq: Any = None) -> list[str]:
        """The best labels of the instance, which is `xseq` where one is given."""
        model = self._opened()
        if xseq is not None:
            sites = named(xseq)
            design, best = model.tagger.tag_names(
                model.feature_map.layout, model.vocabulary, sites, model.labels
            )
            self._remember(design, len(sites))
            return best
        if self._design is None:
            return []
        return [model.labels[label] for label in model.tagger.best(self._design).tolist()]

    def _remember(self, design: _core.Design, n_sites: int) -> None:
        self._n_sites, self._marginals, self._design = n_sites, None, design

    def probability(self, yseq: Iterable[str]) -> float:
        """p(yseq | instance)."""
        model, labels = self._opened(), list(yseq)
        if len(labels) != self._n_sites:
            raise ValueError(
                f"The numbers of items and labels differ: |x| = {self._n_sites}, |y| = {len(labels)}"
            )
        if self._design is None or not labels:
            return 0.0
        ids = np.array([self._id(label) for label in labels], dtype=np.int32)
        score = model.tagger.log_partitions(self._design, ids) - model.tagger.log_partitions(self._design)
        return float(np.exp(np.minimum(score[0], 0.0)))

    def marginal(self, y: str, pos: int) -> float:
        """p(label at `pos` is y | instance)."""
        model = self._opened()
        if self._design is None or self._n_sites == 0:
            return 0.0
        label = self._id(y)
        if not 0 <= pos < self._n_sites:
            raise ValueError(f"The position, {pos} is out of range of {self._n_sites}")
        if self._marginals is None:
            self._marginals = model.tagger.marginals(self._design)
        return float(self._marginals[pos, label])

    def dump(self, filename: str | None = None) -> None:
        """Write the model as text, to a file or to standard output."""
        lines = dump_lines(self._opened_for_dump())
        if filename is None:
            sys.stdout.writelines(lines)
            return
        with Path(filename).open("w", encoding="utf-8", newline="\n") as stream:
            stream.writelines(lines)

    def info(self) -> ParsedDump:
        """Labels, attributes, transitions and state features of the model, with weights as `dump` writes them."""
        return ParsedDump(self._opened_for_dump())

    def _opened(self) -> CrfsuiteModel:
        if self._model is None:
            raise ValueError("The tagger is not opened")
        return self._model

    def _opened_for_dump(self) -> CrfsuiteModel:
        if self._model is None:
            raise RuntimeError("Tagger is closed")
        return self._model

    def _id(self, label: Any) -> int:
        name = label.decode() if isinstance(label, bytes) else label
        if not isinstance(name, str):
            raise TypeError(f"expected a string, {type(label).__name__} found")
        try:
            return self._opened().labels.index(name)
        except ValueError:
            raise RuntimeError(f"Failed to convert into label identifier: {name}") from None
