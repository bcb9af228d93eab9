"""Model files of CRFsuite, opened: a program that labels one sequence and ends imports no more than this.

So neither NumPy nor the packages that train models are imported here; what reads the whole file imports them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from crfkit import _core
from crfkit.data import MAX_LABELS, MAX_WEIGHT, check_labels
from crfkit.errors import FileFormatError
from crfkit.lazy import lazy_property

if TYPE_CHECKING:
    from crfkit.compat.crfsuite_file import CrfsuiteModel

_FEW_NAMES = 300  # looked up in the time that reading a small model takes
_FEATURES_PER_NAME = 6  # read with the whole model in the time in which one name is looked up in the file


class OpenedModel:
    """A model file whose attributes are read when they are needed: opening it costs little, however large it is.

    The first sequences are tagged with the part of the model that each of them needs. Once that has taken about as long
    as reading the whole model takes, it is read, and tagging is several times as fast.

    labels : [L]; empty after a training run without data
    source : what error messages call the file
    """

    def __init__(self, file: _core.CrfsuiteFile, source: str) -> None:
        self._file = file
        self.source = source
        self.labels = file.labels
        # Names that are looked up in the file before the whole model is read.
        self._budget = _FEW_NAMES + file.n_features // _FEATURES_PER_NAME
        if len(set(self.labels)) != len(self.labels):
            raise FileFormatError("its labels are not distinct")
        if self.labels:
            check_labels(len(self.labels), file.n_features)

    @classmethod
    def from_bytes(cls, data: bytes, source: str = "<bytes>") -> OpenedModel:
        """The model in the bytes of a file; InputError where its header, labels or transitions are damaged."""
        with errors_of(source):
            return cls(_core.CrfsuiteFile(data, MAX_LABELS, MAX_WEIGHT), source)

    @classmethod
    def open(cls, path: str | bytes | os.PathLike[str]) -> OpenedModel:
        """The same from a file; OSError where it cannot be read."""
        name = os.fsencode(path)
        with errors_of(os.fsdecode(name)):
            return cls(_core.CrfsuiteFile.open(name, MAX_LABELS, MAX_WEIGHT), os.fsdecode(name))

    @lazy_property
    def whole(self) -> CrfsuiteModel:
        """The whole model, with all that it holds checked."""
        from crfkit.compat.crfsuite_file import CrfsuiteModel

        with errors_of(self.source):
            return CrfsuiteModel(self.labels, *self._file.read(), self._file.head, self.source)

    def ask(self, positions: _core.NamedPositions) -> tuple[_core.ChainPotentials, _core.Design]:
        """The weights of a model, and a sequence to ask questions about."""
        if self._pays(positions):
            model = self.whole
            design = _core.design_of_names(model.feature_map.layout, model.vocabulary, positions)
            return model.potentials, design
        with errors_of(self.source):
            return self._file.ask(positions)

    def tag(self, positions: _core.NamedPositions) -> tuple[_core.ChainPotentials, _core.Design, list[str]]:
        """The same, and the best labels of the sequence."""
        if self._pays(positions):
            model = self.whole
            layout, potentials = model.feature_map.layout, model.potentials
            design, best = _core.tag_names(potentials, layout, model.vocabulary, positions, self.labels)
            return potentials, design, best
        with errors_of(self.source):
            return self._file.tag(positions, self.labels)

    def _pays(self, positions: _core.NamedPositions) -> bool:
        """Whether the whole model is read by now, or shall be."""
        if self._budget >= 0:
            self._budget -= positions.n_names
        return self._budget < 0


@contextmanager
def errors_of(source: str) -> Iterator[None]:
    """Errors inside mean that this file holds no model of CRFsuite."""
    try:
        yield
    except ValueError as error:
        raise FileFormatError(f"{source}: not a model of CRFsuite: {error}") from None
