"""`crfkit train-tagger`: a tagger of treebanks."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from crfkit.cli.options import model_option, optimizer_of, training_options, words_option
from crfkit.cli.progress import Display
from crfkit.cli.resources import bundle_option, open_resources, resource_option
from crfkit.cli.saving import catch_termination, check_outputs, fit, train_and_save

if TYPE_CHECKING:
    from crfkit.data import Sentence
    from crfkit.features import Resource
    from crfkit.pipeline import ChosenCRF, TagColumns, WordList


def choose_settings(
    columns: "TagColumns",
    sentences: "list[Sentence]",
    words: "WordList | None",
    resources: "dict[str, Resource] | None",
    options: dict[str, Any],
) -> "ChosenCRF":
    """The CRF for the tags of a treebank, with what the options of the command ask for instead."""
    from crfkit.models import scale_strengths
    from crfkit.pipeline import choose_crf, choose_for_treebank

    if options["features"] is None:
        chosen = choose_for_treebank(columns, sentences, words, options["threads"], resources)
    else:
        labels = columns.known_labels(sentences)
        chosen = choose_crf(columns, labels, options["threads"], resources=resources)
    given = {name: options[name] for name in ("features", "l2", "min_count") if options[name] is not None}
    if "l2" in given and "features" not in given:
        given["l2"] = scale_strengths(chosen.crf.l2, given["l2"])
    of_optimizer = (
        options["optimizer"],
        options["max_iterations"],
        options["tolerance"],
        options["settings"],
    )
    if any(of_optimizer):
        given["optimizer"] = optimizer_of(options, base=chosen.crf.optimizer)
    chosen.crf.set_params(**given)
    return chosen._replace(
        reason=", but ".join([chosen.reason, *([f"{', '.join(given)} as given"] * bool(given))])
    )


@click.command("train-tagger", short_help="Train a tagger of words on a treebank (CoNLL-U).")
@click.argument("file", type=click.Path(path_type=Path))
@model_option
@click.option(
    "--tag",
    default="upos",
    show_default=True,
    metavar="COLUMNS",
    help="What to learn: upos, xpos, feats, or several as one joint tag, such as upos+feats.",
)
@click.option("--features", metavar="PRESET", help="Ready-made features.  [default: by the number of tags]")
@click.option("--l2", type=float, help="Strength of the penalty ½·l2·|w|².  [default: by the number of tags]")
@click.option(
    "--min-count",
    type=int,
    help="Leave out features seen at fewer words.  [default: by the number of tags]",
)
@words_option
@resource_option
@bundle_option
@training_options(None, "treebank")
@catch_termination()
def command(
    file: Path, model: Path, dev: Path | None, quiet: bool, tag: str, words: Path | None, **options: Any
) -> None:
    """Train a tagger on the words of FILE (CoNLL-U) and write it to MODEL.

    `crfkit tag MODEL TREEBANK` fills the column, or columns, in place. Words whose UPOS or XPOS is `_` may have any tag.
    Features, tag dictionary, transitions and optimizer go by the number of tags, unless options say otherwise.

    Ctrl-C ends training, saves the best model so far and exits with status 130; SIGTERM does so with 143. A
    run with --checkpoint that was killed goes on with --resume, and ends as if nothing had happened.
    """
    from crfkit.data import read_conllu
    from crfkit.pipeline import TagColumns, TreebankTagger, WordList

    columns = TagColumns.parse(tag)
    with Display(quiet=quiet) as display:
        display.stage(f"reading {file}", "sentences")
        check_outputs(model, options["checkpoint"], (file, dev))
        sentences = list(display.count(read_conllu(file)))
        held_out = None if dev is None else list(display.count(read_conllu(dev)))
        n_words = sum(len(sentence.words) for sentence in sentences)
        listed = None if words is None else WordList.read(words)
        chosen = choose_settings(columns, sentences, listed, open_resources(options["resources"]), options)
        tagger = TreebankTagger(str(columns), chosen.crf, options["threads"], listed)
        display.say(f"{file}: {len(sentences):,} sentences, {n_words:,} words, {chosen.reason}")
        patience = None if dev is None else options["patience"]
        run = partial(fit, tagger, sentences, dev=held_out, patience=patience)
        train_and_save(run, tagger, model, options, display, "accuracy")
