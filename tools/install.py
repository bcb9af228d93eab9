"""`python tools/install.py LOG`: install the package in editable form and show how far compiling is.

pip keeps silent while the native core compiles, which takes minutes. It is run in its verbose form here: its output
goes to the file LOG, the counters of ninja (`[12/87]`) or make (`[ 12%]`) become a line of progress, and where the
installation fails, what the compiler said is printed.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from time import monotonic
from typing import IO

PIP = (sys.executable, "-m", "pip", "install", "--verbose", "--disable-pip-version-check", "--editable", ".")
# Lines of the log that are printed after a failure: from where trouble begins, and the last ones.
N_SHOWN, N_LAST = 60, 10

_NINJA = re.compile(r"^\s*\[(\d+)/(\d+)\]")
_MAKE = re.compile(r"^\s*\[ *(\d+)%\]")
_TROUBLE = re.compile(r"\berror\b|^\s*FAILED|No space left|command not found", re.IGNORECASE)


class Progress:
    """One line that changes on a terminal, a line for each tenth of the way elsewhere."""

    def __init__(self, out: IO[str]) -> None:
        self._out = out
        self._began = monotonic()
        self._tenths = 0
        self._open = False  # the line is not ended

    def show(self, done: int, total: int) -> None:
        """Show how many of the files are compiled."""
        text = f"  compiled {done} of {total}, {monotonic() - self._began:.0f} s"
        if self._out.isatty():
            self._out.write(f"\r{text} ")
            self._open = True
        elif total and 10 * done // total > self._tenths:
            self._tenths = 10 * done // total
            self._out.write(text + "\n")
        self._out.flush()

    def end(self) -> None:
        """End the line."""
        if self._open:
            self._out.write("\n")


def counter(line: str) -> tuple[int, int] | None:
    """How far a line of output says that compiling is: so many of so many."""
    if found := _NINJA.match(line):
        return int(found[1]), int(found[2])
    if found := _MAKE.match(line):
        return int(found[1]), 100
    return None


def install(command: tuple[str, ...], log: Path, out: IO[str]) -> int:
    """Run a command, keep its output in a file and show its progress; its exit status."""
    progress = Progress(out)
    with (
        log.open("w", encoding="utf-8") as kept,
        subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
            errors="replace",
        ) as process,
    ):
        assert process.stdout is not None
        for line in process.stdout:
            kept.write(line)
            if (found := counter(line)) is not None:
                progress.show(*found)
    progress.end()
    if process.returncode != 0:
        out.write(failure(log.read_text(encoding="utf-8").splitlines(), log))
    return process.returncode


def failure(lines: list[str], log: Path) -> str:
    """What is said where the installation failed: the log from the first line of trouble on, and its end."""
    first = next((n for n, line in enumerate(lines) if _TROUBLE.search(line)), len(lines))
    shown = lines[max(0, min(first - 2, len(lines) - N_LAST)) :]
    if len(shown) > N_SHOWN + N_LAST:
        shown = [*shown[:N_SHOWN], "…", *shown[-N_LAST:]]
    return "\n".join([*shown, "", f"The installation failed; the whole log is in {log}.", ""])


def main() -> None:
    """Install, with the path of the log as the one argument."""
    log = Path(sys.argv[1])
    print("Installing crfkit. Compiling takes about 2 minutes on two cores.", flush=True)
    sys.exit(install(PIP, log, sys.stdout))


if __name__ == "__main__":
    main()
