"""Wapiti's model files, read as models of this package.

    #mdl#2#4321          kind of model (0 maxent, 1 memm, 2 crf; older files have none) and number of weights
    #rdr#3/1/0           number of patterns, largest column that they read, whether `u` is put before what they make
    13:u:word=%x[0,0],   the patterns, each as length, colon, bytes, comma, line end
    #qrk#2               the labels, in the same form
    #qrk#60              the features
    12=0x1.8p-3          the weights that are not 0, hexadecimal or decimal, each with its number, rising

Weights are numbered feature by feature: one that begins with `u` has one for each of the L labels, one with `b` has L · L,
those of the first label before it first, one with `*` has both, labels first.

A model without patterns takes the columns of a row for its features. With `u` put before features (`wapiti train --me`) all
of them are features of labels, and Wapiti takes each row for a sequence of its own.
"""

from __future__ import annotations

import os
import re
from array import array

import numpy as np

from crfkit.compat.template_model import Weights, check_label_names, template_model, with_columns
from crfkit.data import read_bytes
from crfkit.errors import FileFormatError, InputError
from crfkit.features import Template, WapitiPatterns, WapitiTokens
from crfkit.models import CRF

MAGIC = b"#mdl#"
_MODEL = re.compile(rb"#mdl#(?:([0-9])#)?([0-9]{1,15})")
_READER = re.compile(rb"#rdr#([0-9]{1,9})/([0-9]{1,9})(?:/([01]))?")
_NAMES = re.compile(rb"#qrk#([0-9]{1,15})")
_LENGTH = re.compile(rb"([0-9]{1,9}):")
_WEIGHT = re.compile(rb"([0-9]{1,18})=([-+.0-9a-fxpinA-FXP]+)")
_MEMM = b"1"


def read_wapiti(path: str | os.PathLike[str], *, n_columns: int | None = None) -> CRF:
    """The model of Wapiti in a file, as a `crfkit.CRF`; InputError where there is none.

    Rows may have any number of columns, if the patterns find theirs; `n_columns` asks for exactly so many.
    """
    return parse_wapiti(read_bytes(path), str(path), n_columns=n_columns)


def parse_wapiti(data: bytes, source: str = "<bytes>", *, n_columns: int | None = None) -> CRF:
    """The model in the bytes of such a file; InputError for any other bytes."""
    try:
        model = _parse(data)
        return model if n_columns is None else with_columns(model, n_columns)
    except InputError as error:
        raise FileFormatError(f"{source}: not a usable model of Wapiti: {error}") from None


def _parse(data: bytes) -> CRF:
    file = _File(data)
    kind, n_weights = file.line(_MODEL, "#mdl#").groups()
    reader = file.line(_READER, "#rdr#")
    n_patterns, puts_u = int(reader[1]), reader[3] == b"1"
    patterns = [_utf8(file.text(), "pattern") for _ in range(n_patterns)]
    template = _template(patterns, puts_u=puts_u)
    labels = [_utf8(file.text(), "label") for _ in range(int(file.line(_NAMES, "#qrk#")[1]))]
    check_label_names(labels)
    names = [
        file.text().decode("utf-8", "surrogateescape") for _ in range(int(file.line(_NAMES, "#qrk#")[1]))
    ]
    states, arcs = _weights(names, len(labels), *file.weights(int(n_weights)))
    if puts_u:
        states, arcs = (part._replace(names=[name[1:] for name in names]) for part in (states, arcs))
    return template_model(
        template,
        labels,
        max(template.n_columns, 1) if patterns else 0,
        states,
        arcs,
        "the model was trained by Wapiti",
        local=kind == _MEMM,
    )


def _template(patterns: list[str], *, puts_u: bool) -> Template:
    """What makes the features of rows."""
    if not patterns:
        return WapitiTokens("u" if puts_u else "", "its patterns")
    if any("\n" in pattern or "#" in pattern for pattern in patterns):
        raise FileFormatError("a pattern has a line end or a # in it")
    template = WapitiPatterns.parse("\n".join(patterns), "its patterns")
    return template.of_single_rows() if puts_u else template


def _weights(
    names: list[str], n_labels: int, numbers: array[int], values: array[float]
) -> tuple[Weights, Weights]:
    """The weights of the features on labels and of those on arcs, from the numbers of weights."""
    on_labels = np.array([name[:1] in ("u", "*") for name in names], dtype=bool)
    on_arcs = np.array([name[:1] in ("b", "*") for name in names], dtype=bool)
    if not np.all(on_labels | on_arcs):
        raise FileFormatError("a feature begins neither with u nor with b nor with *")
    ends = np.cumsum(on_labels * n_labels + on_arcs * n_labels**2)
    index, value = np.frombuffer(numbers, np.int64), np.frombuffer(values, np.float64)
    if len(index) and (len(names) == 0 or index[-1] >= ends[-1]):
        raise FileFormatError(f"it has a weight of the number {index[-1]}, and its features have fewer")
    features = np.searchsorted(ends, index, side="right")
    offsets = index - (ends[features] - (on_labels * n_labels + on_arcs * n_labels**2)[features])
    of_label = on_labels[features] & (offsets < n_labels)
    cells = np.where(of_label, offsets, offsets - on_labels[features] * n_labels).astype(np.int32)
    every = Weights(names, features, cells, value)
    return every.where(of_label), every.where(~of_label)


def _utf8(text: bytes, what: str) -> str:
    try:
        return text.decode()
    except UnicodeDecodeError:
        raise FileFormatError(f"a {what} is not UTF-8") from None


class _File:
    """The bytes of a file, and how far they were read."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.place = 0

    def line(self, expected: re.Pattern[bytes], begins: str) -> re.Match[bytes]:
        """The next line, which must be of this form."""
        end = self.data.find(b"\n", self.place)
        end = len(self.data) if end < 0 else end
        found = expected.fullmatch(self.data, self.place, end)
        if found is None:
            shown = self.data[self.place : min(end, self.place + 40)]
            raise FileFormatError(
                f"at byte {self.place} stands {shown!r}, expected a line that begins with {begins}"
            )
        self.place = end + 1
        return found

    def text(self) -> bytes:
        """The next `length:bytes,` and the line end behind it."""
        found = _LENGTH.match(self.data, self.place)
        end = -1 if found is None else found.end() + int(found[1])
        if found is None or self.data[end : end + 2] != b",\n":
            raise FileFormatError(f"at byte {self.place} expected length:text, and a line end")
        self.place = end + 2
        return self.data[found.end() : end]

    def weights(self, n_weights: int) -> tuple[array[int], array[float]]:
        """The numbers and values of all weights; nothing may follow them."""
        numbers, values = array("q"), array("d")
        for _ in range(n_weights):
            found = self.line(_WEIGHT, "number=value")
            number_text = found[2].decode().lower()
            try:
                value = float.fromhex(number_text) if "x" in number_text else float(number_text)
            except (ValueError, OverflowError):
                raise FileFormatError(f"a weight is {found[2][:40]!r}, expected a number") from None
            number = int(found[1])
            if numbers and number <= numbers[-1]:
                raise FileFormatError(
                    f"weight {number} follows weight {numbers[-1]}, expected rising numbers"
                )
            numbers.append(number)
            values.append(value)
        if self.data[self.place :].strip():
            raise FileFormatError(f"more follows after its {n_weights:,} weights")
        return numbers, values
