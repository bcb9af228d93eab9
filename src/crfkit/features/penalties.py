"""Penalty strengths: one number for all weights, or one per named block of features.

Blocks are named by `block_of(feature)` (the text before the first ':' or '='), dense blocks by their own names, and the
transitions are "transitions", those into the first and out of the last label "start" and "end" (both follow "transitions"
unless named).
A feature function is a block by its name. "default" holds for every block that is not named.
"""

import math
import re
from collections.abc import Mapping

import numpy as np

from crfkit.arrays import Float64s
from crfkit.errors import ArgumentError
from crfkit.features.encoding import Encoder
from crfkit.features.feature_map import FeatureMap

Strength = float | Mapping[str, float]
"""The strength of a penalty: a number, or numbers by block of features."""
OpenStrength = float | str | Mapping[str, float | str]
"""A strength, or "auto", of all or of some blocks, where it is to be found."""
AUTO = "auto"

DEFAULT_BLOCK = "default"
"""The block of all features whose block is not named."""

_BLOCK_END = re.compile("[:=]")


def block_of(feature: str) -> str:
    """The block of a feature, by which penalties can differ: "w:Rome" → "w", "suffix=me" → "suffix", "bias" → "bias"."""
    return _BLOCK_END.split(feature, maxsplit=1)[0]


def open_blocks(strength: object) -> tuple[str, ...]:
    """The blocks whose strength is to be found: those that are "auto", "default" the last one."""
    if isinstance(strength, Mapping):
        found = [str(block) for block, value in strength.items() if isinstance(value, str) and value == AUTO]
        return tuple(sorted(found, key=lambda block: block == DEFAULT_BLOCK))
    return (DEFAULT_BLOCK,) if isinstance(strength, str) and strength == AUTO else ()


def penalty_vector(
    name: str,
    strength: Strength,
    feature_map: FeatureMap,
    encoder: Encoder,
    others: Mapping[str, int],
) -> Float64s:
    """The strength of each weight: float64[1] when all are equal, else float64[D].

    `others` are blocks of weights behind those of the feature map, such as feature functions: name → number of weights.
    """
    if not isinstance(strength, Mapping):
        return np.array([_check_strength(name, "", strength)])
    strengths = {block: _check_strength(name, f"[{block!r}]", value) for block, value in strength.items()}
    default = strengths.pop(DEFAULT_BLOCK, 1.0 if name == "l2" else 0.0)
    transitions = strengths.get("transitions", default)
    state_blocks = [block_of(feature) for feature in encoder.vocabulary.names()]
    arc_blocks = [block_of(feature) for feature in encoder.arc_vocabulary.names()]
    template = encoder.template if encoder.hash_bits is None else None
    lines = () if template is None else template.text.splitlines()
    written = [block_of(line) for line in lines if line.strip() and not line.startswith("#")]
    known = {*state_blocks, *arc_blocks, *written, *feature_map.dense, *others, "transitions", "start", "end"}
    unknown = sorted(set(strengths) - known)
    if unknown:
        raise ArgumentError(
            f"{name} names the block {unknown[0]!r}, which no feature belongs to; the blocks are: "
            f"{', '.join(sorted(known)[:40])}, and 'default' for the rest"
            f"{'.' if encoder.hash_bits is None else ': with hash_bits, features have no blocks.'}"
        )
    out = np.empty(feature_map.n_weights + sum(others.values()))
    per_feature = np.array([strengths.get(block, default) for block in state_blocks], dtype=np.float64)
    out[: feature_map.n_pairs] = np.repeat(per_feature, np.diff(feature_map.pair_ptr))
    for block, columns in feature_map.dense.items():
        begin = feature_map.dense_begin(block)
        out[begin : begin + columns * feature_map.n_labels] = strengths.get(block, default)
    end_label = feature_map.n_labels
    plain = np.full(len(feature_map.arc_before), transitions)
    plain[feature_map.arc_before == end_label] = strengths.get("start", transitions)
    plain[feature_map.arc_after == end_label] = strengths.get("end", transitions)
    out[feature_map.arcs_begin : feature_map.triples_begin] = plain
    per_arc_feature = np.array([strengths.get(block, default) for block in arc_blocks], dtype=np.float64)
    out[feature_map.triples_begin : feature_map.n_weights] = np.repeat(
        per_arc_feature, np.diff(feature_map.arc_ptr)
    )
    per_function = np.array([strengths.get(name, default) for name in others], dtype=np.float64)
    out[feature_map.n_weights :] = np.repeat(per_function, list(others.values()))
    return out


def _check_strength(name: str, where: str, value: object) -> float:
    """A finite number ≥ 0."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        auto = f"; {AUTO!r} in place of a number searches for one" if name == "l2" else ""
        raise ArgumentError(
            f"{name}{where} is {value!r}, expected a number, or a dict of block names to numbers{auto}."
        )
    number = float(value)
    if not math.isfinite(number) or number < 0:
        raise ArgumentError(f"{name}{where} is {number}, expected a finite number of 0 or more.")
    return number
