"""usaddress and probablepeople: their features, with python-crfsuite and the settings of parserator, which trains both.

They are imported where they are installed: beside crfkit, or in the folder that ``CRFKIT_RIVALS`` names
(``pip install --target FOLDER usaddress probablepeople``).
"""

from __future__ import annotations

import importlib
import os
import re
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

FOLDER_VARIABLE = "CRFKIT_RIVALS"
SETTINGS = {"c1": 0.1, "c2": 0.01, "feature.minfreq": 0}  # of parserator 0.6.9

NOT_LISTED = "-"

Words = Sequence[Sequence[str]]


def find_rival(package: str) -> ModuleType | None:
    """The installed package; None where there is none."""
    folder = os.environ.get(FOLDER_VARIABLE)
    if folder and folder not in sys.path:
        sys.path.append(folder)
    try:
        return importlib.import_module(package)
    except ImportError:
        return None


def list_columns(package: ModuleType, words: Sequence[str]) -> list[tuple[str, ...]]:
    """Rows of a word and of what the lists of the package say about it, which its own features read too.

    usaddress lists directions and kinds of roads; probablepeople how often a name is a first one, and one of women.
    """
    return [(word, *_look_up(package, re.sub(r"\W", "", word))) for word in words]


def _look_up(package: ModuleType, word: str) -> tuple[str, ...]:
    if hasattr(package, "ratios"):
        first, female = package.ratios.get(word.upper()), package.gender_names.get(word.lower())
        return tuple(NOT_LISTED if share is None else f"{share:.1f}" for share in (first, female))
    lists = {"direction": package.DIRECTIONS, "kind": package.STREET_NAMES}
    return tuple(name if word.lower() in found else NOT_LISTED for name, found in lists.items())


class Rival:
    """A model with the features of a package, trained on given strings; the interface of an estimator."""

    def __init__(self, package: ModuleType) -> None:
        self._package = package
        self._tagger: Any = None

    def fit(self, X: Words, y: Words) -> Rival:
        """Train with the settings of parserator."""
        import pycrfsuite

        trainer = pycrfsuite.Trainer(verbose=False, params=SETTINGS)
        for words, labels in zip(X, y, strict=True):
            trainer.append(self._package.tokens2features(list(words)), list(labels))
        self._tagger = pycrfsuite.Tagger()
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model"
            trainer.train(str(path))
            self._tagger.open(str(path))
        return self

    def predict(self, X: Words) -> list[list[str]]:
        """The labels of the words of each string."""
        return [self._tagger.tag(self._package.tokens2features(list(words))) for words in X]
