"""The file of a `Lemmatizer`: its CRF as a part, and its dictionary.

texts "words": form, UPOS, FEATS and lemma of each entry of the dictionary, with tabs between them
"""

from collections.abc import Mapping
from typing import Any

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
from crfkit.pipeline.edit_scripts import is_script
from crfkit.pipeline.lemmatizer import Lemmatizer, Tagged

TYPE = "Lemmatizer"


def pack(
    lemmatizer: Lemmatizer, *, single_precision: bool = True, metadata: Mapping[str, Any] | None = None
) -> ModelFile:
    """The model file of a trained lemmatizer."""
    arrays: dict[str, Any] = {}
    lines = sorted("\t".join((*tagged, lemma)) for tagged, lemma in lemmatizer.dictionary_.items())
    settings = {
        "n_words": len(lines),
        "bytes": {"words": pack_texts(arrays, "words", lines)},
        "metadata": dict(metadata or {}),
    }
    part = lemmatizer.crf_.to_file(single_precision=single_precision)
    return join_parts(TYPE, settings, {"crf": part}, arrays)


def read(file: ModelFile, source: str) -> Lemmatizer:
    """The lemmatizer of a model file; InputError where it is damaged."""
    with name_damage(source, "lemmatizer"):
        metadata_of(file.settings)
        n_words = setting(file.settings, "n_words", int)
        lines = unpack_texts(file, "words", setting(file.settings, "bytes", dict), n_words)
        dictionary: dict[Tagged, str] = {}
        for line in lines:
            columns = line.split("\t")
            if len(columns) != 4 or not columns[3]:
                raise FileFormatError(f"the entry {line[:40]!r} of its dictionary is damaged")
            dictionary[Tagged(*columns[:3])] = columns[3]
        part = split_parts(file).get("crf")
        if part is None:
            raise FileFormatError("it has no CRF")
    crf = from_file(part, source)
    with name_damage(source, "lemmatizer"):
        if not isinstance(crf, CRF) or crf.n_columns_ != len(Tagged._fields):
            raise FileFormatError("its CRF is none of a lemmatizer")
        if not all(isinstance(label, str) and is_script(label) for label in crf.classes_):
            raise FileFormatError("the labels of its CRF are no edit scripts")
    lemmatizer = Lemmatizer(crf.optimizer, crf.l2)  # type: ignore[arg-type]
    lemmatizer._set_trained(crf, dictionary)
    return lemmatizer
