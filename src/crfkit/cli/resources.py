"""Resources as an option of commands: `--resource cities=FILE`."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from crfkit.errors import InputError

if TYPE_CHECKING:
    from crfkit.features import Resource

resource_option = click.option(
    "--resource",
    "resources",
    multiple=True,
    metavar="NAME=FILE",
    callback=lambda _context, _option, texts: texts or None,
    help="A lexicon, clusters or word vectors that the template or the model names; repeatable.",
)
bundle_option = click.option(
    "--bundle", is_flag=True, help="Put what --resource gives into the model file, not its names alone."
)


def describe_resources(resources: "Mapping[str, object] | None") -> list[str]:
    """A line for each resource: what the file was taken for."""
    return [f"resource {name}: {str(resource).strip('<>')}" for name, resource in (resources or {}).items()]


def open_parser_resources(clusters: Path | None, vectors: Path | None) -> dict[str, Any]:
    """The clusters and the word vectors of files, as arguments of a `Parser`; those that are not given are left out."""
    from crfkit.features import Clusters, open_vectors

    given: dict[str, Any] = {}
    if clusters is not None:
        given["clusters"] = Clusters.read(clusters)
    if vectors is not None:
        given["vectors"] = open_vectors(vectors)
    return given


def open_resources(texts: Sequence[str] | None) -> "dict[str, Resource] | None":
    """`["cities=FILE", …]` as the `resources` of a CRF; None where there are none."""
    from crfkit.features import open_resource

    found: dict[str, Resource] = {}
    for text in texts or ():
        name, equals, path = text.partition("=")
        if not equals or not name.isidentifier() or not path:
            raise InputError(f"--resource {text}: expected name=file, such as cities=cities.txt")
        if name in found:
            raise InputError(f"--resource {name} was given twice")
        found[name] = open_resource(path)
    return found or None
