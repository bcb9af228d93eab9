"""The parameters of a CRF, checked in words when training begins, and as JSON for the model file."""

from __future__ import annotations

import dataclasses
import os
import re
import reprlib
from collections.abc import Collection, Hashable, Mapping, Sized
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from crfkit.data import InputError
from crfkit.evaluation import checked_metric
from crfkit.features import (
    NAMED_FACETS,
    NAMED_LINE,
    PRESETS,
    FeatureFunctions,
    TagDictionary,
    Template,
    WapitiPatterns,
    WapitiTokens,
    counted_columns,
    preset,
)
from crfkit.models.constraints import structure_from_json, structure_to_json
from crfkit.models.files.file_arrays import current_names, setting
from crfkit.optimizers import AUTO, OPTIMIZERS, optimizer_named
from crfkit.structures import Bigrams, Chain, Patterns

Float64s = npt.NDArray[np.float64]

MOST = 2**31 - 1  # what the native core counts to
MOST_THREADS = 4096
MAX_COLUMNS = 1_000_000
_LISTED = "listed"  # in a model file: facets or a dictionary that were given, not made by name or from data
LARGEST_WEIGHT = 1e15  # of a sequence: sums of more leave single precision
_LANGUAGES = {kind.LANGUAGE: kind for kind in (Template, WapitiPatterns, WapitiTokens)}
_ONE_LINE = re.compile(
    rf"[UB][0-9]*(:.*)?|[UB].*%.*|#.*|{NAMED_LINE.pattern}.*"
)  # a template without a line break, or what was meant as one


def check_parameters(params: Mapping[str, Any]) -> None:
    """Refuse parameters that no CRF can be trained with. The strengths l1 and l2 are checked block by block later."""
    structure = params["structure"]
    if not isinstance(structure, Chain | Patterns):
        raise InputError(f"structure is {structure!r}, expected crfkit.Chain(…) or crfkit.Patterns(…)")
    optimizer = checked_optimizer(params["optimizer"], params["l1"])
    if isinstance(structure, Patterns):
        _check_beside_patterns(params, getattr(optimizer, "needs", ()))
    for name in ("all_possible_states", "all_possible_transitions"):
        if not isinstance(params[name], bool | np.bool_):
            raise InputError(f"{name} is {params[name]!r}, expected True or False")
    check_count("min_count", params["min_count"])
    if isinstance(params["features"], FeatureFunctions) and (
        params["all_possible_states"] or params["min_count"] > 1
    ):
        raise InputError(
            "all_possible_states and min_count are about counted features, not about feature functions"
        )
    _check_labels(params["facets"], params["tag_dictionary"])
    thread_count(params["n_threads"])


def checked_optimizer(given: Any, l1: Any) -> Any:
    """An optimizer, its type where it was named, or "auto"; refused where it is none of these or takes no l1."""
    optimizer = given
    if isinstance(given, str) and given != AUTO:
        optimizer = optimizer_named(given)
        if optimizer is None:
            raise InputError(f"optimizer is {given!r}, expected {', '.join([*OPTIMIZERS, AUTO])}")
    elif given != AUTO and (
        isinstance(given, type) or not (hasattr(given, "minimize") and hasattr(given, "needs"))
    ):
        raise InputError(f"optimizer is {given!r}, expected an optimizer such as crfkit.LBFGS(…)")
    if any(l1.values() if isinstance(l1, Mapping) else [l1]) and not getattr(optimizer, "takes_l1", True):
        name = getattr(optimizer, "__name__", type(optimizer).__name__)
        raise InputError(
            f"l1 is {l1!r}, but {name} takes no l1 penalty, expected l1=0 or an optimizer that can, such as crfkit.LBFGS(…)"
        )
    return optimizer


def _check_beside_patterns(params: Mapping[str, Any], needs: Collection[str]) -> None:
    """Refuse what does not go with patterns, such as an optimizer that needs more than they offer."""
    if not set(needs) <= {"value_and_gradient", "hessian_vector"}:
        raise InputError(
            f"optimizer is {params['optimizer']!r}, which goes from sequence to sequence: expected one for whole data sets "
            "where the structure has patterns, such as crfkit.LBFGS(…) or crfkit.TRON(…)"
        )
    if isinstance(params["features"], FeatureFunctions):
        raise InputError(
            "structure has patterns, which do not go with feature functions: expected other features, or crfkit.Chain(…)"
        )
    if params["facets"] is not None:
        raise InputError("structure has patterns, which do not go with facets: expected facets=None")


def _check_labels(facets: object, dictionary: object) -> None:
    """Refuse what says nothing about labels."""
    if not (facets is None or isinstance(facets, Mapping) or callable(facets) or facets in NAMED_FACETS):
        known = ", ".join(f'"{name}"' for name in NAMED_FACETS)
        raise InputError(f"facets is {facets!r}, expected None, {known}, a dict or a function of a label")
    if not (dictionary is None or isinstance(dictionary, bool | np.bool_ | TagDictionary)):
        raise InputError(f"tag_dictionary is {dictionary!r}, expected True, None or a crfkit.TagDictionary")


def check_count(name: str, value: object, most: int = MOST) -> int:
    """A whole number from 1 to `most`."""
    if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < 1:
        raise InputError(f"{name} is {value!r}, expected a whole number of at least 1")
    if value > most:
        raise InputError(f"{name} is {value:,}, expected at most {most:,}")
    return int(value)


def check_dev(dev: object, metric: object, patience: object) -> None:
    """Refuse a dev set that is not a pair (X, y), and what has no meaning without one."""
    if dev is None:
        for name, value in (("metric", metric), ("patience", patience)):
            if value is not None:
                raise InputError(f"{name} was given without dev, the held-out data (X, y) that it is about")
    elif not isinstance(dev, tuple | list) or len(dev) not in ((2, 3) if isinstance(dev, tuple) else (2,)):
        raise InputError(
            f"dev is {_kind(dev)}, expected the pair (X, y) of held-out data, or (X, y, allowed)"
        )
    checked_metric(metric)
    if patience is not None:
        check_count("patience", patience)


def check_time_budget(budget: object) -> None:
    """Refuse a time budget that is no number of seconds."""
    if budget is not None and not (
        isinstance(budget, int | float | np.number) and not isinstance(budget, bool) and budget > 0
    ):
        raise InputError(f"time_budget is {budget!r}, expected a number of seconds above 0")


def _kind(value: object) -> str:
    """What a value is, in few words: "of type list, of length 3"."""
    size = f", of length {len(value)}" if isinstance(value, Sized) else ""
    return f"of type {type(value).__name__}{size}"


def thread_count(n_threads: int | None) -> int:
    """`n_threads`, or the number of processors that this process may use."""
    if n_threads is not None:
        return check_count("n_threads", n_threads, MOST_THREADS)
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on every system
        return os.cpu_count() or 1


_FROM_FILE = "; crfkit.Template.read(path) reads a template from a file"


def template_of(features: object, n_columns: int | None = None) -> Template | None:
    """The template that the parameter `features` stands for: itself, its text, or the preset of this name.

    With `n_columns`, a preset leaves out what reads columns beyond these.
    """
    if features is None or isinstance(features, Template):
        return features
    if isinstance(features, FeatureFunctions):
        return None
    if not isinstance(features, str):
        raise InputError(
            f"features is {features!r}, expected None, the name of a preset, a Template or its text, or FeatureFunctions"
            f"{_FROM_FILE}"
        )
    if features in PRESETS:
        return preset(features, n_columns)
    if "\n" in features or _ONE_LINE.fullmatch(features):
        return Template.parse(features, source="features")
    raise InputError(
        f"features is {features!r}, expected the name of a preset ({', '.join(PRESETS)}), or a template: "
        f"lines that begin with U or B, or with a name and ={_FROM_FILE}"
    )


def fitting_template(features: object, X: Any) -> tuple[Any, Template | None]:
    """Training data X, still to be read, and the template: a preset fits itself to the columns of X."""
    if not isinstance(features, str) or features not in PRESETS:
        return X, template_of(features)
    X, n_columns = counted_columns(X)
    return X, template_of(features, n_columns)


def functions_of(features: object) -> FeatureFunctions | None:
    """The feature functions that the parameter `features` holds, if it does."""
    return features if isinstance(features, FeatureFunctions) else None


def random_generator(random_state: object) -> np.random.Generator:
    """A source of random numbers from a seed, a generator, or None."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**32, size=4, dtype=np.uint32))
    if random_state is None or (isinstance(random_state, int | np.integer) and random_state >= 0):
        return np.random.default_rng(None if random_state is None else int(random_state))
    raise InputError(
        f"random_state is {random_state!r}, expected None, a whole number from 0 on, or a generator"
    )


def checked_sample_weight(
    sample_weight: npt.ArrayLike | None, n_sequences: int, kept: npt.NDArray[np.bool_] | None = None
) -> Float64s | None:
    """One number from 0 to 1e15 for each sequence, [N], or for those of them that are kept."""
    if sample_weight is None:
        return None
    try:
        weights = np.asarray(sample_weight, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(
            f"sample_weight is {reprlib.repr(sample_weight)}, expected one number for each sequence"
        ) from None
    if weights.shape != (n_sequences,):
        raise InputError(
            f"sample_weight has shape {list(weights.shape)}, expected [{n_sequences}]: one number for each sequence"
        )
    bad = np.flatnonzero(~((weights >= 0) & (weights <= LARGEST_WEIGHT)))
    if len(bad):
        raise InputError(
            f"sample_weight[{bad[0]}] is {weights[bad[0]]}, expected a number from 0 to {LARGEST_WEIGHT:g}"
        )
    if kept is not None:
        weights = weights[kept]
    if n_sequences and not weights.any():
        raise InputError("sample_weight: all weights are zero, there is nothing to learn from")
    return weights


def to_json(params: Mapping[str, Any], template: Template | None) -> dict[str, Any]:
    """The parameters that a model file keeps; threads and random numbers belong to the machine, not to the model."""
    features = params["features"]
    return {
        "structure": structure_to_json(params["structure"]),
        "features": None if template is None else template.text,
        "language": None if template is None else template.LANGUAGE,
        "preset": features if isinstance(features, str) and features in PRESETS else None,
        "optimizer": optimizer_to_json(params["optimizer"]),
        "l1": _strength_to_json(params["l1"]),
        "l2": _strength_to_json(params["l2"]),
        "all_possible_states": bool(params["all_possible_states"]),
        "all_possible_transitions": bool(params["all_possible_transitions"]),
        "min_count": int(params["min_count"]),
        "facets": _given_or_named(params["facets"]),
        "tag_dictionary": _given_or_named(params["tag_dictionary"]),
    }


def _given_or_named(value: Any) -> str | bool | None:
    """A setting that says by which name, or with True from data, or that something was listed."""
    if value is None or isinstance(value, str):
        return value
    return bool(value) if isinstance(value, bool | np.bool_) else _LISTED


def optimizer_to_json(optimizer: Any) -> Any:
    """Its name and settings, or the name that was given; None for one that is not of this package."""
    if isinstance(optimizer, str):
        return optimizer
    for name, kind in OPTIMIZERS.items():
        if type(optimizer) is kind:
            return {"name": name, **dataclasses.asdict(optimizer)}
    return None


def optimizer_from_json(value: Any) -> Any:
    """The inverse of `optimizer_to_json`; settings without a name are those of LBFGS."""
    if isinstance(value, str):
        if value != AUTO and optimizer_named(value) is None:
            raise InputError(f"its optimizer is {value[:40]!r}")
        return value
    settings = dict(value)
    name = settings.pop("name", "lbfgs")
    if not isinstance(name, str) or name not in OPTIMIZERS:
        raise InputError(f"its optimizer is {str(name)[:40]!r}")
    try:
        return OPTIMIZERS[name](**settings)
    except (TypeError, ValueError) as error:
        raise InputError(f"its optimizer is damaged ({error})") from None


def _strength_to_json(strength: Any) -> Any:
    if isinstance(strength, Mapping):
        return {str(block): float(value) for block, value in strength.items()}
    return float(strength)


class Learned(NamedTuple):
    """What a model learned, or was given, that its parameters may refer to."""

    bigrams: Bigrams | None
    facets: dict[Hashable, dict[str, str]] | None  # of each label
    dictionary: TagDictionary | None


def from_json(settings: dict[str, Any], n_columns: int | None, learned: Learned) -> dict[str, Any]:
    """The parameters of a model with these columns; InputError for what cannot be parameters."""
    settings = current_names(settings)
    params = {
        "structure": structure_from_json(setting(settings, "structure", dict), learned.bigrams),
        "features": _features_from_json(settings, n_columns),
        "l1": _strength_from_json(settings, "l1"),
        "l2": _strength_from_json(settings, "l2"),
        "all_possible_states": setting(settings, "all_possible_states", bool),
        "all_possible_transitions": setting(settings, "all_possible_transitions", bool),
        "min_count": check_count("min_count", setting(settings, "min_count", int)),
        "facets": _facets_from_json(settings, learned.facets),
        "tag_dictionary": _dictionary_from_json(settings, learned.dictionary),
    }
    optimizer = setting(settings, "optimizer", (dict, str, type(None)))
    if optimizer is not None:
        params["optimizer"] = optimizer_from_json(optimizer)
    return params


def _facets_from_json(settings: dict[str, Any], facets: dict[Hashable, dict[str, str]] | None) -> Any:
    name = setting(settings, "facets", (str, type(None)))
    if (name is None) != (facets is None) or name not in (None, _LISTED, *NAMED_FACETS):
        raise InputError("its facets and its setting 'facets' do not go together")
    return facets if name == _LISTED else name


def _dictionary_from_json(settings: dict[str, Any], dictionary: TagDictionary | None) -> Any:
    kind = setting(settings, "tag_dictionary", (str, bool, type(None)))
    if bool(kind) != (dictionary is not None) or kind not in (None, False, True, _LISTED):
        raise InputError("its tag dictionary and its setting 'tag_dictionary' do not go together")
    return dictionary if kind == _LISTED else kind


def _features_from_json(settings: dict[str, Any], n_columns: int | None) -> str | Template | None:
    text = setting(settings, "features", (str, type(None)))
    name: str | None = setting(settings, "preset", (str, type(None)))
    if text is None:
        return None
    # The text decides: a preset of this name may have changed since the model was trained.
    if name is not None and name in PRESETS and preset(name, n_columns).text == text:
        return name
    language = settings.get("language") or Template.LANGUAGE  # older files have templates alone
    if not isinstance(language, str) or language not in _LANGUAGES:
        raise InputError(f"its template is in the language {str(language)[:40]!r}")
    return _LANGUAGES[language].parse(text, source="template of the model")


def _strength_from_json(settings: dict[str, Any], name: str) -> float | dict[str, float]:
    value = setting(settings, name, (float, int, dict))
    numbers = value.values() if isinstance(value, dict) else [value]
    if not all(isinstance(number, int | float) and 0 <= number < 1e300 for number in numbers):
        raise InputError(f"its setting {name!r} is damaged")
    if isinstance(value, dict):
        return {block: float(number) for block, number in value.items()}
    return float(value)


def label_column(settings: dict[str, Any], n_columns: int | None, template: Template | None) -> int:
    """Where files have the label, beside the `n_columns` columns that a position has."""
    column: int = setting(settings, "label_column", int)
    if template is None:
        if n_columns is not None:
            raise InputError("it has columns but no template")
        return column
    if n_columns is None or not template.n_columns <= n_columns <= MAX_COLUMNS:
        raise InputError(f"its positions have {n_columns} columns, its template reads {template.n_columns}")
    if not -n_columns - 1 <= column <= n_columns:
        raise InputError(f"its label column is {column}, of {n_columns + 1}")
    return column


def flag(settings: dict[str, Any], name: str) -> bool:
    """A setting that older files do not have, where it is false."""
    return bool(setting(settings, name, bool)) if name in settings else False


def separator(settings: dict[str, Any]) -> str | None:
    """What separates the columns of files; None where the file of the model does not say."""
    text: str | None = setting(settings, "separator", (str, type(None)))
    if text is not None and not 0 < len(text) <= 100:
        raise InputError(f"its separator has {len(text)} characters, expected 1 to 100")
    return text
