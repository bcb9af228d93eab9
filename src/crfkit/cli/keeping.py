"""Where a trained model goes, and how a training that ended is spoken of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from crfkit.cli.streams import check_output
from crfkit.cli.structures import grown_words
from crfkit.data import InputError

if TYPE_CHECKING:
    from crfkit.models import CRF, Parser

INTERRUPTED = (
    130  # exit status after Ctrl-C (128 + SIGINT): a script that goes on would take the model for finished
)


def check_outputs(model: Path, checkpoint: Path | None, sources: Sequence[Path | None]) -> None:
    """Refuse, before any work, files that would replace what they are made of, or that cannot be written."""
    from crfkit.models import check_writable

    for name, output in (("model", model), ("checkpoint", checkpoint)):
        if output is not None:
            check_output(output, sources, f"the {name}")
            check_writable(output)
    if checkpoint is not None and checkpoint.resolve() == model.resolve():
        raise InputError(f"{model}: the model would replace the checkpoint, expected two paths")


def keep_model(model: CRF | Parser, path: Path, say: Callable[[str], None], *, interrupted: bool) -> None:
    """Save a trained model and say why its training ended; after Ctrl-C, end the command with the status of that."""
    from crfkit.models import CRF

    if interrupted and model.n_iter_ == 0:
        raise KeyboardInterrupt
    model.save(path)
    sizes = f"{len(model.weights_):,} weights, {path.stat().st_size / 1e6:.1f} MB"
    if isinstance(model, CRF):
        for line in grown_words(model):
            say(line)
        sizes = f"{model.n_features_:,} features, {sizes}"
    if model.optimizer == "auto":
        say(model.optimizer_reason_)
    say(f"{model.stop_reason_}; the model of iteration {model.n_iter_} is in {path}")
    say(sizes)
    if interrupted:
        click.echo(f"crfkit: interrupted; the best model so far is in {path}", err=True)
        click.get_current_context().exit(INTERRUPTED)
