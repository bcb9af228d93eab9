"""`crfkit demo`: what crfkit can do, on bundled data."""

import shlex
import shutil
import sys
import warnings
from pathlib import Path

import click

from crfkit.cli.saving import catch_termination, end_interrupted


@click.command("demo", short_help="Train on bundled data and show what the models can do.")
@click.option(
    "--output",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("demo-output"),
    show_default=True,
    help="Folder for the models and data that it writes.",
)
@catch_termination()
def command(output: Path) -> None:
    """Train a tagger, a tagger of names and a parser on bundled data, show what they can do, and write them to a folder
    with data to go on with.
    """
    from crfkit.cli.demonstration import Screen, demo
    from crfkit.models import TrainingInterrupted

    with warnings.catch_warnings():
        warnings.simplefilter("error", TrainingInterrupted)  # or the next part would begin
        try:
            demo(output, Screen(), program=program_name())
        except TrainingInterrupted:
            end_interrupted("")


def program_name() -> str:
    """How this program is called so that a shell finds it again."""
    started = Path(sys.argv[0])
    if started.name == "__main__.py":
        return f"{shlex.quote(sys.executable)} -m crfkit"
    found = shutil.which("crfkit")
    if found is not None and started.exists() and Path(found).resolve() == started.resolve():
        return "crfkit"
    return shlex.quote(str(started)) if started.exists() else "crfkit"
