"""What the parameters of a `CRF` are where none are given: those that its preset recommends, else the standard ones.

A strength `l2` that is given as a number is that of the block "default"; other blocks that the preset names have theirs in
the same ratio to it. A dict is taken as it is: {"default": 0.5} is 0.5 for all blocks.
"""

from collections.abc import Mapping
from copy import deepcopy
from types import MappingProxyType
from typing import Any

import numpy as np

from crfkit.features import recommend_encoding
from crfkit.models.checks import DEFAULT_DECODING
from crfkit.models.kinds import KINDS
from crfkit.models.settings import DEFAULT_CHAIN, DEFAULT_OPTIMIZER
from crfkit.optimizers import AUTO, AdaGrad
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
        "decode": DEFAULT_DECODING,
        "margin": 0.0,
        "span_states": None,
    }
)
"""The parameters of a `CRF` without a preset."""

_OPTIONAL = [name for name, value in STANDARD.items() if value is None]  # False leaves them out

RECOMMENDED: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        "names": MappingProxyType({"l2": {"default": 1.0, "character": 0.1}, "decode": AUTO}),
        "addresses": MappingProxyType({"l2": 0.3}),
        "chunks": MappingProxyType({"span_states": AUTO}),
        "morphology": MappingProxyType(
            {
                "structure": Chain(bigrams="observed", unseen="soft"),
                "optimizer": AdaGrad(max_iterations=10, rate=0.1),
                "l2": {"default": 1.0, "near": 20.0},
                "all_possible_transitions": False,
                "min_count": recommend_encoding("morphology").min_count,
                "facets": "auto+labels",
                "tag_dictionary": "related",
                "margin": 4.0,
            }
        ),
        "references": MappingProxyType({"l2": {"default": 0.5, "before": 3.0, "after": 3.0}}),
    }
)
"""The parameters that presets bring along, where they are not the standard ones."""


def complete_parameters(features: object, given: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters with those that are None filled in: by the preset `features`, else by the standard ones.

    A number for `l2` sets the level of the preset's strengths. With `hash_bits`, features have no blocks: all have the
    default strength.
    """
    usual = deepcopy(_usual_parameters(features, given["structure"]))
    if given.get("hash_bits") is not None and isinstance(usual["l2"], Mapping):
        usual["l2"] = usual["l2"]["default"]
    used = {name: usual.get(name) if value is None else value for name, value in given.items()}
    return used | {"l2": scale_strengths(usual["l2"], used["l2"])}


def scale_strengths(usual: Any, l2: Any) -> Any:
    """The strengths `usual`, by block, with `l2` for the default block; `l2` itself unless it is a number.

    Products have 15 digits: 0.1 · 0.1 is 0.01 rather than 0.010000000000000002.
    """
    if not _is_number(l2) or not isinstance(usual, Mapping):
        return l2
    scaled = {block: float(l2) * strength / usual["default"] for block, strength in usual.items()}
    return {block: float(f"{strength:.15g}") for block, strength in scaled.items()} | {"default": float(l2)}


def default_strength(features: object, structure: object, l2: Any) -> Any:
    """The number that stands for `l2`, where these are the strengths by block that the preset has for it; else `l2`."""
    level = l2.get("default") if isinstance(l2, Mapping) else None
    is_scaled = _is_number(level) and l2 == scale_strengths(
        _usual_parameters(features, structure)["l2"], level
    )
    return level if is_scaled else l2


def as_arguments(used: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters of a model as arguments of `CRF`, which fills in and scales some of them.

    False for what the model is without, where None would be filled in; {"default": l2} for one strength of all blocks, where
    a number would be scaled.
    """
    filled = complete_parameters(used["features"], used)
    arguments = {
        name: False if value is None and name in _OPTIONAL and filled[name] is not None else value
        for name, value in used.items()
    }
    if _is_number(used["l2"]) and isinstance(filled["l2"], Mapping):
        arguments["l2"] = {"default": float(used["l2"])}
    return arguments


def _usual_parameters(features: object, structure: object) -> dict[str, Any]:
    """Those of the preset, which are for chains, with patterns or without; other structures have the standard ones."""
    chains = tuple(kind.structure for kind in KINDS if kind.adds_to_chain)
    own = RECOMMENDED.get(features, {}) if isinstance(features, str) else {}
    return {**STANDARD, **(own if structure is None or isinstance(structure, chains) else {})}


def _is_number(value: object) -> bool:
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
