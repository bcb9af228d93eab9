"""`python -m crfkit.compat PROGRAM [ARGS…]`: a program that imports another toolkit, with crfkit in its place."""

import os
import runpy
import sys
from typing import NoReturn

from crfkit.compat.installation import STAND_INS, install

USAGE = f"""\
Usage: python -m crfkit.compat PROGRAM [ARGS...]
       python -m crfkit.compat -m MODULE [ARGS...]

Run a Python program as `python PROGRAM` or `python -m MODULE` would, but let the imports
of {", ".join(STAND_INS)} give the interfaces of crfkit.compat.
"""


def main(arguments: list[str]) -> None:
    """Install the interfaces, then run the program that the arguments name."""
    if arguments[:1] in (["-h"], ["--help"]):
        print(USAGE, end="")
        return
    as_module = arguments[:1] == ["-m"]
    program, *rest = arguments[as_module:] or [""]
    if not program or program.startswith("-"):
        _refuse(f"{USAGE}\nError: expected a program, or -m and a module, got {' '.join(arguments)!r}.")
    if not as_module and not os.path.exists(program):
        _refuse(f"Error: {program}: no such file.")
    install()
    sys.argv = [program, *rest]
    if as_module:
        runpy.run_module(program, run_name="__main__", alter_sys=True)
    else:
        if not sys.flags.safe_path:
            sys.path[0] = os.path.dirname(os.path.realpath(program))  # where Python looks first for a script
        runpy.run_path(program, run_name="__main__")


def _refuse(message: str) -> NoReturn:
    print(message, file=sys.stderr)
    sys.exit(2)


if __name__ == "__main__":
    main(sys.argv[1:])
