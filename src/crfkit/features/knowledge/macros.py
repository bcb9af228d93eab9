"""Macros of templates that read resources, and the lines that a preset has for resources.

%in[row,column,name]  %in[row,column,name,list]       the state of a position in the matches of a lexicon
%cluster[row,column]  %cluster[row,column,length]     the path of a word, or its beginning
%cluster[row,column,name]  %cluster[row,column,name,length]
%vector[row,column,name]                              a word's vector, as a dense block
"""

from __future__ import annotations

import os
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from crfkit import _core
from crfkit.errors import ArgumentError, FeatureError
from crfkit.features.knowledge.clusters import LENGTHS, Clusters
from crfkit.features.knowledge.lexicon import Lexicon
from crfkit.features.knowledge.resource import MissingResource, Resource
from crfkit.features.knowledge.word_vectors import WordVectors

MACROS: Mapping[str, str] = MappingProxyType(
    {
        "in": "[row,column,lexicon] or %in[row,column,lexicon,list]",
        "cluster": "[row,column], with the name of the clusters, a length or both behind the column",
        "vector": "[row,column,vectors]",
    }
)
"""The macros that read resources, and their form."""
_KINDS: Mapping[str, type[Resource]] = MappingProxyType(
    {"in": Lexicon, "cluster": Clusters, "vector": WordVectors}
)
_NAME = re.compile(r"[^\W\d]\w*")
_LENGTH = re.compile(r"[1-9][0-9]{0,5}")
_LIST = re.compile(r"[^\s,%\[\]=:][^,%\[\]=:]*(?<!\s)")
OFFSETS = (-1, 0, 1)

Resources = Mapping[str, Resource | MissingResource]


class Lookup(NamedTuple):
    """What a macro asks of a resource."""

    macro: str
    resource: str | None  # its name; None: the only one of its kind
    list: str | None = None  # of a lexicon; None: all
    length: int | None = None  # of a path; None: all of it


def parse_lookup(macro: str, given: Sequence[str]) -> Lookup | None:
    """The lookup of a macro with these arguments behind row and column; None where they are none of its forms."""
    if macro == "cluster":
        name = given[0] if given and _NAME.fullmatch(given[0]) else None
        rest = given[name is not None :]
        if len(rest) > 1 or not all(map(_LENGTH.fullmatch, rest)):
            return None
        return Lookup(macro, name, None, int(rest[0]) if rest else None)
    if not given or not _NAME.fullmatch(given[0]) or len(given) > 1 + (macro == "in") or "" in given:
        return None
    return Lookup(macro, given[0], given[1] if len(given) > 1 else None)


def check_resource(lookup: Lookup, resources: Resources, place: str) -> None:
    """Raise InputError where what a macro at this place reads is missing, or of another kind."""
    kind = _KINDS[lookup.macro]
    example = lookup.resource or "clusters"
    advice = (
        f"give it as CRF(resources={{{example!r}: crfkit.{kind.__name__}.load(path)}}), "
        f"or by --resource {example}=FILE"
    )
    if lookup.resource is None:
        found = [name for name, resource in resources.items() if resource.KIND == kind.KIND]
        if len(found) > 1:
            known = ", ".join(found)
            raise FeatureError(f"{place}: %cluster names no clusters, and there are several: {known}")
        if not found:
            raise FeatureError(f"{place}: %cluster reads clusters, but no clusters were given: {advice}")
    elif lookup.resource not in resources:
        raise FeatureError(
            f"{place}: %{lookup.macro} reads the {kind.KIND} {lookup.resource!r}, but it was not given: {advice}"
        )
    resource = find_resource(lookup, resources)
    if not isinstance(resource, kind):
        raise FeatureError(
            f"{place}: %{lookup.macro} reads {kind.KIND}, but {lookup.resource!r} is of the kind {resource.KIND}"
        )
    if isinstance(resource, Lexicon) and lookup.list is not None:
        try:
            resource.number_of(lookup.list)
        except ArgumentError as error:
            named = str(error).replace("the lexicon", f"the lexicon {lookup.resource!r}", 1)
            raise FeatureError(f"{place}: {named}") from None


def resource_name(lookup: Lookup, resources: Resources) -> str:
    """The name of the resource that a macro reads; where it has none, that of the first one of the kind."""
    if lookup.resource is not None:
        return lookup.resource
    kind = _KINDS[lookup.macro].KIND
    return next((name for name, resource in resources.items() if kind == resource.KIND), "")


def find_resource(lookup: Lookup, resources: Resources) -> Resource:
    """The resource that a macro reads; NotLoadedError where a model was loaded without it."""
    name = resource_name(lookup, resources)
    found = resources.get(name)
    if isinstance(found, MissingResource):
        raise found.complaint(name)
    if found is None:
        check_resource(lookup, resources, "template")
    assert found is not None
    return found


def look_up(lookup: Lookup, resources: Resources, value: str) -> str | None:
    """What a macro makes of a value: the path of a word, or the token that a lexicon compares."""
    found = find_resource(lookup, resources)
    if isinstance(found, Clusters):
        return found.get(value, lookup.length)
    assert isinstance(found, Lexicon)
    return found.fold(value)


def find_lexicon(lookup: Lookup, resources: Resources) -> tuple[_core.LexiconTable, int] | None:
    """The lexicon that a macro matches, and the number of the list, −1 for all; None for other macros."""
    if lookup.macro != "in":
        return None
    found = find_resource(lookup, resources)
    assert isinstance(found, Lexicon)
    return found.table, -1 if lookup.list is None else found.number_of(lookup.list)


class ResourceReader(ABC):
    """A template with macros that read resources, which it is bound to."""

    resources: Resources  # by the names that its macros have for them

    @property
    @abstractmethod
    def lookups(self) -> dict[Lookup, str]:
        """What its macros look up in resources, and where it stands."""

    def used_resources(self) -> dict[str, Resource | MissingResource]:
        """Those of its resources that its macros read."""
        names = {resource_name(lookup, self.resources) for lookup in self.lookups}
        return {name: resource for name, resource in self.resources.items() if name in names}

    def check_resources(self) -> None:
        """Raise InputError where a macro reads a resource that is missing, or of another kind."""
        for lookup, place in self.lookups.items():
            check_resource(lookup, self.resources, place)


def check_resources(resources: object) -> dict[str, Resource | MissingResource]:
    """Resources by name, as they were given to an estimator."""
    if resources is None:
        return {}
    if not isinstance(resources, Mapping):
        raise ArgumentError(f"resources is {resources!r}, expected a dict of names and resources")
    for name, resource in resources.items():
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise ArgumentError(f"resources has the name {name!r}, expected letters, digits and _")
        if not isinstance(resource, Resource | MissingResource):
            advice = ""
            if isinstance(resource, str | os.PathLike):
                advice = "; crfkit.Lexicon.read(path) reads a list of entries from a text file"
            elif isinstance(resource, list | tuple | set | frozenset):
                advice = "; crfkit.Lexicon.build(entries) makes a lexicon of a list"
            raise ArgumentError(
                f"resources[{name!r}] is of type {type(resource).__name__}, expected a Lexicon, Clusters or "
                f"WordVectors{advice}"
            )
    return dict(resources)


def resource_lines(resources: Resources, offsets: Sequence[int] = OFFSETS) -> str:
    """Lines of a template that read resources at the words around, in column 0: what presets have for them."""
    lines: list[str] = []
    for name, resource in sorted(resources.items()):
        if isinstance(resource, Lexicon):
            lists = resource.lists if len(resource.lists) > 1 else ()
            usable = lists and all(map(_LIST.fullmatch, lists))
            macros = (
                [(f"{name}.{one}".replace(" ", "_"), f"in[ROW,0,{name},{one}]") for one in lists]
                if usable
                else []
            )
            macros = macros or [(name, f"in[ROW,0,{name}]")]
        elif isinstance(resource, Clusters):
            is_tree = all(re.fullmatch("[01]*", path) for path in resource.paths)
            lengths = LENGTHS if is_tree else (None,)
            macros = [
                (f"{name}{length or ''}", f"cluster[ROW,0,{name}{'' if length is None else f',{length}'}]")
                for length in lengths
            ]
        else:
            macros = [(name, f"vector[ROW,0,{name}]")]
        lines += [
            f"{label}{f'[{row}]' if row else ''}=%{macro.replace('ROW', str(row))}"
            for label, macro in macros
            for row in offsets
        ]
    return "\n".join(lines)
