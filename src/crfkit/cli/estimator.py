"""Models as the options of `crfkit train` ask for them: features, penalties, all else as the preset recommends."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from crfkit.cli.columns import Example
from crfkit.cli.options import optimizer_of
from crfkit.cli.resources import open_resources
from crfkit.cli.structures import structure_of
from crfkit.errors import InputError

if TYPE_CHECKING:
    from crfkit.data import EncodedDataset
    from crfkit.features import Template
    from crfkit.models import CRF


def given_features(options: Mapping[str, Any]) -> list[str]:
    """The options that say which features there are."""
    return [name for name in ("template", "wapiti_patterns", "features") if options[name] is not None]


def features_for(examples: Sequence[Example], options: Mapping[str, Any]) -> Template | str | None:
    """The template or the patterns of a file, the name of a preset, or a preset for words that goes with the labels.

    None where positions have attributes.
    """
    n_inputs = len(examples[0].inputs[0]) if examples else None
    return choose_features(lambda: labels_of(examples), n_inputs, options)


def choose_features(
    labels: Callable[[], Iterable[str]], n_inputs: int | None, options: Mapping[str, Any]
) -> Template | str | None:
    """The same for training data with these labels and so many input columns, where that is known."""
    from crfkit.evaluation import scheme_of
    from crfkit.features import Template, WapitiPatterns, preset

    given = given_features(options)
    names = [f"--{name.replace('_', '-')}" for name in given]
    if len(given) > 1:
        raise InputError(f"both {names[0]} and {names[1]} were given, expected one of them")
    if options["attributes"]:
        if given:
            raise InputError(f"{names[0]} makes features of columns, and with --attributes FILE has none")
        return None
    if given in (["template"], ["wapiti_patterns"]):
        parsed = {"template": Template, "wapiti_patterns": WapitiPatterns}[given[0]].read(options[given[0]])
        if n_inputs is not None:
            parsed.check_columns(n_inputs)
        return parsed
    preset_name: str | None = options["features"]
    if preset_name is None:
        preset_name = "pos" if scheme_of(labels()) is None else "names"
    preset(preset_name)  # a name that there is not is refused before any work
    return preset_name


def dataset_features(dataset: EncodedDataset, options: dict[str, Any]) -> Template | str | None:
    """What is asked for, else the preset that the data set was encoded with, with all that it recommends.

    None for a template, and where the preset is another one by now: the data set has its features.
    """
    from crfkit.features import PRESETS, bind_resources, preset

    if given_features(options):
        return features_for([], options)
    stored = dataset.settings
    name: str | None = stored.get("preset")
    if name is None or name not in PRESETS:
        return None
    resources = open_resources(options["resources"])
    template = bind_resources(preset(name, stored.get("n_columns")), resources, of_preset=True)
    return name if template.text == stored["features"] else None


def labels_of(examples: Sequence[Example]) -> set[str]:
    """All labels."""
    return {label for example in examples for label in example.labels or []}


def parse_l2(text: str | None, blocks: Sequence[str], usual: Any) -> Any:
    """`--l2`, and `["transitions=0.1", …]` of `--block-l2`, as the `l2` of a CRF; `usual` where it is not given."""
    from crfkit.models import scale_strengths

    default = usual if text is None else scale_strengths(usual, _number_or_auto(text))
    if text is not None and default is None:
        raise InputError(f"--l2 {text}: expected a number, or auto")
    strengths = {}
    for text in blocks:
        name, _, number = text.rpartition("=")
        strengths[name] = _number_or_auto(number)
        if not name or strengths[name] is None:
            raise InputError(
                f"--block-l2 {text}: expected name=number, such as transitions=0.1, or name=auto"
            )
    usual = default if isinstance(default, Mapping) else {"default": default}
    return {**usual, **strengths} if strengths else default


def _number_or_auto(text: str) -> float | str | None:
    try:
        return text if text == "auto" else float(text)
    except ValueError:
        return None


def new_model(examples: Sequence[Example], options: dict[str, Any], client: Any = None) -> CRF:
    """An untrained model as the options of the command ask for it; all else is as the preset recommends.

    With a client, it is trained on the cluster of that.
    """
    return estimator_of(features_for(examples, options), options, client)


def estimator_of(features: Template | str | None, options: dict[str, Any], client: Any) -> CRF:
    """An untrained model with these features; a client trains it on its cluster."""
    from crfkit.models import CRF

    make: Callable[..., CRF] = CRF
    if client is not None:
        from crfkit.distributed import DistributedCRF

        make = partial(DistributedCRF, client)
    facets = options["facets"]
    usual: CRF = CRF(structure_of(options), features, hash_bits=options["hash_bits"])
    return make(
        structure=usual.structure,
        features=features,
        optimizer=optimizer_of(options, usual.optimizer),
        l1=options["l1"],
        l2=parse_l2(options["l2"], options["block_l2"], usual.l2),
        all_possible_states=options["all_possible_states"],
        all_possible_transitions=options["all_possible_transitions"],
        min_count=options["min_count"],
        facets=False if facets == "none" else facets,
        tag_dictionary=_dictionary_of(options),
        n_threads=options["threads"],
        resources=open_resources(options["resources"]),
        hash_bits=options["hash_bits"],
        decode=options["decode"],
        margin=options["margin"],
        span_states=False if options["span_states"] == "none" else options["span_states"],
    )


def check_cluster_optimizer(options: dict[str, Any]) -> None:
    """Refuse, before anything is read, an optimizer that a cluster does not run: the one asked for, or the preset's.

    Presets that are chosen by the labels have the default one.
    """
    from crfkit.distributed import check_optimizer
    from crfkit.models import CRF

    usual: CRF = CRF(structure_of(options), options["features"], hash_bits=options["hash_bits"])
    check_optimizer(optimizer_of(options, usual.optimizer))


def _dictionary_of(options: dict[str, Any]) -> bool | str | None:
    """The tag dictionary that options ask for; None: that of the preset."""
    asked: bool | None = options["tag_dictionary"]
    if not options["related_forms"]:
        return asked
    if asked is False:
        raise InputError("--related-forms was given beside --no-tag-dictionary, expected one of them")
    return "related"
