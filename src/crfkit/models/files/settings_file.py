"""Parameters of estimators as JSON, one by one; what cannot be a parameter is an InputError."""

import dataclasses
from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np

from crfkit.errors import ArgumentError, FileFormatError
from crfkit.features import (
    IOBES,
    PRESETS,
    RELATED,
    WITH_LABELS,
    TagDictionary,
    Template,
    WapitiPatterns,
    WapitiTokens,
    is_facet_name,
    preset,
)
from crfkit.models.checks import DEFAULT_DECODING, check_model_decoding
from crfkit.models.files.file_arrays import setting
from crfkit.optimizers import AUTO, OPTIMIZERS, optimizer_named
from crfkit.structures import Bigrams, Chain

_LISTED = "listed"  # bigrams, facets or a dictionary that were given, not made by name or from data
_RENAMED_BLOCKS = {"arcs": "transitions"}  # of penalties, in files of earlier versions
_LANGUAGES = {kind.LANGUAGE: kind for kind in (Template, WapitiPatterns, WapitiTokens)}


def chain_to_json(chain: Chain) -> dict[str, Any]:
    """What the parameter `structure` says of a chain; listed bigrams are kept apart, as label ids."""
    return {
        "start": chain.start,
        "end": chain.end,
        "bigrams": _LISTED if isinstance(chain.bigrams, Bigrams) else chain.bigrams,
        "unseen": chain.unseen,
    }


def chain_from_json(value: dict[str, Any], bigrams: Bigrams | None) -> Chain:
    """The inverse of `chain_to_json`; `bigrams` are those of the trained model."""
    name = setting(value, "bigrams", (str, type(None)))
    if (name is None) != (bigrams is None):
        raise FileFormatError("its bigrams and its setting 'bigrams' do not go together")
    try:
        return Chain(
            start=setting(value, "start", bool),
            end=setting(value, "end", bool),
            bigrams=bigrams if name == _LISTED else name,
            unseen=setting(value, "unseen", str),
        )
    except ValueError as error:
        raise FileFormatError(f"its structure is damaged ({str(error).rstrip('.')})") from None


def features_from_json(settings: dict[str, Any], n_columns: int | None) -> str | Template | None:
    """The parameter `features`: a template by its text, or the name of the preset that has this text."""
    text = setting(settings, "features", (str, type(None)))
    name: str | None = setting(settings, "preset", (str, type(None)))
    if text is None:
        return None
    # The text decides: a preset of this name may have changed since the model was trained.
    if name is not None and name in PRESETS and preset(name, n_columns).text == text:
        return name
    language = settings.get("language") or Template.LANGUAGE  # older files have templates alone
    if not isinstance(language, str) or language not in _LANGUAGES:
        raise FileFormatError(f"its template is in the language {str(language)[:40]!r}")
    return _LANGUAGES[language].parse(text, source="template of the model")


def optimizer_to_json(optimizer: Any) -> Any:
    """Its name and settings, or the name that was given; None for one that is not of this package."""
    if isinstance(optimizer, str):
        return optimizer
    for name, kind in OPTIMIZERS.items():
        if type(optimizer) is kind:
            return {"name": name, **dataclasses.asdict(optimizer)}
    return None


def optimizer_from_json(settings: dict[str, Any], default: Any) -> Any:
    """The inverse of `optimizer_to_json`; settings without a name are those of LBFGS."""
    value = setting(settings, "optimizer", (dict, str, type(None)))
    if value is None:
        return default
    if isinstance(value, str):
        if value != AUTO and optimizer_named(value) is None:
            raise FileFormatError(f"its optimizer is {value[:40]!r}")
        return value
    options = dict(value)
    name = options.pop("name", "lbfgs")
    if not isinstance(name, str) or name not in OPTIMIZERS:
        raise FileFormatError(f"its optimizer is {str(name)[:40]!r}")
    try:
        return OPTIMIZERS[name](**options)
    except (TypeError, ValueError) as error:
        raise FileFormatError(f"its optimizer is damaged ({error})") from None


def strength_to_json(strength: Any) -> Any:
    """The strength of a penalty: a number, or numbers by block."""
    if isinstance(strength, Mapping):
        return {str(block): float(value) for block, value in strength.items()}
    return float(strength)


def strength_from_json(settings: dict[str, Any], name: str) -> float | dict[str, float]:
    """The inverse of `strength_to_json`."""
    value = setting(settings, name, (float, int, dict))
    numbers = value.values() if isinstance(value, dict) else [value]
    if not all(isinstance(number, int | float) and 0 <= number < 1e300 for number in numbers):
        raise FileFormatError(f"its setting {name!r} is damaged")
    if isinstance(value, dict):
        return {str(_RENAMED_BLOCKS.get(block, block)): float(number) for block, number in value.items()}
    return float(value)


def name_or_listed(value: Any) -> str | bool | None:
    """A parameter that is a name, True for what is made from data, or something listed, which is kept apart."""
    if value is None or isinstance(value, str):
        return value
    return bool(value) if isinstance(value, bool | np.bool_) else _LISTED


def facets_from_json(settings: dict[str, Any], facets: dict[Hashable, dict[str, str]] | None) -> Any:
    """The parameter `facets`; `facets` are those of the trained model."""
    name = setting(settings, "facets", (str, bool, type(None)))
    by_look = isinstance(name, str) and name.removesuffix(WITH_LABELS) == AUTO  # may have found none
    named = name in (None, False, _LISTED) or is_facet_name(name)
    if not named or not (by_look or (not name) == (facets is None)):
        raise FileFormatError("its facets and its setting 'facets' do not go together")
    return facets if name == _LISTED else name


def dictionary_from_json(settings: dict[str, Any], dictionary: TagDictionary | None) -> Any:
    """The parameter `tag_dictionary`; `dictionary` is that of the trained model."""
    kind = setting(settings, "tag_dictionary", (str, bool, type(None)))
    if bool(kind) != (dictionary is not None) or kind not in (None, False, True, RELATED, _LISTED):
        raise FileFormatError("its tag dictionary and its setting 'tag_dictionary' do not go together")
    return dictionary if kind == _LISTED else kind


def states_from_json(settings: dict[str, Any]) -> str | None:
    """The parameter `span_states`; files that do not say so are of models without."""
    value = settings.get("span_states")
    if value not in (None, IOBES, AUTO):
        raise FileFormatError(f"its setting span_states is {str(value)[:40]!r}")
    return value


def decoding_from_json(settings: dict[str, Any]) -> str:
    """How the model chooses labels; files that do not say so are of models that choose by Viterbi."""
    decode = settings.get("decode", DEFAULT_DECODING)
    try:
        check_model_decoding(decode)
    except ArgumentError as error:
        raise FileFormatError(f"its setting {error}") from None
    return str(decode)
