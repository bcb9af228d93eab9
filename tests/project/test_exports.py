"""The native module exports no symbols of the C++ library, which those of another copy could be mixed up with."""

import shutil
import subprocess
import sys

import pytest

from crfkit import _core


@pytest.mark.skipif(sys.platform != "linux" or shutil.which("nm") is None, reason="reads symbols with nm")
def test_module_exports_its_init_function_alone() -> None:
    listing = subprocess.run(
        ["nm", "--dynamic", "--defined-only", "--format=posix", _core.__file__],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    assert [line.split()[0] for line in listing.splitlines()] == ["PyInit__core"]
