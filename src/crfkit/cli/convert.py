"""`crfkit convert`: a model from one toolkit's file to another's."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from crfkit.models import CRF

CRFKIT, CRFSUITE = "crfkit", "crfsuite"
_MAGIC = b"lCRF"


def read_model(path: Path) -> tuple[CRF, str]:
    """A model and the format of its file, which its first bytes tell."""
    from crfkit.compat import read_crfsuite
    from crfkit.data import InputError
    from crfkit.models import load

    try:
        with path.open("rb") as stream:
            begins = stream.read(len(_MAGIC))
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from None
    return (read_crfsuite(path), CRFSUITE) if begins == _MAGIC else (load(path), CRFKIT)


def convert(source: Path, target: Path, to: str | None = None) -> str:
    """Write the model of `source` to `target`, in the format `to`, or in the one it does not have; the format."""
    from crfkit.compat import write_crfsuite

    model, format = read_model(source)
    chosen = to or (CRFKIT if format == CRFSUITE else CRFSUITE)
    if chosen == CRFSUITE:
        write_crfsuite(model, target)
    else:
        model.save(target)
    return chosen


@click.command("convert", short_help="Turn a model file of CRFsuite into one of crfkit, or back.")
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("output", type=click.Path(path_type=Path))
@click.option(
    "--to",
    type=click.Choice([CRFKIT, CRFSUITE]),
    help="The format of OUTPUT.  [default: the one that MODEL does not have]",
)
def command(model: Path, output: Path, to: str | None) -> None:
    """Write MODEL, a file of crfkit or of CRFsuite, to OUTPUT in the other format."""
    click.echo(f"{output}: written as a model of {convert(model, output, to)}", err=True)
