"""All public names in one module, where code that reaches for `pycrfsuite._pycrfsuite` finds them."""

from typing import TYPE_CHECKING

from crfkit.compat.pycrfsuite.items import ItemSequence
from crfkit.compat.pycrfsuite.tagger import Tagger
from crfkit.lazy import lazy_names

if TYPE_CHECKING:
    from crfkit.compat.pycrfsuite.trainer import BaseTrainer, CRFSuiteError, Trainer

CRFSUITE_VERSION = "0.12.2"
"""The version of CRFsuite whose model files and training log these are."""

__all__ = ["CRFSUITE_VERSION", "BaseTrainer", "CRFSuiteError", "ItemSequence", "Tagger", "Trainer"]

if not TYPE_CHECKING:  # what only labels needs no trainer
    _LAZY = {"crfkit.compat.pycrfsuite.trainer": ["BaseTrainer", "CRFSuiteError", "Trainer"]}
    __getattr__ = lazy_names(globals(), _LAZY)
