"""Training on files that the workers of a cluster read: `crfkit train FILE... --cluster ADDRESS`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from crfkit.cli.columns import Example, check_labels, check_rows, inputs_and_labels, read_labelled
from crfkit.cli.estimator import choose_features, estimator_of
from crfkit.cli.progress import Display
from crfkit.cli.resources import describe_resources
from crfkit.cli.saving import check_outputs, fit, train_and_save
from crfkit.errors import InputError, ShapeError

CHUNK = 1 << 18  # positions that a worker looks at together
_NEEDS_SEQUENCES = ("allowed_column", "folds", "attributes", "costs", "segment_template", "separator")


class FileSummary(NamedTuple):
    """What the command says of a training file, and chooses features by."""

    path: str
    n_sequences: int
    n_words: int
    n_columns: int
    separator: str
    labels: frozenset[str]


def summarize_file(path: Path, conllu: bool) -> FileSummary:
    """On a worker. Errors are those of `read_labelled`."""
    from crfkit.features import ColumnRows

    n_sequences = n_words = n_columns = 0
    labels: set[str] = set()
    separator = ""
    for rows in ColumnRows.read_shards(path, CHUNK, n_threads=1):
        labelled = check_rows(rows, separator=None, label_column=-1, conllu=conllu)
        if not n_sequences:
            n_columns, separator = rows.n_columns, rows.separator
        for own in labelled.labels or ():
            n_sequences, n_words = n_sequences + 1, n_words + len(own)
            labels.update(own)
    return FileSummary(str(path), n_sequences, n_words, n_columns, separator, frozenset(labels))


def can_read_on_workers(
    files: Sequence[Path], options: Mapping[str, Any], display: Display, client: Any
) -> bool:
    """Whether workers read the files: they have them, and no option asks for the sequences here.

    True also where a worker does not have one of several files, or others have the file: then reading says so.
    """
    from crfkit.distributed import missing_files

    here = len(files) == 1 and files[0].exists()
    obstacle = next((name for name in _NEEDS_SEQUENCES if options[name]), None)
    if options["label_column"] != -1:
        obstacle = "label_column"
    if options["structure"] != "chain":
        obstacle = "structure"
    if options["bigrams"] not in (None, "observed"):
        obstacle = "bigrams"
    if options["min_count"] == "auto":
        obstacle = "min_count"
    if obstacle is not None and len(files) > 1:
        option = "--cost" if obstacle == "costs" else f"--{obstacle.replace('_', '-')}"
        raise InputError(f"{option} needs one file, which is read here, and {len(files)} were given")
    piped = any(str(file) == "-" for file in files)
    if piped and len(files) > 1:
        raise InputError(f"- is standard input, which is read here, and {len(files)} files were given")
    if piped or obstacle is not None or (here and not files[0].is_file()):
        return False
    missing = missing_files(client, files)
    if here and all(path is not None for path in missing.values()):
        display.say(f"{files[0]}: no worker has it; it is read here and sent to them")
        return False
    return True


def train_on_workers(
    files: Sequence[Path],
    model: Path,
    dev: Path | None,
    options: dict[str, Any],
    display: Display,
    client: Any,
) -> None:
    """What the command does for files that workers read: sequences never pass through this process."""
    from crfkit.distributed import map_files
    from crfkit.evaluation import metric_for
    from crfkit.features import SHARD_SIZE, preset_note

    name = str(files[0]) if len(files) == 1 else f"{len(files)} files"
    display.stage(f"workers read {name}")
    check_outputs(
        model, options["checkpoint"], (*files, dev, options["template"], options["wapiti_patterns"])
    )
    conllu = any(options[name] for name in ("template", "wapiti_patterns", "plain_columns"))
    found: list[FileSummary] = map_files(client, partial(summarize_file, conllu=conllu), files)
    for other in found[1:]:
        if other.n_columns != found[0].n_columns:
            raise ShapeError(
                f"{other.path}: rows have {other.n_columns} columns, expected {found[0].n_columns} as before"
            )
    labels = frozenset[str]().union(*(own.labels for own in found))
    n_inputs = found[0].n_columns - 1
    crf = estimator_of(choose_features(lambda: labels, n_inputs, options), options, client)
    reading = {"label_column": -1, "separator": found[0].separator}
    settings: dict[str, Any] = {"shard_size": options["shard_size"] or SHARD_SIZE}
    held_out: list[Example] = []
    if dev is not None:
        display.stage(f"reading {dev}", "sequences")
        columns: dict[str, Any] = {"n_columns": n_inputs + 1, "conllu": conllu, **reading}
        held_out = list(display.count(read_labelled(dev, **columns)))
        for example in () if options["allow_unknown"] else held_out:
            check_labels(example, set(labels), "the training file does not have the label")
    metric = metric_for(labels, [example.labels or [] for example in held_out])
    if dev is not None:
        settings |= {
            "dev": inputs_and_labels(held_out),
            "metric": metric,
            "patience": options["patience"],
        }
    n_sequences, n_words = sum(own.n_sequences for own in found), sum(own.n_words for own in found)
    display.say(
        f"{name}: {n_sequences:,} sequences, {n_words:,} words, {len(labels):,} labels, read by workers"
    )
    if isinstance(crf.features, str) and (note := preset_note(crf.features, n_inputs)):
        display.say(f"{name}: {note}")
    for line in describe_resources(crf.resources):
        display.say(line)
    run = partial(fit, crf, [str(file.absolute()) for file in files], **settings)
    train_and_save(run, crf, model, options, display, metric.title, reading)
