"""The file of a `Pipeline`: each component is a part.

settings "components": the names of the parts, in their order, the tokenizer first if there is one; "left_out": what could
not be trained, and why; "folds": how many there were
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from crfkit.errors import ArgumentError, FileFormatError, UnsavableError
from crfkit.features import Resource
from crfkit.models import ModelFile, Parser, join_parts, metadata_of, name_damage, setting, split_parts
from crfkit.pipeline import tagger_file
from crfkit.pipeline.components import Component, component_name
from crfkit.pipeline.saved_model import SavedModel
from crfkit.pipeline.tokenizer import Tokenizer

if TYPE_CHECKING:
    from crfkit.pipeline.pipeline import Pipeline

TYPE = "Pipeline"


def to_part(component: Any, *, single_precision: bool = False, bundle: bool = False) -> ModelFile:
    """The model file of a component, with the word vectors that a parser reads in it.

    `bundle`: with the resources that other components of ours read, too.
    """
    has_all = isinstance(component, Parser) or (bundle and isinstance(component, SavedModel))
    bundled = {"bundle": True} if has_all else {}
    file: ModelFile = component.to_file(single_precision=single_precision, **bundled)
    return file


def pack(
    pipeline: "Pipeline",
    *,
    single_precision: bool = True,
    metadata: Mapping[str, Any] | None = None,
    bundle: bool = False,
) -> ModelFile:
    """The model file of a trained pipeline; UnsavableError for a component that has none.

    `bundle`: with the resources that our components read.
    """
    parts: dict[str, ModelFile] = {}
    components: list[Any] = [
        part for part in (pipeline.tokenizer_, *pipeline.components_) if part is not None
    ]
    for component in components:
        if not hasattr(component, "to_file"):
            raise UnsavableError(
                f"the component {component_name(component)} cannot be saved, as it has no method to_file"
            )
        parts[f"{len(parts)}-{type(component).__name__}"] = to_part(
            component, single_precision=single_precision, bundle=bundle
        )
    settings = {
        "components": list(parts),
        "left_out": pipeline.left_out_,
        "folds": pipeline.folds,
        "metadata": dict(metadata or {}),
    }
    return join_parts(TYPE, settings, parts)


def read(file: ModelFile, source: str, resources: Mapping[str, Resource] | None = None) -> "Pipeline":
    """The pipeline of a model file; InputError where it is damaged. A component gets the resources that it needs."""
    from crfkit.pipeline.loading import load_file
    from crfkit.pipeline.pipeline import Pipeline

    with name_damage(source, "pipeline"):
        metadata_of(file.settings)
        names = setting(file.settings, "components", list)
        left_out = setting(file.settings, "left_out", dict)
        folds = setting(file.settings, "folds", int)
        parts = split_parts(file)
        if not all(isinstance(name, str) for name in names) or sorted(names) != sorted(parts):
            raise FileFormatError("its components are not those that it names")
        if any(part.type == TYPE for part in parts.values()):
            raise FileFormatError("its components are not those that it names")
        needed = {
            name: tagger_file.needed_resources(part)
            for name, part in parts.items()
            if part.type == tagger_file.TYPE
        }
    _check_needed(resources or {}, frozenset().union(*needed.values()), source)
    tokenizer: Tokenizer | None = None
    components: list[Component] = []
    for i, name in enumerate(names):
        given = {key: one for key, one in (resources or {}).items() if key in needed.get(name, ())}
        found = load_file(parts[name], f"{source}, {name}", resources=given or None)
        is_tokenizer = isinstance(found, Tokenizer)
        if is_tokenizer and i == 0:
            tokenizer = found
        elif isinstance(found, Component) and not is_tokenizer:
            components.append(found)
        else:
            raise FileFormatError(f"{source}: its part {name[:40]!r} is no component of a pipeline")
    pipeline = Pipeline(folds=folds)
    pipeline._set_trained(tokenizer, components, {str(key): str(value) for key, value in left_out.items()})
    return pipeline


def _check_needed(resources: Mapping[str, Resource], needed: frozenset[str], source: str) -> None:
    """Refuse resources that no component reads."""
    for name in resources:
        if name not in needed:
            known = ", ".join(map(repr, sorted(needed))) or "none"
            raise ArgumentError(f"{source}: resources has {name!r}, but the components need {known}")
