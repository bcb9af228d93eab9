"""The public names of `crfkit`, and that importing it loads nothing before it is asked for."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import subprocess
import sys
import types

import pytest

import crfkit


def test_every_public_name_is_there() -> None:
    assert dir(crfkit) == sorted(crfkit.__all__)
    for name in crfkit.__all__:
        assert getattr(crfkit, name) is not None
    assert isinstance(crfkit.inference, types.ModuleType)
    assert crfkit.CRF.__module__ == "crfkit.models.crf"
    modules = {name for name in crfkit.__all__ if isinstance(getattr(crfkit, name), types.ModuleType)}
    assert modules <= set(crfkit._NAMES)  # each loads itself; another package may have loaded it by now


PACKAGES = [f"crfkit.{name}" for _, name, is_package in pkgutil.iter_modules(crfkit.__path__) if is_package]


NEEDS = {
    "crfkit.nn": "torch",
    "crfkit.serve": "starlette",
    "crfkit.distributed": "distributed",
}  # what a package cannot be imported without


@pytest.mark.parametrize("package", ["crfkit", *PACKAGES])
def test_public_classes_and_functions_have_docstrings(package: str) -> None:
    if package in NEEDS:
        pytest.importorskip(NEEDS[package])
    module = importlib.import_module(package)
    for name in getattr(module, "__all__", ()):
        thing = getattr(module, name)
        documented = inspect.isclass(thing) or inspect.isroutine(thing)
        assert not documented or thing.__doc__, name


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'crfkit' has no attribute 'nosuch'"):
        crfkit.nosuch  # type: ignore[attr-defined]  # noqa: B018


def test_importing_the_package_loads_no_other_package() -> None:
    program = (
        "import sys, crfkit; print(*sorted(n for n in sys.modules if n.startswith(('crfkit.', 'numpy'))))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["crfkit.lazy"]  # which loads public names when they are used
