"""python-crfsuite's interface: `import crfkit.compat.pycrfsuite as pycrfsuite`, and nothing else changes.

Models are CRFsuite's own files, both ways. What is different: training uses all processors, and bad input is an error in
words, never a crash.
"""

from crfkit.compat.pycrfsuite import _dumpparser, _logparser, _pycrfsuite
from crfkit.compat.pycrfsuite._pycrfsuite import (
    CRFSUITE_VERSION,
    BaseTrainer,
    CRFSuiteError,
    ItemSequence,
    Tagger,
    Trainer,
)

__all__ = [
    "CRFSUITE_VERSION",
    "BaseTrainer",
    "CRFSuiteError",
    "ItemSequence",
    "Tagger",
    "Trainer",
    "_dumpparser",
    "_logparser",
    "_pycrfsuite",
]
