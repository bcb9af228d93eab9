"""Options that commands share: threads and silence, optimizer, held-out data, time budget, checkpoints."""

from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, TypeVar

import click

from crfkit.errors import InputError
from crfkit.optimizers import AUTO, OPTIMIZERS, Optimizer, optimizer_named

Command = TypeVar("Command", bound=Callable[..., Any])
WORDS = {"true": True, "false": False, "none": None}

quiet_option = click.option("--quiet", is_flag=True, help="Print only errors.")
threads_option = click.option(
    "--threads", type=click.IntRange(min=1), help="Number of threads.  [default: all processors]"
)
words_option = click.option(
    "--words",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Words of the language, one a line, such as those of a spelling checker: they tell a tagger of unknown words.",
)
separator_option = click.option(
    "--separator", help="What stands between columns.  [default: what did in the training file]"
)
model_option = click.option(
    "--model", required=True, type=click.Path(path_type=Path), help="Where the model file goes."
)
hash_option = click.option(
    "--hash-bits",
    type=click.IntRange(1, 30),
    metavar="N",
    help="Know features by 2^N buckets of their names, which bounds memory; those of one bucket share weights.",
)
decode_option = click.option(
    "--decode",
    type=click.Choice(("viterbi", "spans", AUTO)),
    help="How the model chooses labels: the best ones of a sequence together (viterbi), those of likely spans (spans), or "
    "the latter where the labels are those of spans (auto).  [default: the preset's, else viterbi]",
)
states_option = click.option(
    "--span-states",
    type=click.Choice(("iobes", AUTO, "none")),
    help="For labels in BIO: weights of their own for first, inside, last and single positions of spans; auto: where the "
    "labels are such.  [default: the preset's, else none]",
)
l1_option = click.option("--l1", default=0.0, show_default=True, help="Strength of the penalty l1·|w|.")


class MinCount(click.ParamType[int | str]):
    """A number of positions, or "auto"."""

    name = "integer or auto"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int | str:
        """As `CRF` takes it."""
        if value == AUTO:
            return AUTO
        try:
            return int(value)
        except ValueError:
            self.fail(f"{value!r} is no number, nor {AUTO}.", param, ctx)


def add_options(*options: Callable[[Any], Any]) -> Callable[[Command], Command]:
    """Several options as one, in the order in which the help lists them."""

    def add(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return add


def training_options(
    optimizer: str | None, held_out: str, otherwise: str = "by the number of tags"
) -> Callable[[Command], Command]:
    """The options of all commands that train, with their default optimizer and what they hold out: a file, a treebank.

    `otherwise` says which optimizer it is where there is no default.
    """
    by_data = "" if optimizer else f"  [default: {otherwise}]"
    return add_options(
        click.option(
            "--dev",
            type=click.Path(path_type=Path),
            help=f"Held-out {held_out}: keep the model that is best on it.",
        ),
        click.option(
            "--patience",
            default=10,
            show_default=True,
            type=click.IntRange(min=1),
            help="Iterations without a better dev score.",
        ),
        click.option(
            "--optimizer",
            default=optimizer,
            show_default=True,
            metavar="NAME",
            help=f"How to minimise: {', '.join((AUTO, *OPTIMIZERS))}.{by_data}",
        ),
        click.option("--max-iterations", type=int, help="Iterations at most.  [default: the optimizer's]"),
        click.option(
            "--tolerance",
            type=float,
            help="Stop when the gradient fell to this share.  [default: the optimizer's]",
        ),
        click.option(
            "--set",
            "settings",
            multiple=True,
            metavar="NAME=VALUE",
            help="Another setting of the optimizer, such as rate=0.1 or memory=30; repeatable.",
        ),
        click.option(
            "--time-budget", type=float, metavar="SECONDS", help="End with the iteration that uses this up."
        ),
        click.option(
            "--warm-start",
            type=click.Path(path_type=Path),
            metavar="MODEL",
            help="Begin with the weights of this model.",
        ),
        click.option(
            "--checkpoint",
            type=click.Path(path_type=Path),
            metavar="FILE",
            help="Keep the state of the training here.",
        ),
        click.option(
            "--every",
            default=10,
            show_default=True,
            type=click.IntRange(min=1),
            help="Iterations between checkpoints.",
        ),
        click.option("--resume", is_flag=True, help="Go on from the checkpoint, if there is one."),
        threads_option,
        quiet_option,
    )


def optimizer_of(options: dict[str, Any], base: Optimizer | str | None = None) -> Optimizer | str:
    """The optimizer that the options ask for; a setting that it does not have is refused.

    Settings that are not given are those of `base`, where it is of the kind that is asked for; so is the kind.
    """
    name = options["optimizer"] or (base if isinstance(base, str) else type(base).__name__.lower())
    given = read_settings(options["settings"])
    for setting in ("max_iterations", "tolerance"):
        if options[setting] is not None:
            given[setting] = options[setting]
    if name == AUTO:
        if given:
            raise InputError(
                f"--optimizer auto decides {next(iter(given))} too, expected the name of an optimizer beside it"
            )
        return AUTO
    kind = optimizer_named(name)
    if kind is None:
        raise InputError(
            f"--optimizer {name}: there is no such one, expected {', '.join((AUTO, *OPTIMIZERS))}"
        )
    known = [field.name for field in fields(kind)]
    for setting in given:
        if setting not in known:
            raise InputError(
                f"--optimizer {name} has no setting {setting}, expected one of {', '.join(known)}"
            )
    try:
        optimizer: Optimizer = replace(base, **given) if isinstance(base, kind) else kind(**given)
    except (TypeError, ValueError) as error:
        raise InputError(str(error)) from None
    return optimizer


def safety_of(options: dict[str, Any]) -> dict[str, Any]:
    """The arguments of `CRF.fit` for time, start and checkpoints."""
    from crfkit.models import Checkpoint

    checkpoint = None
    if options["checkpoint"] is not None:
        checkpoint = Checkpoint(options["checkpoint"], options["every"], options["resume"])
    elif options["resume"]:
        raise InputError("--resume was given without --checkpoint, the file to go on from")
    return {"start": options["warm_start"], "checkpoint": checkpoint, "time_budget": options["time_budget"]}


def read_settings(texts: Sequence[str]) -> dict[str, Any]:
    """`["rate=0.1", …]` as settings: numbers, true, false and none as what they are, all else as text."""
    found: dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not (name and equals and value):
            raise InputError(f"--set {text}: expected name=value, such as rate=0.1")
        found[name] = _value(value)
    return found


def _value(text: str) -> Any:
    if text.lower() in WORDS:
        return WORDS[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text
