"""The import map of docs/architecture.md, enforced: packages import each other in one direction only, by their public names.

Imports are read from the source, so a forbidden one is found even inside a function.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import crfkit

PACKAGE = Path(crfkit.__file__).parent

# package → the packages it may import, as in docs/architecture.md: change that first, then this, then the code.
MAP: dict[str, set[str]] = {
    "lazy": set(),
    "arrays": set(),
    "errors": set(),
    "counts": {"errors"},
    "markup": set(),
    "data": {"structures", "errors", "lazy", "arrays"},
    "structures": {"errors", "counts", "arrays"},
    "optimizers": {"errors", "arrays", "markup"},
    "evaluation": {"data", "structures", "errors"},
    "features": {"data", "structures", "errors", "counts", "lazy", "arrays"},
    "inference": {"structures", "errors", "arrays"},
    "objective": set(),
    "models": {
        "data",
        "structures",
        "optimizers",
        "evaluation",
        "features",
        "inference",
        "objective",
        "errors",
        "counts",
        "lazy",
        "arrays",
        "markup",
    },
    "pipeline": {
        "data",
        "structures",
        "optimizers",
        "evaluation",
        "features",
        "inference",
        "objective",
        "models",
        "errors",
        "counts",
        "lazy",
        "arrays",
        "markup",
    },
    "nn": {"structures", "inference", "errors", "arrays"},
}
TOP = {
    "cli",
    "compat",
    "report",
    "serve",
    "distributed",
    "integrations",
}  # may import every package of the map
MAP.update({part: set(MAP) for part in TOP})
MAP["serve"] |= {"report"}  # whose texts and pictures a page shows
MAP["integrations"] |= {"report"}
MAP["cli"] |= {"compat", "distributed", "report", "serve"}  # for conversion, clusters, reports and servers

NEAR_THE_CORE = {"features", "inference", "objective", "optimizers", "compat"}  # may call the native module
HEAVY = {
    "torch",
    "sklearn",
    "scipy",
    "rich",
    "click",
    "pandas",
    "narwhals",
    "jinja2",
    "matplotlib",
    "starlette",
    "spacy",
    "polars",
    "pyarrow",
    "transformers",
    "huggingface_hub",
    "IPython",
    "dask",
    "distributed",
}  # never loaded by `import crfkit`


def imported(file: Path, package: Path) -> Iterator[tuple[int, str, str | None]]:
    """(line, module, name) for everything of crfkit that a file imports; name is None for `import module`."""
    inside = ["crfkit", *file.relative_to(package).parts[:-1]]
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name, None
        elif isinstance(node, ast.ImportFrom):
            above = inside[: len(inside) - node.level + 1] if node.level else []
            module = ".".join([*above, *filter(None, [node.module])])
            for alias in node.names:
                yield node.lineno, module, alias.name
        elif isinstance(node, ast.Call) and _name(node.func) in {"import_module", "__import__"}:
            for argument in node.args[:1]:
                if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                    yield node.lineno, argument.value, None


def violations(package: Path) -> list[str]:
    """Every import under `package` that the map does not allow, as `file:line: what`."""
    found = []
    for file in sorted(package.rglob("*.py")):
        where = file.relative_to(package)
        part = where.parts[0].removesuffix(".py")
        if part in {"__init__", "__main__"}:
            continue  # the top-level package re-exports public names, lazily
        if part not in MAP:
            found.append(f"{where}: package {part} is not on the map")
            continue
        for line, module, name in imported(file, package):
            complaint = _complaint(package, part, module, name)
            if complaint:
                found.append(f"{where}:{line}: {complaint}")
    return found


def _complaint(package: Path, part: str, module: str, name: str | None) -> str | None:
    """Why this package may not import this, or None."""
    head, *path = module.split(".")
    if head != "crfkit":
        return None
    if not path:  # `import crfkit`, `from crfkit import name`
        if name is None or not (name in MAP or name == "_core"):
            return None if name == "__version__" else f"{part} imports the top-level package for {name}"
        path, name = [name], None
    target = path[0]
    if target == part:
        return None
    if target == "_core":
        return None if part in NEAR_THE_CORE else f"{part} calls the native core"
    if target not in MAP[part]:
        return f"{part} imports {target}"
    private = len(path) > 1 or (name is not None and name in _files(package / target))
    return f"{part} imports a private module of {target}" if private else None


def _files(part: Path) -> set[str]:
    """The modules inside a package that its `__init__` does not list under their own name."""
    init = part / "__init__.py"
    if not init.exists():
        return set()
    offered = {
        element.value
        for node in ast.parse(init.read_text(encoding="utf-8")).body
        if isinstance(node, ast.Assign) and any(_name(target) == "__all__" for target in node.targets)
        for element in ast.walk(node.value)
        if isinstance(element, ast.Constant)
    }
    return {file.stem for file in part.glob("*.py")} - offered


def _name(node: ast.expr) -> str | None:
    """The last word of a name: `importlib.import_module` → import_module."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else None


def test_the_package_keeps_to_the_map() -> None:
    assert violations(PACKAGE) == []


def test_the_map_has_no_circles() -> None:
    free, left = set[str](), {part: needs - TOP for part, needs in MAP.items() if part not in TOP}
    while left:
        ready = {part for part, needs in left.items() if needs <= free}
        assert ready, f"these packages import each other: {sorted(left)}"
        free |= ready
        left = {part: needs for part, needs in left.items() if part not in ready}


@pytest.mark.parametrize(
    ("file", "source", "complaint"),
    [
        ("structures/a.py", "from crfkit.data import read_columns", "structures imports data"),
        ("structures/a.py", "from crfkit import inference", "structures imports inference"),
        ("structures/a.py", "import crfkit._core", "structures calls the native core"),
        ("data/a.py", "from crfkit import _core", "data calls the native core"),
        ("data/a.py", "from .. import models", "data imports models"),
        ("data/a.py", "from ..features import Dataset", "data imports features"),
        ("data/a.py", "def f():\n    from crfkit.models import CRF", "data imports models"),
        ("data/a.py", "import importlib\nimportlib.import_module('crfkit.models')", "data imports models"),
        ("inference.py", "from crfkit.features import Dataset", "inference imports features"),
        (
            "inference.py",
            "from crfkit.structures.chain import Chain",
            "a private module of structures",
        ),
        ("inference.py", "from crfkit.structures import chain", "a private module of structures"),
        ("inference.py", "import crfkit.structures.chain", "a private module of structures"),
        ("features/a.py", "from crfkit import CRF", "features imports the top-level package for CRF"),
        ("features/a.py", "import crfkit", "features imports the top-level package"),
        ("utils/a.py", "", "package utils is not on the map"),
        ("optimizers/a.py", "from crfkit.objective import Objective", "optimizers imports objective"),
        ("models/a.py", "from crfkit.cli import main", "models imports cli"),
    ],
)
def test_a_planted_violation_is_found(tmp_path: Path, file: str, source: str, complaint: str) -> None:
    _plant(tmp_path, file, source)
    [found] = violations(tmp_path)
    assert complaint in found
    assert found.startswith(file)


@pytest.mark.parametrize(
    ("file", "source"),
    [
        ("inference.py", "from crfkit.structures import Chain, AllowedLabels\nfrom crfkit import _core"),
        ("inference.py", "from crfkit.structures import tree"),
        (
            "structures/a.py",
            "from crfkit.structures.chain import Chain\nfrom .chain import Chain",
        ),
        ("models/a.py", "import crfkit.inference\nfrom crfkit import features, inference, __version__"),
        ("cli/a.py", "from crfkit.models import load\nfrom crfkit.data import read_columns"),
        ("__init__.py", "from crfkit.models import CRF"),
    ],
)
def test_what_the_map_allows_is_not_complained_about(tmp_path: Path, file: str, source: str) -> None:
    _plant(tmp_path, file, source)
    assert violations(tmp_path) == []


def _plant(package: Path, file: str, source: str) -> None:
    """A small package with a package `structures`, and one more file."""
    part = package / "structures"
    part.mkdir()
    (part / "__init__.py").write_text(
        "from crfkit.structures.chain import Chain\n__all__ = ['Chain', 'AllowedLabels', 'tree']\n"
    )
    (part / "chain.py").write_text("")
    (part / "tree.py").write_text("")
    (package / file).parent.mkdir(exist_ok=True)
    (package / file).write_text(source)


def test_importing_crfkit_loads_nothing_heavy() -> None:
    program = f"import sys, crfkit; print(*sorted({HEAVY!r} & set(sys.modules)))"
    finished = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert finished.stdout.split() == []
