"""`crfkit train-parser`: a dependency parser from a treebank."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from crfkit.cli.keeping import check_outputs, ended_from_outside, keep_model
from crfkit.cli.optimizing import dev_options, optimizer_of, optimizer_options, safety_of, safety_options
from crfkit.cli.progress import Display, SecondsLeft, quiet_option

if TYPE_CHECKING:
    from crfkit.data import Sentence
    from crfkit.models import Parser, ProgressCallback


def train_parser(
    parser: Parser,
    sentences: Sequence[Sentence],
    *,
    dev: Sequence[Sentence] | None = None,
    patience: int | None = None,
    callback: ProgressCallback | None = None,
    safety: Mapping[str, Any] | None = None,
) -> bool:
    """Train a parser; True when Ctrl-C ended it, with the best weights until then.

    `safety` is what else `Parser.fit` is told: time budget, checkpoint, the parser to begin with.
    """
    from crfkit.models import TrainingInterrupted
    from crfkit.optimizers import StopReason

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TrainingInterrupted)  # said by the exit status and in words
        parser.fit(
            sentences,
            dev=dev,
            patience=None if dev is None else patience,
            callback=callback,
            **(safety or {}),
        )
    return parser.stop_reason_ == StopReason.INTERRUPTED


def new_parser(options: dict[str, Any]) -> Parser:
    """An untrained parser as the options of the command ask for it."""
    from crfkit.models import Parser

    given = {name: options[name] for name in ("l2", "min_count") if options[name] is not None}
    return Parser(
        optimizer=optimizer_of(options, base=Parser().optimizer),
        l1=options["l1"],
        single_root=not options["multi_root"],
        decode=options["decode"],
        n_threads=options["threads"],
        **given,
    )


@click.command("train-parser", short_help="Train a dependency parser on a treebank (CoNLL-U).")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--model", required=True, type=click.Path(path_type=Path), help="Where the model file goes.")
@dev_options("treebank")
@click.option("--multi-root", is_flag=True, help="Trees may have several roots.")
@click.option(
    "--decode",
    default="best",
    show_default=True,
    type=click.Choice(["best", "mbr"]),
    help="How to parse, the dev file too: the likeliest tree, or the one with the most arcs right in expectation.",
)
@click.option("--l1", default=0.0, show_default=True, help="Strength of the penalty l1·|w|.")
@click.option("--l2", type=float, help="Strength of the penalty ½·l2·|w|².  [default: the parser's]")
@click.option("--min-count", type=int, help="Leave out features seen at fewer arcs.  [default: the parser's]")
@optimizer_options("adagrad")
@safety_options
@click.option("--threads", type=click.IntRange(min=1), help="Number of threads.  [default: all processors]")
@quiet_option
@ended_from_outside()
def command(file: Path, model: Path, dev: Path | None, quiet: bool, **options: Any) -> None:
    """Train a dependency parser on FILE (CoNLL-U) and write it to MODEL.

    Words whose HEAD is `_` may have any head, and where DEPREL is `_` any relation: training needs no complete trees.

    Ctrl-C ends the training, saves the best model so far and exits with status 130; SIGTERM does so with 143. A
    training with --checkpoint that was killed goes on with --resume, and ends as if nothing had happened.
    """
    with Display(quiet=quiet) as display:
        _train_and_keep(file, model, dev, options, display)


def _train_and_keep(
    file: Path, model: Path, dev: Path | None, options: dict[str, Any], display: Display
) -> None:
    """What the command does, and shows."""
    from crfkit.data import read_conllu

    display.stage(f"reading {file}", "sentences")
    check_outputs(model, options["checkpoint"], (file, dev))
    parser = new_parser(options)
    sentences = list(display.counted(read_conllu(file)))
    held_out = None if dev is None else list(display.counted(read_conllu(dev)))
    n_words = sum(len(sentence.words) for sentence in sentences)
    labels = {word.deprel for sentence in sentences for word in sentence.words} - {"_"}
    display.say(f"{file}: {len(sentences):,} sentences, {n_words:,} words, {len(labels):,} relations")
    seconds_left = SecondsLeft.of(parser.optimizer, options["time_budget"])
    with display.training(seconds_left, "LAS") as callback:
        interrupted = train_parser(
            parser,
            sentences,
            dev=held_out,
            patience=options["patience"],
            callback=callback,
            safety=safety_of(options),
        )
    display.stage(f"writing {model}")
    keep_model(parser, model, display.say, interrupted=interrupted)
