"""Code that imports another toolkit by its name, with the interfaces of `crfkit.compat` in its place."""

from __future__ import annotations

import importlib
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from crfkit import compat
from crfkit.compat import pycrfsuite as ours
from crfkit.compat.__main__ import main
from crfkit.compat.installation import STAND_INS
from crfkit.errors import ArgumentError


@contextmanager
def stand_ins(names: Iterable[str] = tuple(STAND_INS)) -> Iterator[None]:
    """`install` for a while."""

    def is_other(module: str) -> bool:
        return module.partition(".")[0] in STAND_INS

    finders, kept = list(sys.meta_path), {name: sys.modules[name] for name in sys.modules if is_other(name)}
    try:
        compat.install(names)
        yield
    finally:
        sys.meta_path[:] = finders
        for name in [name for name in sys.modules if is_other(name)]:
            del sys.modules[name]
        sys.modules.update(kept)


def test_install_stands_in_for_the_originals() -> None:
    with stand_ins():
        import pycrfsuite
        import sklearn_crfsuite
        from sklearn_crfsuite import metrics

        assert pycrfsuite is ours
        assert pycrfsuite.__name__ == "crfkit.compat.pycrfsuite"
        assert pycrfsuite.__spec__ is not None
        assert pycrfsuite.__spec__.name == "crfkit.compat.pycrfsuite"
        assert pycrfsuite.Trainer is ours.Trainer
        assert importlib.import_module("pycrfsuite._logparser") is ours._logparser
        assert sklearn_crfsuite.CRF is importlib.import_module("crfkit.compat.sklearn_crfsuite").CRF
        assert metrics.flat_accuracy_score([["a"]], [["a"]]) == 1.0
        assert metrics is importlib.import_module("crfkit.compat.sklearn_crfsuite.metrics")


@pytest.mark.parametrize(
    "name",
    [
        "sklearn_crfsuite.estimator",
        "sklearn_crfsuite.scorers",
        "sklearn_crfsuite.compat",
        "sklearn_crfsuite._fileresource",
        "sklearn_crfsuite.trainer",
        "sklearn_crfsuite.utils",
        "pycrfsuite._pycrfsuite",
        "pycrfsuite._dumpparser",
    ],
)
def test_a_module_has_two_names_and_is_there_once(name: str) -> None:
    with stand_ins():
        assert importlib.import_module(name) is importlib.import_module(f"crfkit.compat.{name}")


def test_some_packages_may_be_chosen() -> None:
    theirs = pytest.importorskip("pycrfsuite", reason="python-crfsuite is not installed")
    with stand_ins(["sklearn_crfsuite"]):
        import pycrfsuite
        import sklearn_crfsuite

        assert pycrfsuite is theirs
        assert sklearn_crfsuite.__name__ == "crfkit.compat.sklearn_crfsuite"
    with stand_ins("pycrfsuite"):
        compat.install()
        compat.install()
        assert len([finder for finder in sys.meta_path if type(finder).__name__ == "StandIn"]) == len(
            STAND_INS
        )
    with pytest.raises(ArgumentError, match="expected names among"):
        compat.install(["wapiti"])


def test_a_module_that_does_not_exist_is_not_found() -> None:
    with stand_ins(), pytest.raises(ModuleNotFoundError, match=r"pycrfsuite\.nothing"):
        importlib.import_module("pycrfsuite.nothing")


PROGRAM = """
import sys

import beside
import pycrfsuite

if __name__ == "__main__":
    print(pycrfsuite.__name__, sys.argv[1:], beside.__name__, __file__ == sys.argv[0])
    sys.exit(3)
"""


def test_a_program_is_run_behind_the_interfaces(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    for folder in (tmp_path, tmp_path / "sub"):
        (folder / "program.py").write_text(PROGRAM)
        (folder / "beside.py").touch()
    for arguments in (["sub/program.py"], ["-m", "program"]):
        command = [sys.executable, "-m", "crfkit.compat", *arguments, "--help", "a b"]
        result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
        printed = "crfkit.compat.pycrfsuite ['--help', 'a b'] beside True\n"
        assert (result.returncode, result.stdout, result.stderr) == (3, printed, "")


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ([], "expected a program, or -m and a module, got ''"),
        (["-m"], "expected a program, or -m and a module, got '-m'"),
        (["--fast", "x.py"], "got '--fast x.py'"),
        (["no/such/program.py"], "no/such/program.py: no such file"),
    ],
)
def test_what_cannot_be_run_is_refused(arguments: list[str], complaint: str, capsys: Any) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    printed = capsys.readouterr()
    assert (ended.value.code, printed.out) == (2, "")
    assert complaint in printed.err


def test_help_tells_what_it_is_for(capsys: Any) -> None:
    main(["--help"])
    out = capsys.readouterr().out
    assert "python -m crfkit.compat PROGRAM [ARGS...]" in out
    assert "pycrfsuite, sklearn_crfsuite" in out
