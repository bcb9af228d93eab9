"""The one-line switch for code that imports another toolkit by its name."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterable

from crfkit.data import InputError

STAND_INS = ("pycrfsuite", "sklearn_crfsuite")


def install(names: Iterable[str] = STAND_INS) -> None:
    """From now on `import pycrfsuite` and `import sklearn_crfsuite` give the modules of `crfkit.compat`.

    Modules that imported the originals before keep them: call it first. `names` are the modules to stand in for.
    """
    chosen = [names] if isinstance(names, str) else list(names)
    for name in chosen:
        if name not in STAND_INS:
            raise InputError(f"install got {name!r}, expected names among {', '.join(STAND_INS)}")
    for name in chosen:
        for known in [known for known in sys.modules if known == name or known.startswith(f"{name}.")]:
            del sys.modules[known]
        own = f"crfkit.compat.{name}"
        importlib.import_module(own)
        for known in [known for known in sys.modules if known == own or known.startswith(f"{own}.")]:
            sys.modules[name + known.removeprefix(own)] = sys.modules[known]
