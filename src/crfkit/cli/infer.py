"""`crfkit infer`: marginals, partition function or best assignment of a factor graph in a UAI file."""

import inspect
import json
import math
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, Any

import click
import numpy as np

from crfkit.cli.options import quiet_option, read_settings
from crfkit.cli.progress import Display
from crfkit.cli.streams import check_output, complain, open_output, writes_to_terminal
from crfkit.errors import ArgumentError, InputError, NoOutputError, SizeLimitError

if TYPE_CHECKING:
    from crfkit.structures import FactorGraph

TASKS = ("mar", "pr", "map")
EXACT = "exact"


@dataclass(frozen=True)
class Method:
    """How a question is answered: functions of `crfkit.inference` for sums (PR, MAR) and maxima (MAP)."""

    sums: str | None
    maxima: str | None
    settings: Mapping[str, Any] = field(default_factory=dict)
    has_partition: bool = True  # whether it estimates log Z

    def function(self, task: str) -> str | None:
        """The name of the function for a task, if there is one."""
        if task == "map":
            return self.maxima
        return self.sums if task == "mar" or self.has_partition else None


METHODS = {
    EXACT: Method("marginals", "decode"),
    "bp": Method("belief_propagation", "max_product"),
    "trw": Method("belief_propagation", "max_product", {"tree_reweighted": True}),
    "mean-field": Method("mean_field", None),
    "gibbs": Method("gibbs", None, has_partition=False),
    "dual": Method(None, "map_estimate"),
}
_NO_SETTINGS = (
    "structure",
    "graph",
    "scores",
    "allowed",
    "tree_reweighted",
)  # arguments that are given otherwise


@dataclass(frozen=True)
class Answer:
    """What a task asks for, and how good it is."""

    log_partition: float | None = None
    marginals: Mapping[str, Any] | None = None
    values: Mapping[str, Any] | None = None  # an assignment
    figures: Mapping[str, Any] = field(
        default_factory=dict
    )  # converged, status and bounds of an approximate method
    warning: str | None = None


def infer(
    graph: "FactorGraph", task: str, method: str = EXACT, settings: Mapping[str, Any] | None = None
) -> Answer:
    """Answer a task: "mar" (marginals of all variables), "pr" (log Z) or "map" (the best assignment)."""
    from crfkit import inference

    chosen = METHODS[method]
    name = "log_partition" if method == EXACT and task == "pr" else chosen.function(task)
    if name is None:
        able = ", ".join(other for other, known in METHODS.items() if known.function(task))
        raise InputError(f"--method {method} has no --task {task}, expected one of {able}")
    function = getattr(inference, name)
    _check_settings(function, settings or {}, method)
    found = function(graph, **chosen.settings, **(settings or {}))
    if method != EXACT:
        return _approximate(task, method, found)
    if task == "pr":
        return Answer(log_partition=found)
    return (
        Answer(marginals=found)
        if task == "mar"
        else Answer(values=found.output, figures={"score": found.score})
    )


def _check_settings(function: Callable[..., Any], settings: Mapping[str, Any], method: str) -> None:
    known = [name for name in inspect.signature(function).parameters if name not in _NO_SETTINGS]
    for name in settings:
        if name not in known:
            raise InputError(f"--method {method} has no setting {name}, expected one of {', '.join(known)}")


def _approximate(task: str, method: str, found: Any) -> Answer:
    """An answer of a method that may not have converged, and says so."""
    names = ("status", "converged", "residual", "iterations", "exact", "bound", "score", "optimal", "r_hat")
    figures = {name: getattr(found, name) for name in names if hasattr(found, name)}
    warning = None if found.converged else f"{method}: {found.status}"
    if task == "map":
        if found.output is None:
            raise NoOutputError(f"{method}: {found.status}")
        if math.isfinite(found.bound) and not found.optimal:
            warning = (
                f"{method}: {found.status}; the score is {found.score:.9g}, none is above {found.bound:.9g}"
            )
        return Answer(values=found.output, figures=figures, warning=warning)
    if task == "pr":
        return Answer(log_partition=float(found.log_partition), figures=figures, warning=warning)
    return Answer(marginals=found.marginals, figures=figures, warning=warning)


def write_answer(answer: Answer, stream: IO[str]) -> None:
    """In the format of UAI results."""
    from crfkit.data import write_uai_result

    values = None if answer.values is None else np.asarray(answer.values)
    write_uai_result(stream, log_partition=answer.log_partition, marginals=answer.marginals, values=values)


def write_json(answer: Answer, method: str, stream: IO[str]) -> None:
    """As one JSON object; numbers that JSON does not have are texts."""
    content: dict[str, Any] = {"method": method}
    if answer.log_partition is not None:
        content |= {"log_partition": answer.log_partition, "log10_z": answer.log_partition / math.log(10)}
    if answer.marginals is not None:
        content["marginals"] = {name: np.asarray(row).tolist() for name, row in answer.marginals.items()}
    if answer.values is not None:
        content["values"] = dict(answer.values)
    content |= answer.figures
    json.dump({key: _finite(value) for key, value in content.items()}, stream)
    stream.write("\n")


def _finite(value: Any) -> Any:
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


@click.command("infer", short_help="Answer questions on a factor graph in a UAI file.")
@click.argument("model", type=str)
@click.option(
    "--evidence", type=str, metavar="FILE", help="Values of observed variables, a UAI evidence file."
)
@click.option(
    "--task",
    type=click.Choice(TASKS),
    default="mar",
    show_default=True,
    help="Marginals of all variables, the partition function, or the assignment with the highest score.",
)
@click.option(
    "--method",
    type=click.Choice([*METHODS]),
    default=EXACT,
    show_default=True,
    help="Exact; belief propagation, its tree-reweighted form, mean field, Gibbs sampling; for map also the dual bound.",
)
@click.option(
    "--memory-limit",
    metavar="SIZE",
    help="What exact inference may take, such as 4G.  [default: half of the memory]",
)
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="NAME=VALUE",
    help="A setting of an approximate method, such as damping=0.5; repeatable.",
)
@click.option("--json", "as_json", is_flag=True, help="Write one JSON object, not a UAI result.")
@click.option("-o", "--output", type=str, metavar="FILE", help="Write here instead of to standard output.")
@quiet_option
def command(
    model: str,
    evidence: str | None,
    task: str,
    method: str,
    memory_limit: str | None,
    settings: tuple[str, ...],
    as_json: bool,
    output: str | None,
    quiet: bool,
) -> None:
    """Answer a question on MODEL, a factor graph in a UAI file (`-`: standard input; .gz and .xz are unpacked).

    The result has the format of UAI results. Exact inference that needs more memory than the limit is refused before it
    begins. Where an approximate method has not converged, the error stream says so.
    """
    from crfkit.data import read_uai

    check_output(output, (model, evidence), "the output")
    given = read_settings(settings)
    if memory_limit is not None:
        if method != EXACT:
            raise ArgumentError(f"--memory-limit is for --method exact, got --method {method}")
        given["memory_limit"] = memory_limit
    with Display(quiet=quiet, stages=not writes_to_terminal(output)) as display:
        display.stage(f"loading {model}")
        graph = read_uai(sys.stdin.buffer if model == "-" else model, evidence)
        display.stage(
            f"{method} inference on {len(graph.variables):,} variables, {len(graph.factors):,} factors"
        )
        try:
            answer = infer(graph, task, method, given)
        except SizeLimitError as error:
            raise SizeLimitError(f"{model}: {error} An approximate answer: --method bp") from None
        except NoOutputError as error:
            raise NoOutputError(f"{model}: {error}") from None
    if answer.warning:
        complain(f"crfkit: {answer.warning}")
    with open_output(output) as stream:
        if as_json:
            write_json(answer, method, stream)
        else:
            write_answer(answer, stream)
