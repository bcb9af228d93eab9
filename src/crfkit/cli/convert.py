"""`crfkit convert`: a model from one toolkit's file to another's."""

from pathlib import Path

import click

from crfkit.cli.model_input import CRFKIT, CRFSUITE, columns_option, read_model
from crfkit.cli.streams import check_output, complain


def convert(
    source: Path,
    target: Path,
    to: str | None = None,
    n_columns: int | None = None,
    encoding: str = "utf-8",
) -> str:
    """Write the model of `source` to `target`, in the format `to`; the format.

    Without `to`, models of this package become CRFsuite's, and all others models of this package.
    """
    from crfkit.compat import write_crfsuite

    model, toolkit, form = read_model(source, n_columns, encoding)
    chosen = to or (CRFSUITE if toolkit == CRFKIT else CRFKIT)
    if chosen == CRFSUITE:
        write_crfsuite(model, target)
    else:
        model.save(target, metadata=form._asdict())
    return chosen


@click.command("convert", short_help="Turn a model file of CRFsuite, CRF++ or Wapiti into one of crfkit.")
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("output", type=click.Path(path_type=Path))
@click.option(
    "--to",
    type=click.Choice([CRFKIT, CRFSUITE]),
    help="The format of OUTPUT.  [default: crfkit, and crfsuite for a model of crfkit]",
)
@columns_option
@click.option(
    "--encoding",
    default="utf-8",
    show_default=True,
    metavar="NAME",
    help="That of the training file, for a model of CRF++.",
)
def command(model: Path, output: Path, to: str | None, columns: int | None, encoding: str) -> None:
    """Write MODEL to OUTPUT in another format.

    MODEL is a file of crfkit, of CRFsuite, of CRF++ (binary or text) or of Wapiti.
    """
    check_output(output, (model,), "the output")
    written = convert(model, output, to, columns, encoding)
    complain(f"{output}: written as a model of {written}")
