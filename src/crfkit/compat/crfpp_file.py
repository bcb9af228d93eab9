"""CRF++'s text model files (`crf_learn --textmodel`), read as models of this package.

Five parts, with a blank line after each but the last:

    version: 100          the labels,     the template,    12 U00:the      0.0312…
    cost-factor: 1        one a line      its U lines      0 B             one weight a line,
    maxid: 4321                           first            …               `maxid` of them
    xsize: 2

A line of the fourth part is the number of a feature's first weight, and the feature: one that begins with U has a weight for
each of the L labels, one that begins with B has L · L, those of the first label before it first. `cost-factor` multiplies
all.
"""

from __future__ import annotations

import os
import re
import warnings
from array import array
from collections.abc import Iterator

import numpy as np

from crfkit.compat.template_model import Float64s, Weights, check_label_names, template_model
from crfkit.data import InputError, read_bytes
from crfkit.features import Template
from crfkit.models import CRF

MAGIC = b"version:"
_HEADER = ("version", "cost-factor", "maxid", "xsize")
_COUNT = re.compile(r"[1-9][0-9]{0,8}")
_FEATURE = re.compile(r"([0-9]{1,9})[ \t]+([UB].*)")


def read_crfpp(path: str | os.PathLike[str]) -> CRF:
    """The text model of CRF++ in a file, as a `crfkit.CRF`; InputError where there is none."""
    data = read_bytes(path)
    try:
        return parse_crfpp(data.decode(), str(path))
    except UnicodeDecodeError:
        raise InputError(f"{path}: not a text model of CRF++ in UTF-8") from None


def parse_crfpp(text: str, source: str = "<text>") -> CRF:
    """The model in the text of such a file; InputError for any other text."""
    try:
        return _parsed(text)
    except InputError as error:
        raise InputError(f"{source}: not a text model of CRF++: {error}") from None


def _parsed(text: str) -> CRF:
    parts = text.replace("\r\n", "\n").split("\n\n", 4)
    if len(parts) != 5:
        raise InputError(f"found {len(parts)} parts with blank lines between them, expected 5")
    head, listed, template, features, numbers = parts
    cost_factor, n_weights, n_columns = _settings(head)
    labels = listed.split("\n")
    check_label_names(labels)
    weights = _weights(numbers, n_weights) * cost_factor
    read = Template.parse(template, "its template")
    read.check_columns(n_columns)
    states, arcs = _features(features, len(labels), weights)
    return template_model(read, labels, n_columns, states, arcs, "the model was trained by CRF++")


def _settings(head: str) -> tuple[float, int, int]:
    """cost-factor, maxid and xsize of a header."""
    settings = {}
    for line in _lines(head):
        name, colon, value = line.partition(":")
        if not colon:
            raise InputError(f"its header has the line {line[:40]!r}, expected `name: value`")
        settings[name] = value.strip()
    for name in _HEADER:
        if name not in settings:
            raise InputError(f"its header has no {name}")
    for name in ("maxid", "xsize"):
        if not _COUNT.fullmatch(settings[name]):
            raise InputError(f"{name} is {settings[name][:40]!r}, expected a whole number of at least 1")
    try:
        return float(settings["cost-factor"]), int(settings["maxid"]), int(settings["xsize"])
    except ValueError:
        raise InputError(f"cost-factor is {settings['cost-factor'][:40]!r}, expected a number") from None


def _weights(text: str, n_weights: int) -> Float64s:
    with warnings.catch_warnings():
        warnings.simplefilter("error", DeprecationWarning)  # how NumPy says that it could not read on
        try:
            weights = np.fromstring(text, sep="\n")
        except (DeprecationWarning, ValueError):
            raise InputError("its last part has a line that is no number") from None
    if len(weights) != n_weights:
        raise InputError(f"it has {len(weights):,} weights, and maxid says {n_weights:,}")
    return weights


def _features(text: str, n_labels: int, weights: Float64s) -> tuple[Weights, Weights]:
    """The weights of the features on labels and of those on arcs."""
    names: dict[str, list[str]] = {"U": [], "B": []}
    starts = {kind: array("q") for kind in names}
    for line in _lines(text):
        found = _FEATURE.fullmatch(line)
        if found is None:
            raise InputError(f"it has the line {line[:40]!r}, expected a number and a feature")
        names[found[2][0]].append(found[2])
        starts[found[2][0]].append(int(found[1]))
    sizes = {"U": n_labels, "B": n_labels**2}
    used = sum(sizes[kind] * len(names[kind]) for kind in names)
    if used > len(weights):
        raise InputError(f"its features need {used:,} weights, and there are {len(weights):,}")
    found_weights = []
    for kind, size in sizes.items():
        begins = np.array(starts[kind], dtype=np.int64)
        if len(begins) and begins.max() + size > len(weights):
            raise InputError(f"a feature begins with weight {begins.max()}, and there are {len(weights):,}")
        values = weights[(begins[:, None] + np.arange(size)).ravel()]
        outcomes = np.tile(np.arange(size, dtype=np.int32), len(begins))
        found_weights.append(Weights(names[kind], np.repeat(np.arange(len(begins)), size), outcomes, values))
    return found_weights[0], found_weights[1]


def _lines(text: str) -> Iterator[str]:
    """The lines of a text, without a list of them all."""
    begin = 0
    while (end := text.find("\n", begin)) >= 0:
        yield text[begin:end]
        begin = end + 1
    if begin < len(text):
        yield text[begin:]
