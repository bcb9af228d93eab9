"""What `make` shows while the package is installed: how far compiling is, and the compiler's words where it fails."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest
from tools.install import counter, failure, install

NINJA = "print('  Building'); [print(f'  [{n}/20] Building CXX object core/a.o', flush=True) for n in range(1, 21)]"


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("  [12/87] /usr/bin/c++ -O2 -c core/a.cpp", (12, 87)),
        ("[ 40%] Building CXX object core/a.o", (40, 100)),
        ("[100%] Built target _core", (100, 100)),
        ("Building wheels for collected packages", None),
        ("  a[1/2] = 3", None),
        ("", None),
    ],
)
def test_counters_of_ninja_and_make(line: str, found: tuple[int, int] | None) -> None:
    assert counter(line) == found


def test_progress_is_a_line_for_each_tenth_where_nobody_watches(tmp_path: Path) -> None:
    out, log = io.StringIO(), tmp_path / "log.txt"
    assert install((sys.executable, "-c", NINJA), log, out) == 0
    lines = out.getvalue().splitlines()
    assert [line.partition(",")[0].strip() for line in lines] == [
        f"compiled {n} of 20" for n in range(2, 21, 2)
    ]
    assert len(log.read_text().splitlines()) == 21


def test_progress_is_one_line_on_a_terminal(tmp_path: Path) -> None:
    out = Terminal()
    assert install((sys.executable, "-c", NINJA), tmp_path / "log.txt", out) == 0
    assert out.getvalue().count("\n") == 1
    assert "\r  compiled 20 of 20, " in out.getvalue()


def test_a_failure_shows_what_the_compiler_said(tmp_path: Path) -> None:
    out, log = io.StringIO(), tmp_path / "log.txt"
    program = (
        "import sys; [print('[%d/200] compiled' % n) for n in range(1, 200)]; print('FAILED: core/a.o'); "
        "print('core/a.cpp:3:1: error: expected }'); [print('note', n) for n in range(500)]; sys.exit(3)"
    )
    assert install((sys.executable, "-c", program), log, out) == 3
    said = out.getvalue()
    assert "core/a.cpp:3:1: error: expected }" in said
    assert "note 10" in said
    assert "note 400" not in said
    assert "note 499" in said
    assert said.endswith(f"The installation failed; the whole log is in {log}.\n")


def test_a_failure_without_a_word_of_it_shows_the_end_of_the_log() -> None:
    said = failure([f"line {n}" for n in range(100)], Path("log.txt"))
    assert said.splitlines()[0] == "line 90"
    assert "line 99" in said
    assert (
        failure([], Path("log.txt")).splitlines()[-1]
        == "The installation failed; the whole log is in log.txt."
    )
