"""`crfkit pipeline`: train, run and evaluate pipelines from raw text to trees."""

import json
import logging
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING

import click

from crfkit.cli.model_input import is_type
from crfkit.cli.options import model_option, quiet_option, threads_option, words_option
from crfkit.cli.progress import Display
from crfkit.cli.resources import bundle_option, open_parser_resources, open_resources, resource_option
from crfkit.cli.saving import catch_termination, check_outputs, end_interrupted, save_model
from crfkit.cli.streams import (
    BAD_INPUT,
    ArrivingLines,
    check_output,
    make_folder,
    open_input,
    open_output,
    writes_to_terminal,
)
from crfkit.errors import InputError

if TYPE_CHECKING:
    from crfkit.data import Sentence
    from crfkit.evaluation import TreebankReport
    from crfkit.pipeline import Pipeline

FORMATS = ("conllu", "json", "tree")


class _Notes(logging.Handler):
    """Shows what the library notes and warns of while a pipeline is trained."""

    def __init__(self, display: Display) -> None:
        super().__init__(logging.INFO)
        self._display = display

    def emit(self, record: logging.LogRecord) -> None:
        """Show a record, if it is a note or a warning; that of a component says how long it takes."""
        if record.levelno >= logging.WARNING:
            self._display.say(f"crfkit: warning: {record.getMessage()}")
        elif hasattr(record, "note"):
            self._display.say(record.getMessage())
        elif hasattr(record, "optimizer"):
            self._display.expect(record.optimizer)


@contextmanager
def show_notes(display: Display) -> Iterator[None]:
    """Shows notes and warnings of the library in this block."""
    from crfkit.models import LOGGER

    handler = _Notes(display)
    LOGGER.addHandler(handler)
    try:
        yield
    finally:
        LOGGER.removeHandler(handler)


def is_pipeline(path: Path) -> bool:
    """Whether a model file holds a pipeline."""
    return is_type(path, "Pipeline")


def load_pipeline(path: Path, n_threads: int | None, resources: Sequence[str] | None = None) -> "Pipeline":
    """Load a pipeline for use on so many threads, with the resources that it needs."""
    from crfkit.pipeline import Pipeline

    pipeline = Pipeline.load(path, resources=open_resources(resources))
    pipeline.n_threads = n_threads
    return pipeline


def write_sentences(
    sentences: "Iterable[Sentence]", output: IO[str], form: str, svg: Path | None = None
) -> None:
    """Write sentences as CoNLL-U, as JSON, one object a line, or as trees for a terminal; `svg` draws each tree there."""
    from crfkit.data import write_conllu
    from crfkit.pipeline import sentence_to_json
    from crfkit.report import draw_tree, tree_text

    for number, sentence in enumerate(sentences, 1):
        if form == "conllu":
            write_conllu([sentence], output)
        elif form == "json":
            output.write(json.dumps(sentence_to_json(sentence), ensure_ascii=False) + "\n")
        else:
            text = next((c.partition(" = ")[2] for c in sentence.comments if c.startswith("# text = ")), "")
            output.write(f"{text}\n{tree_text(sentence)}\n\n")
        if svg is not None:
            draw_tree(sentence).save(svg / f"{number:05}.svg")


def evaluate(pipeline: "Pipeline", gold: "list[Sentence]", *, from_text: bool) -> "TreebankReport":
    """How well a pipeline analyses the text, or the tokens, of sentences: the table of the CoNLL-2018 shared task."""
    from crfkit.evaluation import evaluate_treebank
    from crfkit.pipeline import raw_text

    found = pipeline(raw_text(gold), input="text") if from_text else pipeline.predict(gold)
    return evaluate_treebank(gold, found)


@click.group("pipeline", short_help="From raw text to trees: train, run, evaluate a whole pipeline.")
def command() -> None:
    """From raw text to trees: a tokenizer, taggers, a lemmatizer and a parser in one model file."""


@command.command("train", short_help="Train a pipeline on a treebank (CoNLL-U).")
@click.argument("file", type=click.Path(path_type=Path))
@model_option
@click.option(
    "--dev",
    type=click.Path(path_type=Path),
    help="Held-out treebank: taggers and parser keep what is best on it.",
)
@click.option(
    "--folds",
    default=5,
    show_default=True,
    type=click.IntRange(min=2, max=1000),
    help="Parts of the treebank whose tags are predicted by a tagger that has learnt from the others.",
)
@click.option(
    "--checkpoint",
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    help="Keep what is finished there, and go on from there.",
)
@words_option
@resource_option
@bundle_option
@click.option(
    "--clusters", type=click.Path(path_type=Path), metavar="FILE", help="Word clusters for the parser."
)
@click.option(
    "--vectors",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Word vectors for the parser, which the model file then holds.",
)
@threads_option
@quiet_option
@catch_termination()
def train(
    file: Path,
    model: Path,
    dev: Path | None,
    folds: int,
    checkpoint: Path | None,
    words: Path | None,
    resources: Sequence[str] | None,
    bundle: bool,
    clusters: Path | None,
    vectors: Path | None,
    threads: int | None,
    quiet: bool,
) -> None:
    """Train a pipeline on FILE (CoNLL-U) and write it to MODEL.

    The tokenizer learns from the tokens and `SpaceAfter=No`, the taggers from UPOS, XPOS and FEATS, the lemmatizer from
    LEMMA, the parser from HEAD and DEPREL; what the treebank does not have is left out, with a warning.

    Ctrl-C ends training, saves the components that are trained and exits with status 130; SIGTERM does so with 143. With
    --checkpoint, the same command goes on with the first one that is not.
    """
    from crfkit.data import read_conllu
    from crfkit.pipeline import Pipeline, WordList

    with Display(quiet=quiet) as display, show_notes(display):
        display.stage(f"reading {file}", "sentences")
        check_outputs(model, None, (file, dev))
        of_parser = open_parser_resources(clusters, vectors)
        sentences = list(display.count(read_conllu(file)))
        held_out = None if dev is None else list(display.count(read_conllu(dev)))
        n_words = sum(len(sentence.words) for sentence in sentences)
        display.say(f"{file}: {len(sentences):,} sentences, {n_words:,} words")
        if dev is None:
            display.say("no --dev: taggers and parser keep the weights of their last iteration")
        listed = None if words is None else WordList.read(words)
        given = open_resources(resources)
        pipeline = Pipeline(None, folds, threads, listed, given, **of_parser)
        with display.training(None, "score") as callback:
            pipeline.fit(sentences, dev=held_out, callback=callback, checkpoint=checkpoint)
        interrupted = pipeline.interrupted_
        if interrupted is not None and pipeline.tokenizer_ is None:
            end_interrupted("")
        display.stage(f"writing {model}")
        found = save_model(partial(pipeline.save, bundle=bundle), model)
        display.say(
            f"{', '.join(pipeline.describe().splitlines())}: {found}, {found.stat().st_size / 1e6:.1f} MB"
        )
        if interrupted is not None:
            end_interrupted(f" at the {interrupted}; what was trained until then is in {found}")
        if found != model:
            click.get_current_context().exit(BAD_INPUT)


_output_option = click.option(
    "-o", "--output", "--out", type=str, help="Write here instead of to standard output."
)


@command.command("run", short_help="Analyse text with a pipeline.")
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("file", type=str, default="-")
@_output_option
@click.option(
    "--input",
    "form",
    default="auto",
    show_default=True,
    type=click.Choice(["auto", "text", "sentences", "tokens", "conllu"]),
    help="What FILE has: raw text, one sentence a line, one sentence a line with blanks between words, CoNLL-U.",
)
@click.option(
    "--format",
    "output_format",
    default="conllu",
    show_default=True,
    type=click.Choice(FORMATS),
    help="CoNLL-U, one JSON object a line, or trees for a terminal.",
)
@click.option("--keep-tags", is_flag=True, help="Keep the lemmas and tags of CoNLL-U, where it has them.")
@click.option(
    "--ranges", is_flag=True, help="Add the characters of each token of raw text to MISC, as TokenRange=0:5."
)
@click.option("--probabilities", is_flag=True, help="Add those of tokens, tags and heads to MISC.")
@click.option(
    "--svg",
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    help="Draw the tree of each sentence there, as 00001.svg and so on.",
)
@resource_option
@threads_option
@quiet_option
def run(
    model: Path,
    file: str,
    output: str | None,
    form: str,
    output_format: str,
    keep_tags: bool,
    ranges: bool,
    probabilities: bool,
    svg: Path | None,
    resources: Sequence[str] | None,
    threads: int | None,
    quiet: bool,
) -> None:
    """Analyse FILE (`-`: standard input) with MODEL and write its sentences.

    Blank lines separate the paragraphs of raw text. MISC keeps all white space: the text can be made again of the output,
    byte by byte. Texts of any length are read in pieces.
    """
    from crfkit.data import read_pieces, source_name

    check_output(output, (file, model), "the output")
    with Display(quiet=quiet, stages=not writes_to_terminal(output)) as display:
        display.stage(f"loading {model}")
        pipeline = load_pipeline(model, threads, resources)
        if svg is not None:
            _check_parser(pipeline, model)
            make_folder(svg)
        if output_format == "tree":
            _check_parser(pipeline, model)
        source = open_input(file)
        display.stage(f"analysing {file}", "sentences", waits=isinstance(source, ArrivingLines))
        sentences = pipeline.stream(
            read_pieces(source),
            input="conllu" if form == "auto" and ".conllu" in Path(file).suffixes[-2:] else form,
            keep_tags=keep_tags,
            ranges=ranges,
            probabilities=probabilities,
            name=source_name(source),
        )
        with open_output(output) as stream:
            write_sentences(display.count(sentences), stream, output_format, svg)


@command.command("eval", short_help="How well a pipeline analyses a treebank, from its text on.")
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("file", type=str)
@click.option(
    "--from",
    "origin",
    default="raw",
    show_default=True,
    type=click.Choice(["raw", "tokens"]),
    help="Begin with the text of the treebank, or with its tokens and sentences.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the figures as JSON.")
@resource_option
@threads_option
@quiet_option
def evaluate_command(
    model: Path,
    file: str,
    origin: str,
    as_json: bool,
    resources: Sequence[str] | None,
    threads: int | None,
    quiet: bool,
) -> None:
    """Analyse the text of FILE (CoNLL-U) with MODEL, and print the table of the CoNLL-2018 shared task."""
    from crfkit.data import read_conllu

    with Display(quiet=quiet) as display:
        display.stage(f"loading {model}")
        pipeline = load_pipeline(model, threads, resources)
        display.stage(f"analysing {file}")
        gold = list(read_conllu(open_input(file)))
        if not gold:
            raise InputError(f"{file}: the file has no sentence, expected CoNLL-U")
        report = evaluate(pipeline, gold, from_text=origin == "raw")
        with display.standard_output():
            click.echo(json.dumps(_figures(report)) if as_json else str(report))


def _figures(report: "TreebankReport") -> dict[str, dict[str, float]]:
    return {
        name: {"precision": counts.precision, "recall": counts.recall, "f1": counts.f1}
        for name, counts in report.counts.items()
    }


def _check_parser(pipeline: "Pipeline", path: Path) -> None:
    """Refuse to draw trees that there are not."""
    from crfkit.models import Parser

    if not any(isinstance(component, Parser) for component in pipeline.components_):
        raise InputError(f"{path}: the pipeline has no parser, and so no trees to draw")
