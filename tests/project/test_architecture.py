"""docs/architecture.md stays true: every file and folder that it names exists, and its table of the core is complete."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[2]
PAGE = (PROJECT / "docs" / "architecture.md").read_text(encoding="utf-8")
# Where a path on the page may begin.
ROOTS = [PROJECT / root for root in ("", "core", "src/crfkit", "src/crfkit/nn")]
PLACEHOLDER = re.compile(r"NAME|FOLDER|…")  # in the lists of files that a new piece touches
IS_PATH = re.compile(r"[\w.-]*/[\w./-]*|[\w-]+\.(py|pyi|hpp|cpp|md)")
ROW = re.compile(
    r"^\| `(\w+)/` (`[^|]+) \|", re.MULTILINE
)  # of the table of the core: a folder and its files


def paths_of(page: str) -> list[str]:
    """What stands in backticks and looks like a file or a folder."""
    spans = re.findall(r"`([^`\n]+)`", page)
    return sorted({span for span in spans if IS_PATH.fullmatch(span) and not PLACEHOLDER.search(span)})


def exists(path: str) -> bool:
    """Whether there is such a file or folder; `training/part_loss` is a header and what implements it."""
    found = [root / path for root in ROOTS]
    return any(file.exists() or file.with_name(f"{file.name}.hpp").exists() for file in found)


def core_files(page: str) -> dict[str, set[str]]:
    """The files of each folder of the core, as the page lists them."""
    listed: dict[str, set[str]] = {}
    for folder, files in ROW.findall(page):
        listed.setdefault(folder, set()).update(re.findall(r"`(\w+)`", files))
    return listed


def test_every_path_of_the_page_exists() -> None:
    assert len(paths_of(PAGE)) > 80
    assert [path for path in paths_of(PAGE) if not exists(path)] == []


@pytest.mark.parametrize(
    "folder", sorted(path.name for path in (PROJECT / "core").iterdir() if path.is_dir())
)
def test_the_table_of_the_core_is_complete(folder: str) -> None:
    if folder == "bindings":  # described as a whole
        return
    files = {file.stem for file in (PROJECT / "core" / folder).glob("*.[ch]pp")}
    assert core_files(PAGE)[folder] == files


def test_no_list_of_files_is_longer_than_six() -> None:
    """The lists of "Adding a piece": numbers at the begin of a line, or within one before a file."""
    lists = PAGE.split("## Adding a piece")[1]
    numbers = [int(number) for number in re.findall(r"(?:^|[ (])(\d+)\. [`a-z]", lists, re.MULTILINE)]
    assert len(numbers) > 60
    assert max(numbers) == 6


@pytest.mark.parametrize("gone", ["core/gone.hpp", "models/gone.py", "gone/", "gone.py", "training/gone"])
def test_a_path_that_is_gone_is_found(gone: str) -> None:
    (found,) = paths_of(f"`{gone}` and `cli/NAME.py`, `features/…` and `CRF.fit`")
    assert found == gone
    assert not exists(gone)
