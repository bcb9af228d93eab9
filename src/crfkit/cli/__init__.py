"""The command line: one file per command, each a thin wrapper over a plain function.

Exit status: 0 when all went well, 2 for bad input (one sentence on the error stream), 130 after Ctrl-C, 143 after SIGTERM
while a model was trained, 141 where whoever reads standard output has gone.
"""

import importlib
import sys
from typing import Any

import click

from crfkit.cli.streams import BAD_INPUT, complain, flush_streams, output_failures, prepare_streams

__all__ = ["main"]

# command → the file beside this one that holds it; loaded when the command is called.
_COMMANDS = {
    "train": "train",
    "encode": "encode",
    "tag": "tag",
    "train-tagger": "train_tagger",
    "train-parser": "train_parser",
    "parse": "parse",
    "pipeline": "pipeline",
    "eval": "evaluate",
    "report": "report",
    "inspect": "inspect",
    "explain": "explain",
    "convert": "convert",
    "lexicon": "lexicon",
    "cluster": "cluster",
    "infer": "infer",
    "serve": "serve",
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

    def main(self, *args: Any, **kwargs: Any) -> Any:
        """Run a command; no state of the standard streams ends in a traceback."""
        prepare_streams()
        try:
            return super().main(*args, **kwargs)
        except OSError:  # not even the error stream can be written
            sys.exit(BAD_INPUT)
        finally:
            flush_streams()

    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:
        """Parse the arguments, which prints the help where it is asked for."""
        with output_failures():
            return super().make_context(*args, **kwargs)

    def invoke(self, ctx: click.Context) -> Any:
        from crfkit.errors import InputError

        try:
            with output_failures():
                return super().invoke(ctx)
        except InputError as error:
            complain(f"crfkit: {error}")
            ctx.exit(BAD_INPUT)
        except MemoryError as error:
            complain(f"crfkit: not enough memory ({str(error) or 'none is left'})")
            ctx.exit(BAD_INPUT)
        except ValueError as error:
            from crfkit.optimizers import OptimizationError

            if not isinstance(error, OptimizationError):
                raise
            complain(f"crfkit: {error}")
            ctx.exit(BAD_INPUT)
        except KeyboardInterrupt:
            complain("crfkit: interrupted")
            ctx.exit(130)


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="crfkit", message="%(prog)s %(version)s")
def main() -> None:
    """Train and use conditional random fields on column files and treebanks: one word a line, a blank line after each
    sentence.
    """
