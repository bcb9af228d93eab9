"""`crfkit train-parser`: a dependency parser from a treebank."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from crfkit.cli.options import l1_option, model_option, optimizer_of, training_options
from crfkit.cli.progress import Display
from crfkit.cli.resources import open_parser_resources
from crfkit.cli.saving import catch_termination, check_outputs, fit, train_and_save

if TYPE_CHECKING:
    from crfkit.models import Parser


def new_parser(options: dict[str, Any]) -> "Parser":
    """An untrained parser as the options of the command ask for it."""
    from crfkit.models import Parser

    names = ("l2", "min_count", "structure", "order", "decode", "columns")
    given = {name: options[name] for name in names if options[name] is not None}
    given |= open_parser_resources(options["clusters"], options["vectors"])
    return Parser(
        optimizer=optimizer_of(options, base=Parser().optimizer),
        l1=options["l1"],
        single_root=not options["multi_root"],
        n_threads=options["threads"],
        **given,
    )


@click.command("train-parser", short_help="Train a dependency parser on a treebank (CoNLL-U).")
@click.argument("file", type=click.Path(path_type=Path))
@model_option
@click.option("--multi-root", is_flag=True, help="Trees may have several roots.")
@click.option(
    "--decode",
    type=click.Choice(["best", "mbr"]),
    help="How to parse, the dev file too: the likeliest tree, or the one with the most arcs right in expectation.  "
    "[default: the parser's]",
)
@click.option(
    "--structure",
    type=click.Choice(["auto", "spanning", "projective"]),
    help="All trees, or those without crossing arcs; auto: by the training file.  [default: the parser's]",
)
@click.option(
    "--order",
    type=click.Choice(["1", "2"]),
    callback=lambda _context, _option, value: value and int(value),
    help="1: scores of arcs; 2: of siblings and grandparents too.  [default: the parser's]",
)
@click.option(
    "--columns",
    metavar="NAMES",
    callback=lambda _context, _option, value: value and [name.strip() for name in value.split(",")],
    help="Which columns it may read, separated by commas: some of form, lemma, upos, xpos, feats.  [default: all]",
)
@click.option(
    "--clusters",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Word clusters: lines of path, word and count, or of word and class.",
)
@click.option(
    "--vectors",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Word vectors: a file of word2vec, GloVe or fastText, or of WordVectors.save.",
)
@click.option(
    "--bundle",
    is_flag=True,
    help="Put the word vectors into the model file, which else has their digest alone.",
)
@l1_option
@click.option("--l2", type=float, help="Strength of the penalty ½·l2·|w|².  [default: the parser's]")
@click.option("--min-count", type=int, help="Leave out features seen at fewer arcs.  [default: the parser's]")
@training_options("adagrad", "treebank")
@catch_termination()
def command(file: Path, model: Path, dev: Path | None, quiet: bool, **options: Any) -> None:
    """Train a dependency parser on FILE (CoNLL-U) and write it to MODEL.

    Words whose HEAD is `_` may have any head, and where DEPREL is `_` any relation: training needs no complete trees.

    Ctrl-C ends training, saves the best model so far and exits with status 130; SIGTERM does so with 143. A
    run with --checkpoint that was killed goes on with --resume, and ends as if nothing had happened.
    """
    from crfkit.data import read_conllu

    with Display(quiet=quiet) as display:
        display.stage(f"reading {file}", "sentences")
        check_outputs(model, options["checkpoint"], (file, dev))
        parser = new_parser(options)
        sentences = list(display.count(read_conllu(file)))
        held_out = None if dev is None else list(display.count(read_conllu(dev)))
        n_words = sum(len(sentence.words) for sentence in sentences)
        labels = {word.deprel for sentence in sentences for word in sentence.words} - {"_"}
        display.say(f"{file}: {len(sentences):,} sentences, {n_words:,} words, {len(labels):,} relations")
        patience = None if dev is None else options["patience"]
        run = partial(fit, parser, sentences, dev=held_out, patience=patience)
        train_and_save(run, parser, model, options, display, "LAS")
