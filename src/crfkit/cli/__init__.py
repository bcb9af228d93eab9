"""The command line: one file per command, each a thin wrapper over a plain function.

Exit status: 0 when all went well, 2 for bad input (one sentence on the error stream), 130 after Ctrl-C.
"""

from __future__ import annotations

import errno
import importlib
import os
import sys
from contextlib import suppress
from typing import Any

import click

__all__ = ["main"]

# command → the file beside this one that holds it; loaded when the command is called.
_COMMANDS = {
    "train": "train",
    "tag": "tag",
    "train-parser": "train_parser",
    "parse": "parse",
    "eval": "evaluate",
    "inspect": "inspect",
    "convert": "convert",
    "demo": "demo",
}


class _Commands(click.Group):
    """The commands, each imported when it is needed; what goes wrong is said in one sentence."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        command: click.Command = importlib.import_module(f"crfkit.cli.{_COMMANDS[cmd_name]}").command
        return command

    def invoke(self, ctx: click.Context) -> Any:
        from crfkit.data import InputError

        try:
            return super().invoke(ctx)
        except InputError as error:
            click.echo(f"crfkit: {error}", err=True)
            ctx.exit(2)
        except OSError as error:  # files have InputErrors of their own: this is standard output
            if error.errno == errno.EPIPE:  # whoever read it, such as `head`, has enough
                raise
            click.echo(f"crfkit: standard output: cannot be written ({error.strerror or error})", err=True)
            with suppress(OSError):  # what is left in the buffer has nowhere to go
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            ctx.exit(2)
        except KeyboardInterrupt:
            click.echo("crfkit: interrupted", err=True)
            ctx.exit(130)


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="crfkit", message="%(prog)s %(version)s")
def main() -> None:
    """Train and use conditional random fields on column files and treebanks: one word a line, a blank line after each
    sentence.
    """
