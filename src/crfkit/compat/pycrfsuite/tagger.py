"""python-crfsuite's Tagger."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterable
from os import PathLike
from typing import TYPE_CHECKING, Any

from crfkit import _core
from crfkit.compat.crfsuite_opening import OpenedModel
from crfkit.compat.pycrfsuite._dumpparser import ParsedDump, dump_lines
from crfkit.compat.pycrfsuite.items import read_items

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


class Tagger:
    """Labels item sequences with a model file of CRFsuite.

    A question about an instance (`tag`, `probability`, `marginal`) is about the one that `set`, or `tag`, was last given.
    The interpreter lock is released while a question is answered. Threads may share a Tagger as long as each of them only
    calls `tag` with a sequence; for other questions each needs one of its own.
    """

    def __init__(self) -> None:
        self._model: OpenedModel | None = None
        self._asked: tuple[_core.ChainPotentials, _core.Design] | None = None  # the instance, and who answers
        self._marginals: npt.NDArray[np.float64] | None = None  # [T, L] of the instance, once asked for
        self._n_positions = 0

    def open(self, name: str | bytes | PathLike[str]) -> contextlib.closing[Tagger]:
        """Open a model file; ValueError where it is not one. A context manager that closes it again."""
        return self._take(OpenedModel.open(name))

    def open_inmemory(self, value: bytes) -> contextlib.closing[Tagger]:
        """Open a model from the bytes of its file."""
        if not isinstance(value, bytes):
            raise TypeError(
                f"Argument 'value' has incorrect type (expected bytes, got {type(value).__name__})"
            )
        return self._take(OpenedModel.from_bytes(value))

    def _take(self, model: OpenedModel) -> contextlib.closing[Tagger]:
        self.close()
        self._model = model
        return contextlib.closing(self)

    def close(self) -> None:
        """Forget the model."""
        self._model = self._asked = self._marginals = None
        self._n_positions = 0

    def labels(self) -> list[str]:
        """The labels of the model."""
        return list(self._require_model().labels)

    def set(self, xseq: Any) -> None:
        """Make a sequence of items the instance that questions are about."""
        model, positions = self._require_model(), read_items(xseq)
        if self._answerable(model, len(positions)):
            self._remember(model.ask(positions), len(positions))

    def tag(self, xseq: Any = None) -> list[str]:
        """The best labels of the instance, which is `xseq` where one is given."""
        model = self._require_model()
        if xseq is not None:
            positions = read_items(xseq)
            if not self._answerable(model, len(positions)):
                return []
            potentials, design, best = model.tag(positions)
            self._remember((potentials, design), len(positions))
            return best
        if self._asked is None:
            return []
        potentials, design = self._asked
        return [model.labels[label] for label in potentials.score(design, 1).decode(1).tolist()]

    def _remember(self, asked: tuple[_core.ChainPotentials, _core.Design] | None, n_positions: int) -> None:
        self._n_positions, self._marginals, self._asked = n_positions, None, asked

    def _answerable(self, model: OpenedModel, n_positions: int) -> bool:
        """Whether there is anything to ask; ValueError for a sequence that no label can be given to."""
        if model.labels:
            return True
        if n_positions:
            raise ValueError("The model has no labels: it was trained without data")
        self._remember(None, 0)
        return False

    def probability(self, yseq: Iterable[str]) -> float:
        """p(yseq | instance)."""
        import numpy as np

        labels = list(yseq)
        self._require_model()
        if len(labels) != self._n_positions:
            raise ValueError(
                f"The numbers of items and labels differ: |x| = {self._n_positions}, |y| = {len(labels)}"
            )
        if self._asked is None or not labels:
            return 0.0
        potentials, design = self._asked
        ids = np.array([self._id(label) for label in labels], dtype=np.int32)
        scored = potentials.score(design, 1)
        score = scored.log_partitions(ids, None, None, 1) - scored.log_partitions(None, None, None, 1)
        return float(np.exp(np.minimum(score[0], 0.0)))

    def marginal(self, y: str, pos: int) -> float:
        """p(label at `pos` is y | instance)."""
        self._require_model()
        if self._asked is None or self._n_positions == 0:
            return 0.0
        potentials, design = self._asked
        label = self._id(y)
        if not 0 <= pos < self._n_positions:
            raise ValueError(f"The position, {pos} is out of range of {self._n_positions}")
        if self._marginals is None:
            self._marginals = potentials.score(design, 1).marginals(1)
        return float(self._marginals[pos, label])

    def dump(self, filename: str | None = None) -> None:
        """Write the model as text, to a file or to standard output."""
        lines = dump_lines(self._require_open().whole)
        if filename is None:
            sys.stdout.writelines(lines)
            return
        from pathlib import Path

        with Path(filename).open("w", encoding="utf-8", newline="\n") as stream:
            stream.writelines(lines)

    def info(self) -> ParsedDump:
        """Labels, attributes, transitions and state features of the model, with weights as `dump` writes them."""
        return ParsedDump(self._require_open().whole)

    def _require_model(self) -> OpenedModel:
        if self._model is None:
            raise ValueError("The tagger is not opened")
        return self._model

    def _require_open(self) -> OpenedModel:
        if self._model is None:
            raise RuntimeError("Tagger is closed")
        return self._model

    def _id(self, label: Any) -> int:
        name = label.decode() if isinstance(label, bytes) else label
        if not isinstance(name, str):
            raise TypeError(f"expected a string, {type(label).__name__} found")
        try:
            return self._require_model().labels.index(name)
        except ValueError:
            raise RuntimeError(f"Failed to convert into label identifier: {name}") from None
