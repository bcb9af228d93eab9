"""Sources of MeCab's dictionaries: read as a segmenter, and written so that `mecab-dict-index` compiles them.

*.csv        the lexicon: form, left context, right context, cost, fields …
unk.def      the same for unknown words, with classes of characters in place of forms
char.def     classes of characters        matrix.def   right context, left context, cost
feature.def  templates                    rewrite.def  fields for them
dicrc        settings: cost-factor, bos-feature, eval-size, unk-eval-size
"""

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from crfkit.errors import ArgumentError, FileFormatError, InputError, UnreadableFileError, reword
from crfkit.features import (
    CharacterClasses,
    Entry,
    Rewriting,
    WordDictionary,
    WordTemplates,
    join_fields,
    split_fields,
)
from crfkit.models import WordSegmenter
from crfkit.structures import CostMatrix

_COST_FACTOR = 800
_BOUNDARY = "BOS/EOS,*,*,*,*,*,*,*,*"
_MOST_CONTEXTS = 65_535
_ESCAPED = re.compile("[\udc80-\udcff]")  # bytes that are no characters
_DAMAGED = 0.1  # share of the lines of a file, at most
Made = TypeVar("Made")


def read_mecab(folder: str | os.PathLike[str], *, encoding: str = "utf-8") -> WordSegmenter:
    """The segmenter of the sources of a MeCab dictionary: it analyses texts by the costs of the files.

    To train costs of your own on its lexicon, templates and classes of characters:
    `WordSegmenter(dataclasses.replace(read_mecab(folder).dictionary, costs=None)).fit(sentences)`.
    Without a `matrix.def` there are no costs, and `dictionary` alone can be used.
    """
    path = Path(folder)
    settings = dict(_settings(_lines(path / "dicrc", encoding)))
    forms = sorted(path.glob("*.csv"))
    if not forms:
        raise FileFormatError(f"{path}: no lexicon, expected files *.csv")
    words = [entry for file in forms for entry in _parsed(file, encoding, _entries)]
    unknown: dict[str, list[Entry]] = {}
    for entry in _parsed(path / "unk.def", encoding, _entries):
        unknown.setdefault(entry.form, []).append(entry)
    matrix = path / "matrix.def"
    try:
        dictionary = WordDictionary(
            words,
            unknown,
            _parsed(path / "char.def", encoding, CharacterClasses.parse),
            _parsed(path / "feature.def", encoding, WordTemplates.parse, missing=WordTemplates((), ())),
            _parsed(path / "rewrite.def", encoding, Rewriting.parse, missing=Rewriting()),
            split_fields(settings.get("bos-feature", _BOUNDARY)),
            _number(settings, "eval-size"),
            _number(settings, "unk-eval-size"),
            CostMatrix(_parsed(matrix, encoding, _matrix)) if matrix.exists() else None,
            _number(settings, "cost-factor") or _COST_FACTOR,
            distinct=False,  # as `mecab-cost-train` counts them
        )
    except InputError as error:
        raise reword(error, f"{path}: {error}") from None
    if dictionary.costs is None:
        return WordSegmenter(dictionary)
    _check_contexts(path, dictionary)
    return WordSegmenter.from_costs(dictionary)


def write_mecab(
    model: WordSegmenter, folder: str | os.PathLike[str], *, cost_factor: int = _COST_FACTOR
) -> None:
    """Write the sources of a MeCab dictionary, in UTF-8, into a folder that exists or is made.

    `mecab-dict-index -d FOLDER -o FOLDER -f utf-8 -t utf-8` compiles it. Costs are whole numbers, so scores are rounded:
    `model.with_costs(cost_factor)` has the same ones. An unknown word has the cost of its class: features of its form (`%w`)
    have none.
    """
    path = Path(folder)
    path.mkdir(parents=True, exist_ok=True)
    priced = model.with_costs(cost_factor).dictionary
    if priced.costs is None:
        raise FileFormatError("the segmenter has no costs and is not trained: there is nothing to write")
    costs = priced.costs.costs
    _write(path / "lex.csv", map(_line, priced.words))
    _write(
        path / "unk.def",
        (_line(entry) for kind in priced.classes.classes for entry in priced.unknown[kind.name]),
    )
    _write(path / "char.def", priced.classes.lines())
    _write(path / "feature.def", priced.templates.lines())
    _write(path / "matrix.def", _matrix_lines(costs))
    every = [*priced.words, *(entry for entries in priced.unknown.values() for entry in entries)]
    n_fields = {len(fields) for fields in [priced.boundary, *(entry.fields for entry in every)]}
    _write(path / "rewrite.def", priced.rewriting.lines(n_fields))
    boundary = join_fields(priced.boundary)
    _write(path / "left-id.def", _contexts({e.left: e for e in every}, costs.shape[1], boundary))
    _write(path / "right-id.def", _contexts({e.right: e for e in every}, costs.shape[0], boundary))
    settings = {
        "cost-factor": priced.cost_factor,
        "bos-feature": boundary,
        "eval-size": priced.compared,
        "unk-eval-size": priced.unknown_compared,
        "config-charset": "UTF-8",
    }
    _write(path / "dicrc", (f"{name} = {value}" for name, value in settings.items() if value is not None))


def _settings(lines: Iterable[str]) -> Iterator[tuple[str, str]]:
    for line in lines:
        if not line.startswith((";", "#")) and "=" in line:
            name, _, value = line.partition("=")
            yield name.strip(), value.strip()


def _number(settings: Mapping[str, str], name: str) -> int | None:
    text = settings.get(name, "")
    return int(text) if re.fullmatch(r"\d+", text) else None


def _entries(lines: Iterable[str]) -> list[Entry]:
    entries = []
    for number, line in enumerate(lines, 1):
        if not line:
            continue
        try:
            form, left, right, cost, *fields = split_fields(line)
            entries.append(Entry(form, tuple(fields), int(left), int(right), int(cost)))
        except ValueError:
            raise FileFormatError(
                f"line {number}: {line[:80]!r}, expected form,left,right,cost,fields with numbers"
            ) from None
    return entries


def _matrix(lines: Iterable[str]) -> npt.NDArray[np.int16]:
    given = iter(lines)
    try:
        n_right, n_left = map(int, next(given).split())
        if not 0 < n_right <= _MOST_CONTEXTS or not 0 < n_left <= _MOST_CONTEXTS:
            raise ValueError
        numbers = np.array(" ".join(given).split(), dtype=np.int64)
        table = numbers.reshape(-1, 3)
    except (ValueError, StopIteration):
        raise FileFormatError("expected the numbers of contexts, then lines: right left cost") from None
    right, left, cost = table.T
    if len(table) and not (
        right.min() >= 0
        and right.max() < n_right
        and left.min() >= 0
        and left.max() < n_left
        and abs(cost).max() < 2**15
    ):
        raise FileFormatError(f"expected contexts below {n_right} and {n_left}, and costs of 16 bits")
    costs = np.zeros((n_right, n_left), np.int16)
    costs[right, left] = cost
    return costs


def _matrix_lines(costs: npt.NDArray[np.int16]) -> Iterator[str]:
    yield f"{costs.shape[0]} {costs.shape[1]}"
    for r, row in enumerate(costs.tolist()):
        for c, cost in enumerate(row):
            yield f"{r} {c} {cost}"


def _contexts(entries: Mapping[int, Entry], n: int, boundary: str) -> Iterator[str]:
    """Each context with the fields of a word that has it."""
    yield f"0 {boundary}"
    yield from (f"{i} {join_fields(entries[i].fields) if i in entries else '*'}" for i in range(1, n))


def _check_contexts(path: Path, dictionary: WordDictionary) -> None:
    assert dictionary.costs is not None
    n_right, n_left = dictionary.costs.costs.shape
    for entry in [*dictionary.words, *(one for some in dictionary.unknown.values() for one in some)]:
        if not (0 <= entry.left < n_left and 0 <= entry.right < n_right):
            raise FileFormatError(
                f"{path}: {entry.form} has the contexts {entry.left} and {entry.right}, matrix.def has {n_left} and "
                f"{n_right} of them"
            )


def _line(entry: Entry) -> str:
    return f"{join_fields([entry.form])},{entry.left},{entry.right},{entry.cost},{join_fields(entry.fields)}"


def _lines(path: Path, encoding: str) -> list[str]:
    """The lines of a file. Released dictionaries have a few damaged ones, whose bytes are kept as they are."""
    try:
        text = path.read_bytes().decode(encoding, "surrogateescape")
    except OSError as error:
        raise UnreadableFileError(f"{path}: {error.strerror}") from None
    except LookupError:
        raise ArgumentError(f"encoding is {encoding!r}, which is not known") from None
    lines = [line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")]
    if sum(map(bool, map(_ESCAPED.search, lines))) > _DAMAGED * len(lines):
        raise FileFormatError(f"{path}: not in the encoding {encoding}; expected another one as encoding=")
    return lines


def _parsed(
    path: Path, encoding: str, parse: Callable[[Iterable[str]], Made], missing: Made | None = None
) -> Made:
    """What a file holds; an error names the file."""
    if missing is not None and not path.exists():
        return missing
    lines = _lines(path, encoding)
    try:
        return parse(lines)
    except FileFormatError as error:
        raise FileFormatError(f"{path}: {error}") from None


def _write(path: Path, lines: Iterable[str]) -> None:
    with path.open("w", encoding="utf-8", errors="surrogateescape", newline="\n") as stream:
        stream.writelines(f"{line}\n" for line in lines)
