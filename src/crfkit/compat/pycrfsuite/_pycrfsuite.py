"""All public names in one module, where code that reaches for `pycrfsuite._pycrfsuite` finds them."""

from crfkit.compat.pycrfsuite.items import ItemSequence
from crfkit.compat.pycrfsuite.tagger import Tagger
from crfkit.compat.pycrfsuite.trainer import BaseTrainer, CRFSuiteError, Trainer

CRFSUITE_VERSION = "0.12.2"
"""The version of CRFsuite whose model files and training log these are."""

__all__ = ["CRFSUITE_VERSION", "BaseTrainer", "CRFSuiteError", "ItemSequence", "Tagger", "Trainer"]
