"""`crfkit train`: a model from a column file, or from a file of attributes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from crfkit.cli.cluster_training import can_read_on_workers, train_on_workers
from crfkit.cli.columns import (
    Example,
    check_label,
    check_labels,
    inputs_and_labels,
    read_attribute_examples,
    read_column_examples,
    read_labelled,
)
from crfkit.cli.constraints import (
    allowed_column_option,
    allowed_of,
    check_bigrams,
    check_known,
    label_column_beside,
    suggest_bigrams,
    take_allowed,
)
from crfkit.cli.costs import cost_option, margin_option, parse_costs
from crfkit.cli.dataset_training import train_on_dataset
from crfkit.cli.estimator import check_cluster_optimizer, labels_of, new_model
from crfkit.cli.folds import check_folds, cross_validation
from crfkit.cli.machines import cluster_options, open_cluster
from crfkit.cli.options import (
    MinCount,
    decode_option,
    hash_option,
    l1_option,
    model_option,
    states_option,
    training_options,
)
from crfkit.cli.progress import Display
from crfkit.cli.resources import bundle_option, describe_resources, resource_option
from crfkit.cli.saving import catch_termination, check_outputs, end_interrupted, fit, train_and_save
from crfkit.cli.streams import open_input
from crfkit.cli.structures import structure_options
from crfkit.errors import InputError

if TYPE_CHECKING:
    from crfkit.evaluation import Metric
    from crfkit.models import CRF

_FACETS = ("auto", "characters", "features", "parts")
_OR_PRESET = "  [default: the preset's, else {}]"


def train(
    model: CRF,
    examples: Sequence[Example],
    *,
    dev: Sequence[Example] | None = None,
    metric: Metric | None = None,
    patience: int | None = None,
    allow_unknown: bool = False,
    **settings: Any,
) -> bool:
    """Train a model on column data; True when Ctrl-C ended it, with the best weights until then.

    A label of the dev data that the training data does not have is refused; `allow_unknown` counts it as an error.
    `settings` are other arguments of `CRF.fit`: callback, costs, time budget, checkpoint, the model to begin with.
    """
    known = labels_of(examples)
    if dev is not None:
        held_out = (*inputs_and_labels(dev), allowed_of(dev, known))
        settings |= {"dev": held_out, "metric": metric, "patience": patience}
        for example in () if allow_unknown else dev:
            check_labels(example, known, "the training file does not have the label")
    return fit(model, *inputs_and_labels(examples), allowed=allowed_of(examples, known), **settings)


@click.command("train", short_help="Train a model on a file of labelled sequences.")
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path(path_type=Path))
@model_option
@click.option(
    "--template", type=click.Path(path_type=Path), help="Feature template, in the language of CRF++."
)
@click.option(
    "--wapiti-patterns", type=click.Path(path_type=Path), help="Feature patterns, in the language of Wapiti."
)
@click.option(
    "--attributes",
    is_flag=True,
    help="FILE has CRFsuite's form: a label and the attributes of one word a line, between tabs.",
)
@click.option(
    "--features",
    metavar="PRESET",
    help="Ready-made features: names, pos, chunks, morphology, addresses or references.",
)
@click.option("--allow-unknown", is_flag=True, help="Count labels that only the dev file has as errors.")
@click.option(
    "--folds",
    type=click.IntRange(min=2),
    metavar="N",
    help="Cross-validate first: N models, each without one Nth of FILE, and how well they label it.",
)
@l1_option
@click.option(
    "--l2",
    metavar="NUMBER",
    help="Strength of the penalty ½·l2·|w|²; auto: the one that makes held-out sequences of FILE most likely."
    + _OR_PRESET.format(1),
)
@click.option(
    "--block-l2", multiple=True, metavar="NAME=L2", help="Another l2 for one block of features; repeatable."
)
@click.option(
    "--min-count",
    type=MinCount(),
    help="Leave out features seen at fewer positions; auto: 1, and 2 for 100,000 words or more."
    f"{_OR_PRESET.format(1)}",
)
@hash_option
@decode_option
@states_option
@click.option(
    "--all-possible-states/--seen-states",
    default=None,
    help=f"A weight for every feature and label, or those seen together.{_OR_PRESET.format('seen-states')}",
)
@click.option(
    "--all-possible-transitions/--seen-transitions",
    default=None,
    help="Weights for all pairs of neighbouring labels, or those seen."
    f"{_OR_PRESET.format('all-possible-transitions')}",
)
@click.option(
    "--facets",
    type=click.Choice([name + end for end in ("", "+labels") for name in _FACETS] + ["none"]),
    help=f"What labels are made of, so that they share weights.{_OR_PRESET.format('none')}",
)
@click.option(
    "--related-forms",
    is_flag=True,
    help="With a tag dictionary, in which unknown words have the labels that forms with the same stem give them.",
)
@click.option(
    "--tag-dictionary/--no-tag-dictionary",
    default=None,
    help=f"Words have only the labels of the training file, or of words that end alike.{_OR_PRESET.format('no')}",
)
@resource_option
@bundle_option
@cost_option
@margin_option
@structure_options
@cluster_options
@allowed_column_option
@click.option(
    "--label-column", default=-1, show_default=True, help="Column of the label, from 0; -1 is the last."
)
@click.option(
    "--separator", help="What stands between columns.  [default: tabs where there are, else blanks]"
)
@click.option("--plain-columns", is_flag=True, help="Read what looks like CoNLL-U as columns like any other.")
@training_options(None, "file", "the preset's, else lbfgs")
@catch_termination()
def command(files: tuple[Path, ...], model: Path, dev: Path | None, quiet: bool, **options: Any) -> None:
    """Train a model on FILE and write it to MODEL. Several files need --cluster, whose workers read them.

    FILE has one word a line: input columns and a label, in the last column unless --label-column says otherwise; a blank
    line ends a sentence. Without --template and --features, the preset names is
    used for span labels such as B-LOC, and pos for all others: features of the word in column 0, and for names of the
    part of speech in column 1, where there is one.
    With --attributes, FILE is one of CRFsuite's. A data set of crfkit encode may have any size.
    Treebanks (CoNLL-U) are for train-tagger and train-parser.

    Ctrl-C ends training, saves the best model so far and exits with status 130; SIGTERM does so with 143. A run
    with --checkpoint that was killed goes on with --resume, and ends as if nothing had happened.
    """
    with Display(quiet=quiet) as display, open_cluster(options["cluster"], display) as client:
        file, *others = files
        if client is not None:
            check_cluster_optimizer(options)
        if not others and file.is_dir():
            train_on_dataset(file, model, dev, options, display, client)
        elif client is not None and can_read_on_workers(files, options, display, client):
            train_on_workers(files, model, dev, options, display, client)
        elif others:
            raise InputError(
                f"{len(files)} files were given, expected one, or --cluster (or crfkit encode FILE... --out DATASET first)"
            )
        else:
            _train_and_keep(file, model, dev, options, display, client)


def _train_and_keep(
    file: Path, model: Path, dev: Path | None, options: dict[str, Any], display: Display, client: Any
) -> None:
    """What the command does, and shows; a client trains the model on its cluster."""
    from crfkit.evaluation import metric_for
    from crfkit.features import preset_note

    display.stage(f"reading {file}", "sequences")
    check_outputs(
        model,
        options["checkpoint"],
        (file, dev, options["template"], options["wapiti_patterns"], options["segment_template"]),
    )
    examples, held_out, reading = read_files(file, dev, options, display.count)
    n_inputs = len(examples[0].inputs[0])
    crf = new_model(examples, options, client)  # refuses options that do not go together
    costs = parse_costs(options["costs"])
    notes = [
        check_bigrams(examples, options["bigrams"], options["unseen"]),
        suggest_bigrams(examples, options["bigrams"] or crf.structure.chain.bigrams),
    ]
    metric = metric_for(labels_of(examples), [example.labels or [] for example in held_out or ()])
    n_words = sum(len(example.inputs) for example in examples)
    display.say(
        f"{file}: {len(examples):,} sequences, {n_words:,} words, {len(labels_of(examples)):,} labels"
    )
    if isinstance(crf.features, str):
        notes.insert(0, preset_note(crf.features, n_inputs))
    for note in filter(None, notes):
        display.say(f"{file}: {note}")
    for line in describe_resources(crf.resources):
        display.say(line)
    check_folds(options["folds"], len(examples))
    if options["folds"] is not None:
        display.stage(f"cross-validation with {options['folds']} parts")
        for line in cross_validation(
            examples, options["folds"], lambda rest: _fit(new_model(examples, options), rest, options)
        ):
            with display.standard_output():
                click.echo(line)
    run = partial(
        train,
        crf,
        examples,
        dev=held_out,
        metric=metric,
        patience=options["patience"],
        allow_unknown=options["allow_unknown"],
        costs=costs,
        shard_size=options["shard_size"],
    )
    train_and_save(run, crf, model, options, display, metric.title, reading)


def _fit(model: CRF, examples: Sequence[Example], options: dict[str, Any]) -> CRF:
    """A model of cross-validation, trained; Ctrl-C ends the command."""
    if train(model, examples, time_budget=options["time_budget"], costs=parse_costs(options["costs"])):
        end_interrupted(" in the cross-validation; there is no model")
    return model


def read_files(
    file: Path,
    dev: Path | None,
    options: dict[str, Any],
    counted: Callable[[Iterator[Example]], Iterator[Example]] = iter,
) -> tuple[Sequence[Example], Sequence[Example] | None, dict[str, Any]]:
    """The training file, the held-out one, and how the model is to read files: label column and separator.

    Sequences pass through `counted` one by one, unless the core reads them.
    """
    column, label_column = options["allowed_column"], options["label_column"]
    if options["attributes"]:
        return (*_read_attribute_files(file, dev, options, counted), {})
    reading = {"label_column": label_column, "separator": options["separator"]}
    # Whoever writes a template, or patterns, says which columns of CoNLL-U it reads.
    conllu = any(options[name] for name in ("template", "wapiti_patterns", "plain_columns"))
    natively = column is None and options["structure"] == "chain"

    def read(path: Path, **more: Any) -> Sequence[Example]:
        if natively and isinstance(source := open_input(str(path)), Path):
            return read_column_examples(source, conllu=conllu, **reading, **more)
        return list(counted(read_labelled(path, conllu=conllu, **reading, **more)))

    examples = read(file)
    n_columns = len(examples[0].inputs[0]) + 1
    if reading["separator"] is None:
        reading["separator"] = examples[0].origin.separator
    held_out = None if dev is None else read(dev, n_columns=n_columns)
    if column is not None:
        examples = list(take_allowed(examples, column, label_column, training=True))
        examples = list(check_known(examples, labels_of(examples)))
        if held_out is not None:
            held_out = list(check_known(take_allowed(held_out, column, label_column), labels_of(examples)))
        reading["label_column"] = label_column_beside(column, label_column, n_columns)
    return examples, held_out, reading


def _read_attribute_files(
    file: Path,
    dev: Path | None,
    options: Mapping[str, Any],
    counted: Callable[[Iterator[Example]], Iterator[Example]],
) -> tuple[list[Example], list[Example] | None]:
    for name, unset in (("allowed_column", None), ("separator", None), ("label_column", -1)):
        if options[name] != unset:
            raise InputError(
                f"--{name.replace('_', '-')} is for columns, and with --attributes FILE has none"
            )
    examples = list(counted(read_attribute_examples(file)))
    if not examples:
        raise InputError(f"{file}: found no sequence, expected at least one")
    for example in examples:
        for position, label in enumerate(example.labels or ()):
            check_label(label, example.origin.place(position))
    return examples, None if dev is None else list(counted(read_attribute_examples(dev)))
