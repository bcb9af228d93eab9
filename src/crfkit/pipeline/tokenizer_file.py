"""The file of a `Tokenizer`: its CRF as a part, and the multiword tokens of its training set.

settings "units": "runs" or "characters"; "spaces_inside": whether tokens hold white space
texts "multiwords": a token and its words with tabs between them; array "multiwords.counts": how often each was seen
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from crfkit.errors import FileFormatError
from crfkit.models import (
    CRF,
    ModelFile,
    from_file,
    join_parts,
    metadata_of,
    name_damage,
    pack_texts,
    setting,
    split_parts,
    unpack_texts,
)
from crfkit.pipeline.multiwords import MultiwordSplitter
from crfkit.pipeline.text_units import UnitReader
from crfkit.pipeline.token_labels import LABELS
from crfkit.pipeline.tokenizer import UNITS, Tokenizer

TYPE = "Tokenizer"


def pack(
    tokenizer: Tokenizer, *, single_precision: bool = True, metadata: Mapping[str, Any] | None = None
) -> ModelFile:
    """The model file of a trained tokenizer."""
    counts = tokenizer.splitter_.counts
    arrays: dict[str, Any] = {"multiwords.counts": np.array(list(counts.values()), np.int32)}
    lines = ["\t".join((token, *words)) for token, words in counts]
    settings = {
        "units": tokenizer.units_,
        "spaces_inside": tokenizer.spaces_inside_,
        "bytes": {"multiwords": pack_texts(arrays, "multiwords", lines)},
        "metadata": dict(metadata or {}),
    }
    part = tokenizer.crf_.to_file(single_precision=single_precision)
    return join_parts(TYPE, settings, {"crf": part}, arrays)


def read(file: ModelFile, source: str) -> Tokenizer:
    """The tokenizer of a model file; InputError where it is damaged."""
    with name_damage(source, "tokenizer"):
        units = setting(file.settings, "units", str)
        if units not in UNITS[1:]:
            raise FileFormatError(f"its units are {units[:40]!r}, expected one of {', '.join(UNITS[1:])}")
        spaces_inside = setting(file.settings, "spaces_inside", bool)
        metadata_of(file.settings)
        splitter = _read_splitter(file)
        part = split_parts(file).get("crf")
        if part is None:
            raise FileFormatError("it has no CRF")
    crf = from_file(part, source)
    with name_damage(source, "tokenizer"):
        if not isinstance(crf, CRF) or not set(crf.classes_) <= set(LABELS):
            raise FileFormatError("its CRF is none of a tokenizer")
        if crf.n_columns_ != UnitReader.N_COLUMNS:
            raise FileFormatError(f"its CRF reads {crf.n_columns_} columns, expected {UnitReader.N_COLUMNS}")
    tokenizer = Tokenizer(units, crf.optimizer, crf.l2, crf.min_count)  # type: ignore[arg-type]
    tokenizer._set_trained(crf, units, splitter, spaces_inside=spaces_inside)
    return tokenizer


def _read_splitter(file: ModelFile) -> MultiwordSplitter:
    counts = file.arrays.get("multiwords.counts")
    if counts is None or counts.ndim != 1 or counts.dtype.kind != "i" or (counts < 1).any():
        raise FileFormatError("the counts of its multiword tokens are damaged")
    lines = unpack_texts(file, "multiwords", setting(file.settings, "bytes", dict), len(counts))
    found: dict[tuple[str, tuple[str, ...]], int] = {}
    for line, count in zip(lines, counts.tolist(), strict=True):
        token, *words = line.split("\t")
        if not token or len(words) < 1 or not all(words):
            raise FileFormatError(f"its multiword token {line[:40]!r} is damaged")
        found[token, tuple(words)] = count
    return MultiwordSplitter(found)
