"""`crfkit tag`: write the labels that a model gives to a file."""

import io
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click

from crfkit.cli.column_tagging import ColumnTagging, Tagged, find_column_tagger, write_tagged
from crfkit.cli.columns import Example
from crfkit.cli.constraints import allowed_column_option
from crfkit.cli.decoding import decode_examples
from crfkit.cli.model_input import Tagger, columns_option, load_tagger, read_for_tagger
from crfkit.cli.options import quiet_option, separator_option, threads_option
from crfkit.cli.output_formats import FORMS, PLAIN, Details, Writer, write_column_form, writer_of
from crfkit.cli.progress import Display
from crfkit.cli.resources import resource_option
from crfkit.cli.spans import DECODINGS, SpanOptions, all_at_once, write_spans
from crfkit.cli.streams import (
    ArrivingLines,
    batches,
    check_output,
    open_input,
    open_output,
    writes_to_terminal,
)
from crfkit.cli.treebank_tags import is_treebank_tagger, tag_treebank
from crfkit.cli.words import is_segmenter, tag_file

if TYPE_CHECKING:
    from crfkit.models import CRF, ColumnTagger

BATCH = 1000  # sequences tagged at once: enough for all threads, little to hold


def tag(
    model: "CRF",
    chunks: Iterable[Sequence[Example]],
    output: IO[str],
    *,
    details: Details = PLAIN,
    write: Writer = write_column_form,
    decode: str | None = None,
) -> None:
    """Write each sequence with the predicted labels, in the form of `write`; sequences come in chunks.

    `details` say how many label sequences, and which probabilities, `decode` how labels are chosen, as for `CRF.predict`.
    """
    for chunk in all_at_once(chunks) if decode == "f1" else chunks:
        for example, label_sequences in zip(
            chunk, decode_examples(model, chunk, details, decode), strict=True
        ):
            for label_sequence in label_sequences:
                write(example, label_sequence, details, output)
        output.flush()


def tag_columns(
    tagger: Tagger, column_tagger: "ColumnTagger", source: Path | ArrivingLines, options: dict[str, Any]
) -> Iterator[Tagged]:
    """A column file, tagged natively."""
    from crfkit.features import available_threads

    details = PLAIN._replace(labels_only=options["labels_only"])

    def tag_generally(examples: Sequence[Example]) -> bytes:
        with io.TextIOWrapper(io.BytesIO(), encoding="utf-8", newline="\n") as text:
            tag(tagger.crf, [examples], text, details=details)
            return text.buffer.getvalue()

    return ColumnTagging(
        tagger,
        column_tagger,
        source,
        separator=options["separator"],
        labels_only=options["labels_only"],
        general=tag_generally,
        n_threads=options["threads"] or available_threads(),
    ).run()


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
@click.option("--scores", is_flag=True, help="Add the score of each label and of all labels of a sequence.")
@click.option(
    "--posterior",
    is_flag=True,
    help="Choose each label by its own probability, not all labels of a sequence together (Viterbi).",
)
@click.option("--labels-only", is_flag=True, help="Leave out the input columns.")
@click.option("--reference", is_flag=True, help="In the form of CRFsuite: add the label that FILE gives.")
@click.option(
    "--nbest",
    type=click.IntRange(min=1),
    metavar="N",
    help="Write the N best label sequences of each sequence.",
)
@click.option(
    "--spans", is_flag=True, help="Write the spans (entities, chunks) with their probabilities, not labels."
)
@click.option(
    "--threshold",
    type=float,
    metavar="P",
    help="With --spans: those with a probability of at least P.  [default: 0.5; with --decode none]",
)
@click.option(
    "--decode",
    type=click.Choice(DECODINGS),
    help="How to choose labels, or spans: the best labels of a sequence together, each label by its own probability "
    "(marginal), likely spans (spans), or the spans with the highest expected F1.  [default: as the model says]",
)
@click.option("--json", is_flag=True, help="With --spans: one JSON object for each sequence.")
@separator_option
@threads_option
@allowed_column_option
@columns_option
@resource_option
@quiet_option
def command(
    model: Path, file: str, output: str | None, form: str | None, quiet: bool, **options: Any
) -> None:
    """Label FILE (`-`: standard input) with MODEL: each line comes back with one more column, the label.

    FILE has the input columns that the model was trained with, or these and a label column, which is kept. With
    --allowed-column it has one more, with the labels that each word may have. A model that was trained on attributes reads
    a file of attributes. MODEL may be one of CRFsuite, CRF++ or Wapiti; rows may then have more columns than it reads.

    Where MODEL is a tagger of treebanks (crfkit train-tagger), FILE is CoNLL-U, and its column is filled in place; with
    --marginals, MISC has the probability of each tag.

    Where MODEL is a word segmenter, each line of FILE is a text, and its words come back as MeCab writes them.

    With --spans a line has the number of a sequence, start, end (exclusive, counted from 0), label, probability and text.
    """
    check_output(output, (file, model), "the output")
    details = Details(**{name: options[name] for name in Details._fields})
    span_options = SpanOptions(**{name: options[name] for name in SpanOptions._fields})
    span_options.check(details, form)
    with Display(quiet=quiet, stages=not writes_to_terminal(output)) as display:
        display.stage(f"loading {model}")
        if is_segmenter(model):
            nbest = options.pop("nbest")
            tag_file(model, file, output, display, nbest, {"format": form, **options})
            return
        if is_treebank_tagger(model):
            tag_treebank(model, file, output, display, {"format": form, **options})
            return
        tagger = load_tagger(
            model,
            n_threads=options["threads"],
            n_columns=options["columns"],
            resources=options["resources"],
        )
        local = tagger.crf.locally_normalised_
        if span_options.spans:
            details = details._replace(labels_only=True)
        write, details = writer_of(form, attributes=tagger.n_inputs is None, details=details, local=local)
        source = open_input(file)
        examples = read_for_tagger(
            tagger,
            source,
            separator=options["separator"],
            allowed_column=options["allowed_column"],
            labels_required=tagger.more_columns and details.reference,  # else the last column may be anything
        )
        display.stage(f"tagging {file}", "sequences", waits=isinstance(source, ArrivingLines))
        chunks = display.count(batches(examples, BATCH, source), len)
        column_tagger = find_column_tagger(tagger, write, details, options)
        with open_output(output) as stream:
            if column_tagger is not None:
                pieces = tag_columns(tagger, column_tagger, source, options)
                counted = display.count(pieces, lambda tagged: tagged.n_sequences)
                write_tagged(counted, stream, at_once=isinstance(source, ArrivingLines))
            elif span_options.spans:
                write_spans(tagger.crf, chunks, stream, span_options)
            else:
                tag(tagger.crf, chunks, stream, details=details, write=write, decode=span_options.decode)
