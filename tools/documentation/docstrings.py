"""Docstrings as mkdocstrings shows them: sections, examples, comments beside fields, links to other names.

The docstrings of crfkit are plain text with the section titles of NumPy, `name : what it is` below them, formulas
that are indented, and examples as in a Python session. Fields of classes have a comment at the end of their line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import griffe

SECTION = re.compile(
    r"^(?P<title>Parameters|Attributes|Returns|Raises|Examples|Notes)\n-+\n(?P<text>.*?)(?=^\w[^\n]*\n---+\n|\Z)",
    re.DOTALL | re.MULTILINE,
)
ENTRY = re.compile(r"^(?P<names>\*{0,2}\w+(?:, \*{0,2}\w+)*) : ", re.MULTILINE)
EXAMPLE = re.compile(r"^(?:>>> .*\n)(?:.+\n)*", re.MULTILINE)
COMMENT = re.compile(r"  # (?P<text>[^#]+)$")
CODE = re.compile(r"(?<![`\[\w])`(?P<name>[A-Za-z_][\w.]*)(?P<call>\([^`]*\))?`(?!`)")


def fenced(text: str) -> str:
    """The text with its examples as blocks of code."""
    return EXAMPLE.sub(lambda found: f"\n```pycon\n{found[0]}```\n", text.rstrip() + "\n").strip()


class Links:
    """Links from names in backquotes to the reference."""

    def __init__(self, places: dict[str, str]) -> None:
        """`places`: where the reference shows each name; names are `CRF`, `structures.Chain`, `crfkit.CRF`."""
        self.places = places

    def add(self, text: str, within: str = "") -> str:
        """The text with links, but not to where it is itself."""

        def link(found: re.Match[str]) -> str:
            place = self.places.get(found["name"])
            if place is None or place == within:
                return found[0]
            return f"[{found[0]}][{place}]"

        return CODE.sub(link, text)


def link_places(reference: dict[str, str]) -> dict[str, str]:
    """The names that are linked: paths of the reference, with and without `crfkit.`, and classes by name alone.

    A name alone that two packages have, such as `Word`, is that of `crfkit` itself, or is not linked.
    """
    places: dict[str, str] = {}
    alone: dict[str, list[str]] = {}
    for path in reference.values():
        short, name = path.removeprefix("crfkit."), path.rpartition(".")[2]
        places[path] = path
        if "." in short or short[0].isupper():
            places[short] = path
        if name[0].isupper() and any(letter.islower() for letter in name):
            alone.setdefault(name, []).append(path)
    for name, paths in alone.items():
        if len(paths) == 1:
            places.setdefault(name, paths[0])
    return places


def entries(text: str) -> Iterator[tuple[str, str]]:
    """(name, description) of a section, a pair for each of several names."""
    _, *parts = ENTRY.split(text)
    for names, description in zip(parts[::2], parts[1::2], strict=True):
        lines = [line.strip() for line in description.strip().splitlines()]
        for name in names.split(", "):
            yield name, "\n".join(lines)


class Docstrings(griffe.Extension):  # type: ignore[misc]
    """Reads the docstrings of the package once it is parsed."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: dict[Path, list[str]] = {}
        self.links = Links({})

    def on_package(self, *, pkg: griffe.Module, **_: Any) -> None:
        """Every docstring, and every comment beside a field."""
        from tools.documentation.public_names import reference

        self.links = Links(link_places(reference()))
        self.visit(pkg)

    def visit(self, scope: Any) -> None:
        """All objects that are defined here and below."""
        for member in [scope, *scope.members.values()]:
            if member.is_alias:
                continue
            if member is not scope and (member.is_class or member.is_module):
                self.visit(member)
                continue
            if member.is_attribute and member.docstring is None and scope.is_class:
                self.read_comment(member)
            if member.docstring is not None:
                member.docstring.__dict__["parsed"] = list(self.sections(member))

    def read_comment(self, field: Any) -> None:
        """The comment at the end of a field's line becomes its docstring."""
        path = field.filepath
        if not isinstance(path, Path) or field.lineno is None:
            return
        if path not in self.lines:
            self.lines[path] = path.read_text(encoding="utf-8").splitlines()
        found = COMMENT.search(self.lines[path][field.lineno - 1])
        if found and not re.match(r"(type: ignore|noqa)", found["text"]):
            field.docstring = griffe.Docstring(found["text"], parent=field)

    def sections(self, member: Any) -> Iterator[griffe.DocstringSection]:
        """The parts of a docstring, in its order."""
        text = member.docstring.value
        begin = 0
        for found in SECTION.finditer(text):
            yield from self.prose(text[begin : found.start()], member)
            begin = found.end()
            if found["title"] in ("Parameters", "Attributes"):
                yield self.table(found["title"], found["text"], member)
            else:
                title = f"**{found['title']}**\n\n"
                yield griffe.DocstringSectionText(title + self.linked(fenced(found["text"]), member))
        yield from self.prose(text[begin:], member)

    def prose(self, text: str, member: Any) -> Iterator[griffe.DocstringSection]:
        """Text outside of sections."""
        if text.strip():
            yield griffe.DocstringSectionText(self.linked(fenced(text.strip("\n")), member))

    def linked(self, text: str, member: Any) -> str:
        """The text with links, its blocks of code left alone."""
        parts = re.split(r"(^```.*?^```$|^ {4}.*$)", text, flags=re.DOTALL | re.MULTILINE)
        return "".join(
            part if part.startswith(("```", "    ")) else self.links.add(part, member.canonical_path)
            for part in parts
        )

    def table(self, title: str, text: str, member: Any) -> griffe.DocstringSection:
        """Names with what they are; parameters with their types and defaults."""
        if title == "Attributes":
            return griffe.DocstringSectionAttributes(
                [
                    griffe.DocstringAttribute(name, description=self.linked(entry, member))
                    for name, entry in entries(text)
                ]
            )
        known = {parameter.name: parameter for parameter in member.parameters}
        return griffe.DocstringSectionParameters(
            [
                griffe.DocstringParameter(
                    name,
                    description=self.linked(entry, member),
                    annotation=known[name.lstrip("*")].annotation if name.lstrip("*") in known else None,
                    value=known[name.lstrip("*")].default if name.lstrip("*") in known else None,
                )
                for name, entry in entries(text)
            ]
        )
