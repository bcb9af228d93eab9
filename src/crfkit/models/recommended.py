"""What the parameters of a `CRF` are where none are given: those that its preset recommends, else the standard ones."""

from collections.abc import Mapping
from copy import deepcopy
from types import MappingProxyType
from typing import Any

from crfkit.models.kinds import KINDS
from crfkit.models.settings import DEFAULT_CHAIN, DEFAULT_OPTIMIZER
from crfkit.optimizers import AdaGrad
from crfkit.structures import Chain

STANDARD: Mapping[str, Any] = MappingProxyType(
    {
        "structure": DEFAULT_CHAIN,
        "optimizer": DEFAULT_OPTIMIZER,
        "l2": 1.0,
        "all_possible_states": False,
        "all_possible_transitions": True,
        "min_count": 1,
        "facets": None,
        "tag_dictionary": None,
    }
)
"""The parameters of a `CRF` without a preset."""

_OPTIONAL = [name for name, value in STANDARD.items() if value is None]  # False leaves them out

RECOMMENDED: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        "morphology": MappingProxyType(
            {
                "structure": Chain(bigrams="observed", unseen="soft"),
                "optimizer": AdaGrad(max_iterations=10, rate=0.1),
                "l2": {"default": 1.0, "near": 20.0},
                "all_possible_transitions": False,
                "min_count": "auto",
                "facets": "auto+labels",
                "tag_dictionary": True,
            }
        ),
    }
)
"""The parameters that presets bring along, where they are not the standard ones."""


def complete_parameters(features: object, given: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters with those that are None filled in: by the preset `features`, else by the standard ones.

    The recommendations are for chains, with patterns or without: other structures have the standard parameters.
    """
    structure = given["structure"]
    chains = tuple(kind.structure for kind in KINDS if kind.adds_to_chain)
    own = RECOMMENDED.get(features, {}) if isinstance(features, str) else {}
    usual = deepcopy({**STANDARD, **(own if structure is None or isinstance(structure, chains) else {})})
    return {name: usual.get(name) if value is None else value for name, value in given.items()}


def as_arguments(used: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters of a model as arguments of `CRF`: False for what it is without, where None would be filled in."""
    filled = complete_parameters(used["features"], used)
    return {
        name: False if value is None and name in _OPTIONAL and filled[name] is not None else value
        for name, value in used.items()
    }
