"""The include map of core/, enforced: one direction among its folders, Python's headers in bindings/ alone."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

CORE = Path(__file__).parents[2] / "core"

# folder → the folders that it may include
MAP: dict[str, set[str]] = {
    "base": set(),
    "kernels": {"base"},
    "text": {"base"},
    "paths": {"base"},
    "hyperpaths": {"base", "kernels"},
    "data": {"base", "kernels", "text"},
    "training": {"base", "kernels", "data", "paths"},  # interfaces, which the structures implement
    "chain": {"base", "kernels", "data", "paths", "training"},
    "lattice": {"base", "kernels", "data", "paths", "training"},
    "patterns": {
        "base",
        "kernels",
        "data",
        "paths",
        "training",
        "lattice",
    },  # feature functions beside patterns
    "output_graphs": {"base", "data", "paths", "training", "lattice"},  # feature functions in their graphs
    "segments": {"base", "kernels", "data", "paths", "training", "lattice"},  # feature functions of labels
    "graphs": {"base", "kernels", "data", "training"},
    "trees": {"base", "kernels", "hyperpaths", "training"},
    "formats": {"base", "text", "data"},
}
BELOW = {"base", "kernels", "data", "paths"}
STRUCTURES = {"chain", "graphs", "lattice", "output_graphs", "patterns", "segments", "trees"}
MAP["losses"] = BELOW | STRUCTURES | {"training"}  # which backend a loss takes
MAP["answers"] = BELOW | STRUCTURES | {"training", "text"}  # what a trained model is asked, and tags
MAP["bindings"] = set(MAP)
PYTHON = re.compile(r"Python\.h|nanobind/|numpy/")


def includes(file: Path) -> Iterator[tuple[int, str]]:
    """(line, header) of everything that a file includes."""
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
        if found := re.match(r'\s*#\s*include\s*[<"](.+?)[>"]', line):
            yield number, found[1]


def violations(core: Path) -> list[str]:
    """Every include under `core` that the map does not allow, as `file:line: what`."""
    found = []
    for file in sorted(core.glob("*/*.[ch]pp")):
        folder, where = file.parent.name, file.relative_to(core)
        if folder not in MAP:
            found.append(f"{where}: {folder} is not on the map")
            continue
        for line, header in includes(file):
            if PYTHON.match(header) and folder != "bindings":
                found.append(f"{where}:{line}: {folder} includes {header}")
            elif (core / header).exists() and (target := header.split("/")[0]) not in MAP[folder] | {folder}:
                found.append(f"{where}:{line}: {folder} includes {target}")
    return found


def test_the_core_keeps_to_the_map() -> None:
    assert violations(CORE) == []


def test_the_map_lists_the_folders_of_the_core_each_above_what_it_includes() -> None:
    assert {path.name for path in CORE.iterdir() if path.is_dir()} == set(MAP)
    above = list(MAP)
    for folder, allowed in MAP.items():
        assert allowed <= set(above[: above.index(folder)]), folder


@pytest.mark.parametrize(
    ("file", "source", "complaint"),
    [
        ("base/a.hpp", '#include "trees/sums.hpp"', "base/a.hpp:1: base includes trees"),
        (
            "lattice/a.cpp",
            '#pragma once\n#include "trees/sums.hpp"',
            "lattice/a.cpp:2: lattice includes trees",
        ),
        ("trees/a.cpp", "#include <Python.h>", "trees/a.cpp:1: trees includes Python.h"),
        ("trees/a.cpp", "#include <nanobind/ndarray.h>", "trees/a.cpp:1: trees includes nanobind/ndarray.h"),
        ("other/a.cpp", "", "other/a.cpp: other is not on the map"),
    ],
)
def test_a_planted_violation_is_found(tmp_path: Path, file: str, source: str, complaint: str) -> None:
    for name, text in (("trees/sums.hpp", "#include <vector>"), (file, source)):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    assert violations(tmp_path) == [complaint]
