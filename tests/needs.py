"""What a test cannot do without, and what it says where it is absent."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

needs_rival = pytest.mark.skipif(
    find_spec("pycrfsuite") is None, reason="python-crfsuite is not installed (pip install 'crfkit[bench]')"
)
