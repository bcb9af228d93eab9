"""python-crfsuite's interface: `import crfkit.compat.pycrfsuite as pycrfsuite`, and nothing else changes.

Model files are CRFsuite's own. What is different: training uses all processors, and bad input raises an
error, never crashes.
"""

from typing import TYPE_CHECKING

from crfkit.compat.pycrfsuite import _dumpparser, _pycrfsuite
from crfkit.compat.pycrfsuite._pycrfsuite import CRFSUITE_VERSION, ItemSequence, Tagger
from crfkit.lazy import lazy_names

if TYPE_CHECKING:
    from crfkit.compat.pycrfsuite import _logparser
    from crfkit.compat.pycrfsuite._pycrfsuite import BaseTrainer, CRFSuiteError, Trainer

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

if not TYPE_CHECKING:  # what only labels needs no trainer
    __getattr__ = lazy_names(
        globals(),
        {
            "crfkit.compat.pycrfsuite._logparser": ["_logparser"],
            "crfkit.compat.pycrfsuite.trainer": ["BaseTrainer", "CRFSuiteError", "Trainer"],
        },
    )

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
