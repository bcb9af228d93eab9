"""`crfkit tag`: write the labels that a model gives to a column file."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING

import click

from crfkit.cli.columns import Example
from crfkit.cli.constraints import allowed_column_option, allowed_of, placed
from crfkit.cli.taggers import load_tagger, read_for_tagger
from crfkit.data import write_columns

if TYPE_CHECKING:
    from crfkit.models import CRF

BATCH = 1000  # sequences tagged at once: enough for all threads, little to hold


def tag(
    model: CRF,
    examples: Iterable[Example],
    output: IO[str],
    *,
    marginals: bool = False,
    nbest: int | None = None,
    batch: int = BATCH,
) -> None:
    """Write each sequence with one more column, the predicted label.

    `marginals` adds the probability of that label at its site. `nbest` writes the n best labellings, each as a sequence
    of its own under a comment `# rank probability`.
    """
    examples = iter(examples)
    while chunk := list(islice(examples, batch)):
        X = [example.inputs for example in chunk]
        allowed = allowed_of(chunk, model.classes_)
        with placed(chunk):
            probabilities = model.predict_marginals(X, allowed=allowed) if marginals else None
            if nbest is None:
                labellings = [[("", labels)] for labels in model.predict(X, allowed=allowed)]
            else:
                labellings = [
                    [
                        (f"# {rank} {probability:.6f}", labels)
                        for rank, (probability, labels) in enumerate(best, 1)
                    ]
                    for best in model.predict_nbest(X, nbest, allowed=allowed)
                ]
        index = {label: k for k, label in enumerate(model.classes_)}
        for n, example in enumerate(chunk):
            for comment, labels in labellings[n]:
                extra = [[str(label)] for label in labels]
                if probabilities is not None:
                    for site, label in enumerate(labels):
                        extra[site].append(f"{probabilities[n][site, index[label]]:.6f}")
                _write(example, extra, comment, output)
        output.flush()


def _write(example: Example, extra: Sequence[Sequence[str]], comment: str, output: IO[str]) -> None:
    origin = example.origin
    rows = [(*row, *more) for row, more in zip(origin.rows, extra, strict=True)]
    comments = [*origin.comments, comment] if comment else origin.comments
    write_columns(rows, output, comments=comments, separator=origin.separator)


@contextmanager
def open_output(path: str | None) -> Iterator[IO[str]]:
    """Standard output, or a file that appears under its name when it is complete."""
    if path is None or path == "-":
        text = io.TextIOWrapper(sys.stdout.buffer, encoding="utf-8", newline="\n")
        try:
            yield text
        finally:
            text.detach()  # standard output is not ours to close
        return
    from crfkit.models import replacing

    with replacing(path) as stream:
        text = io.TextIOWrapper(stream, encoding="utf-8", newline="\n")
        yield text
        text.detach()


@click.command("tag", short_help="Label a column file with a trained model.")
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("file", type=str)
@click.option("--output", type=str, help="Write here instead of to standard output.")
@click.option("--marginals", is_flag=True, help="Add the probability of each label as one more column.")
@click.option(
    "--nbest", type=click.IntRange(min=1), metavar="N", help="Write the N best labellings of each sequence."
)
@click.option("--separator", help="What stands between columns.  [default: what did in the training file]")
@click.option("--threads", type=click.IntRange(min=1), help="Number of threads.  [default: all processors]")
@allowed_column_option
def command(
    model: Path,
    file: str,
    output: str | None,
    marginals: bool,
    nbest: int | None,
    separator: str | None,
    allowed_column: int | None,
    threads: int | None,
) -> None:
    """Label FILE (`-`: standard input) with MODEL: each line comes back with one more column, the label.

    FILE has the input columns that the model was trained with, or these and a label column, which is kept. With
    --allowed-column it has one more, with the labels that each word may have.
    """
    tagger = load_tagger(model, n_threads=threads)
    examples = read_for_tagger(tagger, file, separator=separator, allowed_column=allowed_column)
    interactive = file == "-" and sys.stdin.isatty()
    with open_output(output) as stream:
        tag(tagger.crf, examples, stream, marginals=marginals, nbest=nbest, batch=1 if interactive else BATCH)
