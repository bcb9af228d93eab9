"""`crfkit tag`: write the labels that a model gives to a file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click

from crfkit.cli.columns import Example
from crfkit.cli.constraints import allowed_column_option, allowed_of, placed
from crfkit.cli.output_forms import FORMS, PLAIN, Details, Labelling, Writer, write_column_form, writer_of
from crfkit.cli.streams import batches, check_output, open_input, open_output
from crfkit.cli.taggers import load_tagger, read_for_tagger

if TYPE_CHECKING:
    from crfkit.models import CRF

BATCH = 1000  # sequences tagged at once: enough for all threads, little to hold


def tag(
    model: CRF,
    chunks: Iterable[Sequence[Example]],
    output: IO[str],
    *,
    details: Details = PLAIN,
    write: Writer = write_column_form,
) -> None:
    """Write each sequence with the predicted labels, in the form of `write`; sequences come in chunks.

    `details` say how many labellings, and which probabilities.
    """
    for chunk in chunks:
        for example, labellings in zip(chunk, labelled(model, chunk, details), strict=True):
            for labelling in labellings:
                write(example, labelling, details, output)
        output.flush()


def labelled(model: CRF, chunk: Sequence[Example], details: Details) -> Iterator[list[Labelling]]:
    """The labellings of each sequence, with the probabilities that are asked for."""
    X = [example.inputs for example in chunk]
    allowed = allowed_of(chunk, model.classes_)
    columns = {str(label): k for k, label in enumerate(model.classes_)}
    with placed(chunk):
        marginals: Sequence[Any] = [None] * len(chunk)
        if details.marginals or details.all_marginals:
            marginals = model.predict_marginals(X, allowed=allowed)
        if details.nbest is None and not details.probability:
            found: list[list[tuple[float | None, list[Any]]]] = [
                [(None, labels)] for labels in model.predict(X, allowed=allowed)
            ]
        else:
            found = [[*best] for best in model.predict_nbest(X, details.nbest or 1, allowed=allowed)]
    for best, probabilities in zip(found, marginals, strict=True):
        yield [
            Labelling([str(label) for label in labels], rank, probability, probabilities, columns)
            for rank, (probability, labels) in enumerate(best, 1)
        ]


@click.command("tag", short_help="Label a file with a trained model.")
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("file", type=str)
@click.option("--output", type=str, help="Write here instead of to standard output.")
@click.option(
    "--format",
    "form",
    type=click.Choice([*FORMS]),
    help="Write as this tool does.  [default: columns, and crfsuite for a model of attributes]",
)
@click.option("--marginals", is_flag=True, help="Add the probability of each label.")
@click.option("--all-marginals", is_flag=True, help="Add the probability of every label at every word.")
@click.option("--probability", is_flag=True, help="Add the probability of all labels of a sequence together.")
@click.option("--labels-only", is_flag=True, help="Leave out the input columns.")
@click.option("--reference", is_flag=True, help="In the form of CRFsuite: add the label that FILE gives.")
@click.option(
    "--nbest", type=click.IntRange(min=1), metavar="N", help="Write the N best labellings of each sequence."
)
@click.option("--separator", help="What stands between columns.  [default: what did in the training file]")
@click.option("--threads", type=click.IntRange(min=1), help="Number of threads.  [default: all processors]")
@allowed_column_option
def command(model: Path, file: str, output: str | None, form: str | None, **options: Any) -> None:
    """Label FILE (`-`: standard input) with MODEL: each line comes back with one more column, the label.

    FILE has the input columns that the model was trained with, or these and a label column, which is kept. With
    --allowed-column it has one more, with the labels that each word may have. A model that was trained on attributes reads
    a file of attributes. MODEL may be one of CRFsuite, CRF++ (text) or Wapiti.
    """
    check_output(output, (file, model), "the output")
    tagger = load_tagger(model, n_threads=options["threads"])
    details = Details(**{name: options[name] for name in Details._fields})
    write, details = writer_of(form, attributes=tagger.n_inputs is None, details=details)
    source = open_input(file)
    examples = read_for_tagger(
        tagger, source, separator=options["separator"], allowed_column=options["allowed_column"]
    )
    with open_output(output) as stream:
        tag(tagger.crf, batches(examples, BATCH, source), stream, details=details, write=write)
