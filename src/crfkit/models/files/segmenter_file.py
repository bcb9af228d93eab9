"""The file of a `WordSegmenter`: that of its CRF, and its dictionary beside it.

settings "dictionary": the lines of char.def, feature.def and rewrite.def, and the fields at the boundary
texts "lexicon", "unknown": form,fields of each entry
"""

import os
from typing import Any

from crfkit.data import replacing
from crfkit.errors import FileFormatError, UnsavableError
from crfkit.features import (
    CharacterClasses,
    Entry,
    Rewriting,
    WordDictionary,
    WordTemplates,
    join_fields,
    split_fields,
)
from crfkit.models.files import model_file
from crfkit.models.files.file_arrays import flag, pack_texts, setting, unpack_texts
from crfkit.models.files.model_file import ModelFile
from crfkit.models.word_segmenter import WordSegmenter
from crfkit.structures import Lattice

TYPE = "WordSegmenter"


def save(segmenter: WordSegmenter, path: str | os.PathLike[str]) -> None:
    """Write the file."""
    data = to_bytes(segmenter)
    with replacing(path) as stream:
        stream.write(data)


def to_bytes(segmenter: WordSegmenter) -> bytes:
    """The bytes of the file; UnsavableError where there is nothing that it could hold."""
    dictionary = segmenter.dictionary
    if dictionary.costs is not None:
        raise UnsavableError("its costs are known: compat.write_mecab writes them")
    if not hasattr(segmenter, "crf_"):
        raise UnsavableError("the segmenter is not trained: call fit first")
    file = model_file.decode(segmenter.crf_._to_bytes())
    unknown = [(kind, entry) for kind, entries in dictionary.unknown.items() for entry in entries]
    settings, arrays = dict(file.settings), dict(file.arrays)
    n_bytes = dict(settings["bytes"])
    words = [join_fields([word.form, *word.fields]) for word in dictionary.words]
    n_bytes["lexicon"] = pack_texts(arrays, "lexicon", words)
    n_bytes["unknown"] = pack_texts(
        arrays, "unknown", [join_fields([kind, *e.fields]) for kind, e in unknown]
    )
    settings |= {
        "bytes": n_bytes,
        "dictionary": {
            "classes": list(dictionary.classes.lines()),
            "longest_group": dictionary.classes.longest_group,
            "templates": list(dictionary.templates.lines()),
            "rewriting": list(dictionary.rewriting.lines()),
            "boundary": list(dictionary.boundary),
            "compared": dictionary.compared,
            "unknown_compared": dictionary.unknown_compared,
            "distinct": dictionary.distinct,
        },
    }
    return model_file.encode(ModelFile(TYPE, settings, arrays))


def read_dictionary(file: ModelFile) -> WordDictionary:
    """The dictionary of a file; InputError where it is damaged."""
    value = setting(file.settings, "dictionary", dict)
    n_bytes = setting(file.settings, "bytes", dict)

    def lines(name: str) -> list[str]:
        found: list[Any] = setting(value, name, list)
        if not all(isinstance(line, str) for line in found):
            raise FileFormatError(f"its {name} are damaged")
        return found

    def entries(name: str) -> list[Entry]:
        texts = unpack_texts(file, name, n_bytes, len(file.arrays.get(f"{name}.lengths", ())))
        return [Entry(form, tuple(fields)) for form, *fields in map(split_fields, texts)]

    unknown: dict[str, list[Entry]] = {}
    for entry in entries("unknown"):
        unknown.setdefault(entry.form, []).append(entry)
    classes = CharacterClasses.parse(lines("classes"))
    return WordDictionary(
        entries("lexicon"),
        unknown,
        CharacterClasses(classes.classes, classes.ranges, setting(value, "longest_group", int)),
        WordTemplates.parse(lines("templates")),
        Rewriting.parse(lines("rewriting")),
        tuple(lines("boundary")),
        setting(value, "compared", (int, type(None))),
        setting(value, "unknown_compared", (int, type(None))),
        distinct=flag(value, "distinct"),
    )


def assemble(file: ModelFile, crf: Any) -> WordSegmenter:
    """The segmenter of a file, whose CRF has been read."""
    if not isinstance(crf.structure, Lattice):
        raise FileFormatError("its CRF is none of word lattices")
    dictionary = read_dictionary(file)
    if crf.structure != dictionary.structure:
        raise FileFormatError("its templates and those of its CRF are not the same")
    segmenter = WordSegmenter(dictionary, crf.optimizer, crf.l1, crf.l2, crf.min_count)
    segmenter.crf_ = crf
    return segmenter
