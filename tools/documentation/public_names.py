"""The public names of crfkit, read from its sources without importing it: what the API reference has to show."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from pathlib import Path

import griffe

ROOT = Path(__file__).resolve().parents[2]
REFERENCE = ROOT / "docs" / "reference"
NOT_PUBLIC = {
    "cli",
    "lazy",
    "arrays",
    "counts",
    "markup",
}  # the command line has a page; the others serve the packages
NESTED = ("compat", "integrations")  # packages whose modules have public names of their own
DIRECTIVE = re.compile(r"^::: (?P<path>[\w.]+)$", re.MULTILINE)
REST = re.compile(r"^<!-- all other names of (?P<package>[\w.]+) -->$", re.MULTILINE)


@functools.cache
def sources() -> griffe.Module:
    """The package `crfkit`, parsed."""
    package = griffe.load("crfkit", search_paths=[ROOT / "src"], allow_inspection=False, resolve_aliases=True)
    assert isinstance(package, griffe.Module)
    return package


def packages() -> Iterator[griffe.Module]:
    """The modules that have public names: crfkit, its packages, and the modules of some of these."""
    package = sources()
    yield package
    for name, module in sorted(package.modules.items()):
        if name.startswith("_") or name in NOT_PUBLIC:
            continue
        yield module
        if name in NESTED:
            yield from (
                inner
                for _, inner in sorted(module.modules.items())
                if inner.exports and not inner.name.startswith("_")
            )


def names_of(module: griffe.Module) -> list[str]:
    """What a module exports: `__all__`, or its own classes and functions; modules are not among them."""
    if module.exports is not None:
        names = [str(name) for name in module.exports]
    else:
        names = [
            name
            for name, member in module.members.items()
            if not member.is_alias and (member.is_class or member.is_function)
        ]
    return [
        name
        for name in names
        if name == "__version__" or not (name.startswith("_") or module[name].is_module)
    ]


@functools.cache
def public_names() -> dict[str, str]:
    """Path of each public name (`crfkit.structures.Chain`) → path of its definition; short paths come first."""
    return {
        f"{module.path}.{name}": module[name].canonical_path
        for module in packages()
        for name in names_of(module)
    }


def definition(path: str) -> str:
    """Where the object of a path is defined."""
    return public_names().get(path) or str(sources()[path.removeprefix("crfkit.")].canonical_path)


@functools.cache
def listed() -> dict[str, str]:
    """Path of each definition that the reference lists by name → the path it is listed by."""
    found: dict[str, str] = {}
    for page in sorted(REFERENCE.glob("*.md")):
        for directive in DIRECTIVE.finditer(page.read_text(encoding="utf-8")):
            found.setdefault(definition(directive["path"]), directive["path"])
    return found


@functools.cache
def others(package: str) -> tuple[str, ...]:
    """The public names of a package that no page lists, under the shortest path of each."""
    first: dict[str, str] = {}
    for path, place in public_names().items():
        if place not in listed():
            first.setdefault(place, path)
    return tuple(sorted(path for path in first.values() if path.rpartition(".")[0] == package))


def reference() -> dict[str, str]:
    """Path of each definition in the reference → the path under which it is there."""
    found = dict(listed())
    for page in REFERENCE.glob("*.md"):
        for rest in REST.finditer(page.read_text(encoding="utf-8")):
            found |= {definition(path): path for path in others(rest["package"])}
    return found
