"""Training runs of commands: the iterations shown, Ctrl-C and SIGTERM handled, the model saved."""

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from crfkit.cli.options import safety_of
from crfkit.cli.progress import Display
from crfkit.cli.streams import BAD_INPUT, check_output, complain
from crfkit.errors import InputError

if TYPE_CHECKING:
    from crfkit.models import CRF, Parser
    from crfkit.pipeline import TreebankTagger

# Exit status after Ctrl-C (128 + SIGINT) and after SIGTERM: a script that goes on would take the model for finished.
INTERRUPTED, TERMINATED = 130, 143
_SHOWN = 8  # patterns of a round that are named
_TERMINATION = "crfkit.termination"  # in the context of the command


@contextmanager
def catch_termination() -> Iterator[None]:
    """In this block SIGTERM is what Ctrl-C is; `was_terminated` tells which of them it was."""
    from crfkit.models import terminable

    with terminable() as termination:
        click.get_current_context().meta[_TERMINATION] = termination
        yield


def was_terminated() -> bool:
    """Whether SIGTERM has arrived."""
    termination = click.get_current_context().meta.get(_TERMINATION)
    return termination is not None and termination.received


def end_interrupted(words: str) -> NoReturn:
    """End the command after Ctrl-C or SIGTERM."""
    terminated = was_terminated()
    complain(f"crfkit: {'terminated' if terminated else 'interrupted'}{words}")
    click.get_current_context().exit(TERMINATED if terminated else INTERRUPTED)


def check_outputs(model: Path, checkpoint: Path | None, sources: Sequence[Path | None]) -> None:
    """Refuse, before any work, files that would replace what they are made of, or that cannot be written."""
    from crfkit.models import check_writable

    for name, output in (("model", model), ("checkpoint", checkpoint)):
        if output is not None:
            check_output(output, sources, f"the {name}")
            check_writable(output)
    if checkpoint is not None and checkpoint.resolve() == model.resolve():
        raise InputError(f"{model}: the model would replace the checkpoint, expected two paths")


def fit(model: "CRF | Parser | TreebankTagger", *data: Any, **settings: Any) -> bool:
    """Train a model; True when Ctrl-C ended it, with the best weights until then."""
    from crfkit.models import SequencesSkipped, TrainingInterrupted, UnknownLabels
    from crfkit.optimizers import StopReason

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TrainingInterrupted)  # the exit status and the last line tell
        warnings.simplefilter("ignore", UnknownLabels)  # asked for
        warnings.simplefilter("ignore", SequencesSkipped)  # asked for, and counted before
        model.fit(*data, **settings)
    return model.stop_reason_ == StopReason.INTERRUPTED


def train_and_save(
    train: Callable[..., bool],
    model: "CRF | Parser | TreebankTagger",
    path: Path,
    options: dict[str, Any],
    display: Display,
    dev_name: str,
    metadata: Mapping[str, Any] | None = None,
) -> None:
    """Show the iterations of `train`, which trains the model and tells whether Ctrl-C ended it; then save the model."""
    from crfkit.models import SecondsLeft

    seconds_left = SecondsLeft.of(model.optimizer, options["time_budget"])
    with display.training(seconds_left, dev_name) as callback:
        interrupted = train(callback=callback, **safety_of(options))
    display.stage(f"writing {path}")
    bundle = bool(options.get("bundle"))
    keep_model(model, path, display.say, interrupted=interrupted, metadata=metadata, bundle=bundle)


def keep_model(
    model: "CRF | Parser | TreebankTagger",
    path: Path,
    say: Callable[[str], None],
    *,
    interrupted: bool,
    metadata: Mapping[str, Any] | None = None,
    bundle: bool = False,
) -> None:
    """Save a trained model and say why its training ended; after Ctrl-C, end the command with the status of that.

    Where the model cannot be written to its path, as on a full disk, it goes to another one, and the status is that of an
    error.
    """
    from crfkit.models import CRF

    if interrupted and not model.weights_.any():  # a first pass that was interrupted has learned something
        end_interrupted("")
    found = save_model(partial(model.save, metadata=metadata, bundle=bundle), path)
    sizes = f"{len(model.weights_):,} weights, {found.stat().st_size / 1e6:.1f} MB"
    crf = getattr(model, "crf_", model)  # of a tagger
    if isinstance(crf, CRF):
        for line in _grown_words(crf):
            say(line)
        if hasattr(crf, "l2_search_"):
            say(crf.l2_search_.reason)
        sizes = f"{crf.n_features_:,} features, {sizes}"
    if model.optimizer == "auto":
        say(model.optimizer_reason_)
    say(f"{model.stop_message_}; the model of iteration {model.n_iter_} is in {found}")
    say(sizes)
    if interrupted:
        end_interrupted(f"; the best model so far is in {found}")
    if found != path:
        click.get_current_context().exit(BAD_INPUT)


def save_model(save: Callable[[Path], None], path: Path) -> Path:
    """Save a model where it is to go, or else where there is space; the path that it has. Signals wait meanwhile."""
    from crfkit.models import postpone_signals, save_elsewhere

    with postpone_signals():
        try:
            save(path)
            return path
        except InputError as error:
            other = save_elsewhere(save, path)
            if other is None:
                raise
            complain(f"crfkit: {error}; the model is in {other}")
            return other


def _grown_words(crf: "CRF") -> Iterator[str]:
    """What is to be said of the rounds in which patterns grew, if they did."""
    for number, found in enumerate(getattr(crf, "growth_", ())):
        shown = "; ".join(found.joined[:_SHOWN]) + "; …" * (len(found.joined) > _SHOWN)
        joined = f", {len(found.joined):,} new: {shown}" if found.joined else ""
        yield (
            f"round {number}: {found.n_patterns:,} patterns, {found.n_states:.1f} states a position; "
            "held-out log-likelihood "
            f"{found.log_likelihood:.1f}, score {found.score:.4f}{joined}"
        )
