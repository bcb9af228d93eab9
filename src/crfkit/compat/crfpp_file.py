"""CRF++'s model files, read as models of this package.

Text (`crf_learn --textmodel`): five parts, with a blank line after each but the last.

    version: 100          the labels,     the template,    12 U00:the      0.0312…
    cost-factor: 1        one a line      its U lines      0 B             one weight a line,
    maxid: 4321                           first            …               `maxid` of them
    xsize: 2

A line of the fourth part is the number of a feature's first weight, and the feature. `cost-factor` multiplies all weights.

Binary (`crf_learn`): the same parts, see `crfpp_binary`.
"""

from __future__ import annotations

import os
import re
import warnings
from array import array
from collections.abc import Iterator

import numpy as np

from crfkit.arrays import Float64s
from crfkit.compat.crfpp_binary import BINARY_MAGIC, binary_parts
from crfkit.compat.crfpp_model import CrfppParts, crfpp_model
from crfkit.data import read_bytes
from crfkit.errors import ArgumentError, FileFormatError, InputError
from crfkit.models import CRF

MAGIC = (b"version:", BINARY_MAGIC)
_HEADER = ("version", "cost-factor", "maxid", "xsize")
_COUNT = re.compile(r"[1-9][0-9]{0,8}")
_FEATURE = re.compile(r"([0-9]{1,9})[ \t]+([UB].*)")


def read_crfpp(path: str | os.PathLike[str], *, encoding: str = "utf-8") -> CRF:
    """The model of CRF++ in a file, text or binary, as a `crfkit.CRF`; InputError where there is none.

    `encoding` is that of the training file, whose bytes CRF++ takes as they are.
    """
    return parse_crfpp(read_bytes(path), str(path), encoding=encoding)


def parse_crfpp(data: bytes, source: str = "<bytes>", *, encoding: str = "utf-8") -> CRF:
    """The model in the bytes of such a file; InputError for any other bytes."""
    binary = data.startswith(BINARY_MAGIC)
    try:
        return crfpp_model(binary_parts(data, encoding) if binary else _text_parts(data.decode(encoding)))
    except InputError as error:
        kind = "binary" if binary else "text"
        raise FileFormatError(f"{source}: not a usable {kind} model of CRF++: {error}") from None
    except UnicodeDecodeError:
        raise FileFormatError(
            f"{source}: not a usable model of CRF++: it is not in the encoding {encoding}"
        ) from None
    except LookupError:
        raise ArgumentError(f"there is no encoding {encoding!r}") from None


def _text_parts(text: str) -> CrfppParts:
    parts = text.replace("\r\n", "\n").split("\n\n", 4)
    if len(parts) != 5:
        raise FileFormatError(f"found {len(parts)} parts with blank lines between them, expected 5")
    head, listed, template, features, numbers = parts
    cost_factor, n_weights, n_columns = _settings(head)
    weights = _weights(numbers, n_weights)
    return CrfppParts(listed.split("\n"), template, n_columns, *_features(features), weights, cost_factor)


def _settings(head: str) -> tuple[float, int, int]:
    """cost-factor, maxid and xsize of a header."""
    settings = {}
    for line in _lines(head):
        name, colon, value = line.partition(":")
        if not colon:
            raise FileFormatError(f"its header has the line {line[:40]!r}, expected `name: value`")
        settings[name] = value.strip()
    for name in _HEADER:
        if name not in settings:
            raise FileFormatError(f"its header has no {name}")
    for name in ("maxid", "xsize"):
        if not _COUNT.fullmatch(settings[name]):
            raise FileFormatError(f"{name} is {settings[name][:40]!r}, expected a whole number of at least 1")
    try:
        return float(settings["cost-factor"]), int(settings["maxid"]), int(settings["xsize"])
    except ValueError:
        raise FileFormatError(f"cost-factor is {settings['cost-factor'][:40]!r}, expected a number") from None


def _weights(text: str, n_weights: int) -> Float64s:
    with warnings.catch_warnings():
        warnings.simplefilter("error", DeprecationWarning)  # how NumPy says that it could not read on
        try:
            weights = np.fromstring(text, sep="\n")
        except (DeprecationWarning, ValueError):
            raise FileFormatError("its last part has a line that is no number") from None
    if len(weights) != n_weights:
        raise FileFormatError(f"it has {len(weights):,} weights, and maxid says {n_weights:,}")
    return weights


def _features(text: str) -> tuple[list[str], array[int]]:
    """The features, and the number of the first weight of each."""
    names: list[str] = []
    starts = array("q")
    for line in _lines(text):
        found = _FEATURE.fullmatch(line)
        if found is None:
            raise FileFormatError(f"it has the line {line[:40]!r}, expected a number and a feature")
        names.append(found[2])
        starts.append(int(found[1]))
    return names, starts


def _lines(text: str) -> Iterator[str]:
    """The lines of a text, without a list of them all."""
    begin = 0
    while (end := text.find("\n", begin)) >= 0:
        yield text[begin:end]
        begin = end + 1
    if begin < len(text):
        yield text[begin:]
