"""The file of a `TreebankTagger`: its CRF as a part, and the words of its training set.

settings "tag": the columns, such as "upos+feats"; "auto": whether the settings of the CRF were chosen, and
"settings_reason": which, and by what
texts "forms": the forms of the words of the training set; "words": the list of words, if there is one, whose alternations
are in settings "alternations"
"""

from collections.abc import Mapping
from typing import Any

from crfkit.errors import FileFormatError
from crfkit.features import Resource
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
from crfkit.pipeline.tagger_input import N_COLUMNS
from crfkit.pipeline.word_list import Alternation, WordList

TYPE = "TreebankTagger"


def pack(
    tagger: TreebankTagger,
    *,
    single_precision: bool = False,
    metadata: Mapping[str, Any] | None = None,
    bundle: bool = False,
) -> ModelFile:
    """The model file of a trained tagger; `bundle`: with the resources that it reads."""
    part = tagger.crf_.to_file(single_precision=single_precision, bundle=bundle)
    arrays: dict[str, Any] = {}
    forms = sorted(tagger.known_forms_)
    n_bytes = {"forms": pack_texts(arrays, "forms", forms)}
    alternations = None
    if tagger.words is not None:
        n_bytes["words"] = pack_texts(arrays, "words", sorted(tagger.words.words))
        alternations = [list(one) for one in tagger.words.alternations]
    settings = {
        "tag": str(TagColumns.parse(tagger.tag)),
        "auto": tagger.crf == AUTO,
        "settings_reason": tagger.settings_reason_,
        "alternations": alternations,
        "bytes": n_bytes,
        "metadata": dict(metadata or {}),
    }
    return join_parts(TYPE, settings, {"crf": part}, arrays)


def needed_resources(file: ModelFile) -> frozenset[str]:
    """The names of the resources that the tagger of a model file reads; none where it is damaged: `read` complains."""
    parts = split_parts(file)
    parameters = parts["crf"].settings.get("parameters") if "crf" in parts else None
    named = parameters.get("resources") if isinstance(parameters, dict) else None
    return frozenset(named) if isinstance(named, dict) else frozenset()


def read(file: ModelFile, source: str, resources: Mapping[str, Resource] | None = None) -> TreebankTagger:
    """The tagger of a model file; InputError where it is damaged."""
    with name_damage(source, "tagger"):
        columns = TagColumns.parse(setting(file.settings, "tag", str))
        metadata_of(file.settings)
        part = split_parts(file).get("crf")
        if part is None:
            raise FileFormatError("it has no CRF")
        n_forms = len(file.arrays.get("forms.lengths", ()))
        forms = unpack_texts(file, "forms", setting(file.settings, "bytes", dict), n_forms)
        words = _read_words(file)
        auto = setting(file.settings, "auto", bool)
        reason = setting(file.settings, "settings_reason", str)
    crf = from_file(part, source, resources=resources)
    with name_damage(source, "tagger"):
        _check(crf, columns)
    own = crf.resources if auto else None
    tagger = TreebankTagger(str(columns), AUTO if auto else crf, words=words, resources=own)
    tagger.crf_, tagger.known_forms_, tagger.settings_reason_ = crf, frozenset(forms), reason
    return tagger


def _read_words(file: ModelFile) -> WordList | None:
    """The list of words, if there is one."""
    given = file.settings.get("alternations")
    if given is None:
        return None
    if not isinstance(given, list) or not all(
        isinstance(one, list) and len(one) == 2 and all(isinstance(text, str) for text in one)
        for one in given
    ):
        raise FileFormatError("its alternations of endings are no pairs of texts")
    n_words = len(file.arrays.get("words.lengths", ()))
    words = unpack_texts(file, "words", setting(file.settings, "bytes", dict), n_words)
    return WordList(words, [Alternation(*one) for one in given])


def _check(crf: Any, columns: TagColumns) -> None:
    """Refuse a model whose labels are no tags of these columns, or which does not read words."""
    if not isinstance(crf, CRF):
        raise FileFormatError(f"it has a {type(crf).__name__}, expected a CRF")
    if crf.n_columns_ not in (1, N_COLUMNS):
        raise FileFormatError("its CRF does not read words")
    for label in crf.classes_:
        if not isinstance(label, str) or label.count("\t") != len(columns.names) - 1:
            raise FileFormatError(f"its label {str(label)[:40]!r} is no tag of {columns}")
