"""Training on an encoded data set: `crfkit train FOLDER`."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from crfkit.cli.columns import check_labels, inputs_and_labels, read_labelled
from crfkit.cli.estimator import dataset_features, estimator_of
from crfkit.cli.progress import Display
from crfkit.cli.saving import check_outputs, fit, train_and_save
from crfkit.errors import InputError


def train_on_dataset(
    folder: Path, model: Path, dev: Path | None, options: dict[str, Any], display: Display, client: Any
) -> None:
    """What the command does for an encoded data set: features and columns are those that it was encoded with."""
    from crfkit.data import open_dataset
    from crfkit.evaluation import metric_for

    for name in ("allowed_column", "folds", "attributes", "costs", "segment_template"):
        if options[name]:
            option = "--cost" if name == "costs" else f"--{name.replace('_', '-')}"
            raise InputError(f"{option} needs a file, and {folder} is a data set")
    check_outputs(model, options["checkpoint"], (*sorted(folder.iterdir()), dev))
    dataset = open_dataset(folder)
    reading = {"label_column": -1, "separator": None, **dataset.settings.get("reading", {})}
    if options["hash_bits"] is None:
        options = {**options, "hash_bits": dataset.settings.get("hash_bits")}
    crf = estimator_of(dataset_features(dataset, options), options, client)
    held_out = None
    if dev is not None:
        display.stage(f"reading {dev}", "sequences")
        held_out = list(display.count(read_labelled(dev, conllu=True, **reading)))
        for example in () if options["allow_unknown"] else held_out:
            check_labels(example, set(dataset.labels), "the data set does not have the label")
    metric = metric_for(dataset.labels, [example.labels or [] for example in held_out or ()])
    display.say(repr(dataset).strip("<>").removeprefix("EncodedDataset "))
    settings: dict[str, Any] = {"shard_size": options["shard_size"]}
    if held_out is not None:
        dev_set = inputs_and_labels(held_out)
        settings |= {"dev": dev_set, "metric": metric, "patience": options["patience"]}
    train_and_save(
        partial(fit, crf, dataset, **settings), crf, model, options, display, metric.title, reading
    )
