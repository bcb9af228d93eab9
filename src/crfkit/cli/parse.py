"""`crfkit parse`: write the trees that a parser gives to a treebank."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, NamedTuple

import click

from crfkit.cli.model_input import describe_use, is_type
from crfkit.cli.options import quiet_option, threads_option
from crfkit.cli.progress import Display
from crfkit.cli.resources import open_resources, resource_option
from crfkit.cli.streams import (
    ArrivingLines,
    batches,
    check_output,
    make_folder,
    open_input,
    open_output,
    writes_to_terminal,
)
from crfkit.data import read_conllu, write_conllu
from crfkit.errors import InputError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from crfkit.data import Sentence
    from crfkit.models import Parser

BATCH = 500  # sentences parsed at once: enough for all threads, little to hold


class Wanted(NamedTuple):
    """What is to be said of each sentence."""

    decode: str | None = None  # "best" or "mbr"; None: the setting of the parser
    nbest: int | None = None  # so many trees instead of one
    probabilities: bool = False  # of arcs, in MISC


def parse(
    parser: Parser,
    chunks: Iterable[list[Sentence]],
    output: IO[str],
    wanted: Wanted,
    *,
    svg: Path | None = None,
) -> None:
    """Write each sentence with heads and relations as the parser gives them; `svg` draws its (best) tree there too.

    Sentences come in chunks.

    Of the n best trees, each is a sentence of its own, with comments `# rank = …` and `# probability = …`.
    """
    number = 0
    for chunk in chunks:
        for trees in parse_sentences(parser, chunk, wanted):
            number += 1
            write_conllu(trees, output)
            if svg is not None:
                from crfkit.report import draw_tree

                draw_tree(trees[0]).save(svg / f"{number:05}.svg")
        output.flush()


def parse_sentences(parser: Parser, sentences: list[Sentence], wanted: Wanted) -> Iterator[list[Sentence]]:
    """For each sentence the trees that are wanted, the best one first."""
    if wanted.nbest is None:
        found = [[sentence] for sentence in parser.predict(sentences, decode=wanted.decode)]
    else:
        found = [
            [
                replace(
                    tree, comments=[f"# rank = {rank}", f"# probability = {probability:.6f}", *tree.comments]
                )
                for rank, (probability, tree) in enumerate(trees, 1)
            ]
            for trees in parser.predict_nbest(sentences, wanted.nbest)
        ]
    if not wanted.probabilities:
        yield from found
        return
    for trees, table in zip(found, parser.arc_probabilities(sentences), strict=True):
        yield [with_probabilities(tree, table) for tree in trees]


def with_probabilities(sentence: Sentence, table: npt.NDArray[np.float64]) -> Sentence:
    """The sentence with `p=…` in MISC, the probability table[head, word] of the arc into each word."""
    words = []
    for number, word in enumerate(sentence.words, 1):
        kept = [item for item in word.misc.split("|") if item != "_" and not item.startswith("p=")]
        words.append(word._replace(misc="|".join([*kept, f"p={table[word.head, number]:.4f}"])))
    return replace(sentence, words=words)


def is_parser(path: Path) -> bool:
    """Whether a model file holds a parser."""
    return is_type(path, "Parser")


def load_parser(
    path: Path, *, n_threads: int | None = None, resources: Sequence[str] | None = None
) -> Parser:
    """Load a parser for use on so many threads, with `resources` as `--resource` takes them."""
    from crfkit.models import Parser
    from crfkit.pipeline import load

    parser = load(path, resources=open_resources(resources))
    if not isinstance(parser, Parser):
        raise InputError(f"{path}: not a parser: {describe_use(parser)}")
    parser.set_params(n_threads=n_threads)
    return parser


@click.command("parse", short_help="Parse a CoNLL-U file with a trained parser.")
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("file", type=str)
@click.option("--output", "--out", type=str, help="Write here instead of to standard output.")
@click.option(
    "--decode",
    type=click.Choice(["best", "mbr"]),
    help="The likeliest tree, or the one with the most arcs right in expectation.  [default: as in training]",
)
@click.option("--probabilities", is_flag=True, help="Add the probability of each arc to MISC, as p=0.9812.")
@click.option(
    "--nbest", type=click.IntRange(min=1), metavar="N", help="Write the N best trees of each sentence."
)
@click.option(
    "--svg",
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    help="Draw the tree of each sentence there, as 00001.svg and so on.",
)
@resource_option
@threads_option
@quiet_option
def command(
    model: Path,
    file: str,
    output: str | None,
    quiet: bool,
    resources: Sequence[str] | None,
    decode: str | None,
    probabilities: bool,
    nbest: int | None,
    svg: Path | None,
    threads: int | None,
) -> None:
    """Parse FILE (CoNLL-U, `-`: standard input) with MODEL: HEAD and DEPREL of every word are written anew.

    All other columns, multiword tokens, empty nodes and comments stay as they are.
    """
    if nbest is not None and decode == "mbr":
        raise InputError(
            "--nbest and --decode mbr were given, expected one of them: the n best trees are the likeliest"
        )
    check_output(output, (file, model), "the output")
    with Display(quiet=quiet, stages=not writes_to_terminal(output)) as display:
        display.stage(f"loading {model}")
        parser = load_parser(model, n_threads=threads, resources=resources)
        if svg is not None:
            make_folder(svg)
        source = open_input(file)
        display.stage(f"parsing {file}", "sentences", waits=isinstance(source, ArrivingLines))
        chunks = display.count(batches(read_conllu(source), BATCH, source), len)
        with open_output(output) as stream:
            parse(parser, chunks, stream, Wanted(decode, nbest, probabilities), svg=svg)
