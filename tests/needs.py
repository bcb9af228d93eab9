"""What a test cannot do without, and what it says where it is absent."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from typing import Any

import pytest

needs_rival = pytest.mark.skipif(
    find_spec("pycrfsuite") is None, reason="python-crfsuite is not installed (pip install '.[bench]')"
)


def pytorch_crf() -> Any:
    """pytorch-crf itself, even where `crfkit.compat.install()` was called before; skips where it is not installed."""
    if getattr(sys.modules.get("torchcrf"), "__name__", "torchcrf") != "torchcrf":
        del sys.modules["torchcrf"]
    return pytest.importorskip("torchcrf", reason="pytorch-crf is not installed (pip install pytorch-crf)")
