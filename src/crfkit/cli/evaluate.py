"""`crfkit eval`: how well a model labels a file whose labels are known."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import click

from crfkit.cli.columns import Example, check_labels
from crfkit.cli.constraints import allowed_column_option, allowed_of, is_possible, placed
from crfkit.cli.tag import BATCH
from crfkit.cli.taggers import load_tagger, read_for_tagger

if TYPE_CHECKING:
    from crfkit.evaluation import Evaluation
    from crfkit.models import CRF


def evaluate(model: CRF, examples: Iterable[Example], *, allow_unknown: bool = False) -> Evaluation:
    """Compare the labels of a file with those that the model gives.

    A label that the model does not know is refused; `allow_unknown` counts it as one that the model gets wrong. Where the
    model or the file has constraints, the sequences are counted whose labels they exclude.
    """
    from crfkit.evaluation import evaluate as compare
    from crfkit.structures import Bigrams

    known = {str(label): label for label in model.classes_}
    gold: list[list[str]] = []
    predicted: list[list[str]] = []
    possible: list[bool] = []
    bigrams = model.structure_.bigrams
    bigrams = bigrams if isinstance(bigrams, Bigrams) else None
    constrained = bigrams is not None
    examples = iter(examples)
    while chunk := list(islice(examples, BATCH)):
        if not allow_unknown:
            for example in chunk:
                check_labels(example, known, "the model does not know the label")
        gold += (example.labels or [] for example in chunk)
        allowed = allowed_of(chunk, model.classes_)
        constrained = constrained or allowed is not None
        with placed(chunk):
            found = model.predict([example.inputs for example in chunk], allowed=allowed)
        predicted += ([str(label) for label in labels] for labels in found)
        possible += (is_possible(example, bigrams, known) for example in chunk)
    return compare(gold, predicted, possible=possible if constrained else None)


@click.command("eval", short_help="Compare a model's labels with those of a file.")
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("file", type=str)
@click.option("--separator", help="What stands between columns.  [default: what did in the training file]")
@click.option("--threads", type=click.IntRange(min=1), help="Number of threads.  [default: all processors]")
@click.option("--allow-unknown", is_flag=True, help="Count labels that the model does not know as errors.")
@click.option(
    "--confusion",
    default=20,
    show_default=True,
    type=click.IntRange(min=0),
    help="Labels in the confusion table; 0: none.",
)
@allowed_column_option
def command(
    model: Path,
    file: str,
    separator: str | None,
    threads: int | None,
    allow_unknown: bool,
    confusion: int,
    allowed_column: int | None,
) -> None:
    """Label FILE with MODEL and report how many labels, and which spans, are right.

    Spans (labels such as B-NP and I-NP) are counted as conlleval counts them.
    """
    tagger = load_tagger(model, n_threads=threads)
    examples = read_for_tagger(
        tagger, file, separator=separator, allowed_column=allowed_column, labels_required=True
    )
    report = evaluate(tagger.crf, examples, allow_unknown=allow_unknown)
    click.echo(str(report))
    if confusion:
        click.echo(f"\nconfusion table (gold down, predicted across):\n{report.confusion.table(confusion)}")
