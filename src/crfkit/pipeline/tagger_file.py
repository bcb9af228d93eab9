"""The file of a `TreebankTagger`: its CRF as a part, and the words of its training set.

settings "tag": the columns, such as "upos+feats"; "auto": whether the settings of the CRF were chosen, and
"settings_reason": which, and by what
texts "forms": the forms of the words of the training set
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
from crfkit.pipeline.tag_columns import TagColumns
from crfkit.pipeline.tagger import AUTO, TreebankTagger

TYPE = "TreebankTagger"


def pack(
    tagger: TreebankTagger, *, single_precision: bool = False, metadata: Mapping[str, Any] | None = None
) -> ModelFile:
    """The model file of a trained tagger."""
    part = tagger.crf_.to_file(single_precision=single_precision)
    arrays: dict[str, Any] = {}
    forms = sorted(tagger.known_forms_)
    settings = {
        "tag": str(TagColumns.parse(tagger.tag)),
        "auto": tagger.crf == AUTO,
        "settings_reason": tagger.settings_reason_,
        "bytes": {"forms": pack_texts(arrays, "forms", forms)},
        "metadata": dict(metadata or {}),
    }
    return join_parts(TYPE, settings, {"crf": part}, arrays)


def read(file: ModelFile, source: str) -> TreebankTagger:
    """The tagger of a model file; InputError where it is damaged."""
    with name_damage(source, "tagger"):
        columns = TagColumns.parse(setting(file.settings, "tag", str))
        metadata_of(file.settings)
        part = split_parts(file).get("crf")
        if part is None:
            raise FileFormatError("it has no CRF")
        n_forms = len(file.arrays.get("forms.lengths", ()))
        forms = unpack_texts(file, "forms", setting(file.settings, "bytes", dict), n_forms)
        auto = setting(file.settings, "auto", bool)
        reason = setting(file.settings, "settings_reason", str)
    crf = from_file(part, source)
    with name_damage(source, "tagger"):
        _check(crf, columns)
    tagger = TreebankTagger(str(columns), AUTO if auto else crf)
    tagger.crf_, tagger.known_forms_, tagger.settings_reason_ = crf, frozenset(forms), reason
    return tagger


def _check(crf: Any, columns: TagColumns) -> None:
    """Refuse a model whose labels are no tags of these columns, or which does not read words."""
    if not isinstance(crf, CRF):
        raise FileFormatError(f"it has a {type(crf).__name__}, expected a CRF")
    if crf.n_columns_ != 1:
        raise FileFormatError("its CRF does not read words")
    for label in crf.classes_:
        if not isinstance(label, str) or label.count("\t") != len(columns.names) - 1:
            raise FileFormatError(f"its label {str(label)[:40]!r} is no tag of {columns}")
