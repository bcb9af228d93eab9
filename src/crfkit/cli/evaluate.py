"""`crfkit eval`: how well a model labels a file whose labels are known."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import click

from crfkit.cli.columns import Example, read_for_model
from crfkit.cli.tag import BATCH
from crfkit.cli.taggers import load_tagger
from crfkit.data import InputError

if TYPE_CHECKING:
    from crfkit.evaluation import Evaluation
    from crfkit.models import CRF


def evaluate(model: CRF, examples: Iterable[Example], *, allow_unknown: bool = False) -> Evaluation:
    """Compare the labels of a file with those that the model gives.

    A label that the model does not know is refused; `allow_unknown` counts it as one that the model gets wrong.
    """
    from crfkit.evaluation import evaluate as compare

    known = None if allow_unknown else {str(label) for label in model.classes_}
    gold: list[list[str]] = []
    predicted: list[list[str]] = []
    examples = iter(examples)
    while chunk := list(islice(examples, BATCH)):
        gold += (_checked_labels(example, known) for example in chunk)
        predicted += ([str(label) for label in labels] for labels in model.predict([e.inputs for e in chunk]))
    return compare(gold, predicted)


def _checked_labels(example: Example, known: set[str] | None) -> list[str]:
    labels = example.labels or []
    if known is not None and not known.issuperset(labels):
        site = next(site for site, label in enumerate(labels) if label not in known)
        raise InputError(
            f"{example.origin.place(site)}: the model does not know the label {labels[site]!r} "
            "(--allow-unknown counts such labels as errors)"
        )
    return labels


@click.command("eval", short_help="Compare a model's labels with those of a file.")
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("file", type=str)
@click.option(
    "--separator", help="What stands between columns.  [default: tabs where there are, else blanks]"
)
@click.option("--threads", type=click.IntRange(min=1), help="Number of threads.  [default: all processors]")
@click.option("--allow-unknown", is_flag=True, help="Count labels that the model does not know as errors.")
@click.option(
    "--confusion",
    default=20,
    show_default=True,
    type=click.IntRange(min=0),
    help="Labels in the confusion table; 0: none.",
)
def command(
    model: Path, file: str, separator: str | None, threads: int | None, allow_unknown: bool, confusion: int
) -> None:
    """Label FILE with MODEL and report how many labels, and which spans, are right.

    Spans (labels such as B-NP and I-NP) are counted as conlleval counts them.
    """
    tagger = load_tagger(model, n_threads=threads)
    examples = read_for_model(
        file,
        n_inputs=tagger.n_inputs,
        label_column=tagger.label_column,
        separator=separator,
        labels_required=True,
    )
    report = evaluate(tagger.crf, examples, allow_unknown=allow_unknown)
    click.echo(str(report))
    if confusion:
        click.echo(f"\nconfusion table (gold down, predicted across):\n{report.confusion.table(confusion)}")
