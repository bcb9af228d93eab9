"""The parameters of `GraphCRF` as typed values: checked when training begins, and as JSON in model files."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from crfkit.counts import check_count
from crfkit.errors import ArgumentError, FileFormatError
from crfkit.features import GraphTemplate, import_path, placeholder
from crfkit.inference import read_memory_limit
from crfkit.models.checks import check_flag, check_optimizer, check_strength, count_threads
from crfkit.models.files import settings_file
from crfkit.models.files.file_arrays import path_setting, setting
from crfkit.models.files.function_list import explain_unnamed
from crfkit.models.settings import DEFAULT_OPTIMIZER
from crfkit.optimizers import Optimizer

OBJECTIVES = ("likelihood", "belief_propagation", "tree_reweighted", "pseudo_likelihood", "piecewise")
INFERENCE = ("exact", "belief_propagation", "tree_reweighted")
LARGEST_MEMORY = 1 << 62


@dataclass(frozen=True)
class GraphSettings:
    """The parameters of a `GraphCRF`, whose docstring explains them."""

    graph_template: GraphTemplate
    objective: str
    inference: str
    optimizer: Optimizer | str
    l1: float
    l2: float
    all_configurations: bool
    min_count: int
    memory_limit: float | str
    n_threads: int | None = None

    @property
    def memory_bytes(self) -> int:
        """`memory_limit` in bytes."""
        limit = None if self.memory_limit is None else read_memory_limit(self.memory_limit)
        if limit is None or limit < 1:
            raise ArgumentError(f'memory_limit is {self.memory_limit!r}, expected 1 byte or more, or "4G"')
        return int(min(limit, LARGEST_MEMORY))

    def check(self) -> None:
        """Refuse parameters that no model can be trained with."""
        if not callable(self.graph_template):
            raise ArgumentError(
                f"graph_template is {self.graph_template!r}, expected a function of an input and of a graph"
            )
        for name, value, known in (
            ("objective", self.objective, OBJECTIVES),
            ("inference", self.inference, INFERENCE),
        ):
            if value not in known:
                raise ArgumentError(f"{name} is {value!r}, expected one of {', '.join(known)}")
        check_optimizer(self.optimizer, self.l1)
        check_strength("l1", self.l1)
        check_strength("l2", self.l2)
        check_flag("all_configurations", self.all_configurations)
        check_count("min_count", self.min_count)
        check_count("memory_limit", self.memory_bytes, LARGEST_MEMORY)
        count_threads(self.n_threads)

    def to_json(self) -> dict[str, Any]:
        """What a model file keeps; threads belong to the machine, not to the model."""
        return {
            "graph_template": import_path(self.graph_template),
            "objective": self.objective,
            "inference": self.inference,
            "optimizer": settings_file.optimizer_to_json(self.optimizer),
            "l1": float(self.l1),
            "l2": float(self.l2),
            "all_configurations": bool(self.all_configurations),
            "min_count": int(self.min_count),
            "memory_limit": self.memory_bytes,
        }

    def why_unsavable(self) -> str | None:
        """Why no file can hold these parameters; None where one can."""
        template: Callable[..., Any] = self.graph_template
        return explain_unnamed([(f"the graph template {template!r}", import_path(template))])

    @classmethod
    def from_json(cls, settings: dict[str, Any]) -> "GraphSettings":
        """The inverse of `to_json`, with a placeholder for the template; InputError for what cannot be parameters."""
        found = cls(
            graph_template=placeholder(path_setting(settings, "graph_template")),
            objective=setting(settings, "objective", str),
            inference=setting(settings, "inference", str),
            optimizer=settings_file.optimizer_from_json(settings, DEFAULT_OPTIMIZER),
            l1=setting(settings, "l1", (float, int)),
            l2=setting(settings, "l2", (float, int)),
            all_configurations=setting(settings, "all_configurations", bool),
            min_count=setting(settings, "min_count", int),
            memory_limit=setting(settings, "memory_limit", int),
        )
        try:
            found.check()
        except ArgumentError as error:
            raise FileFormatError(str(error)) from None
        return found
