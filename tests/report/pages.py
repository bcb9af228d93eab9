"""What tests read of a page: its elements, without a browser."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = {"meta", "link", "input", "br", "img", "hr", "path", "rect", "use"}


@dataclass
class Element:
    """An element with its attributes, its elements and its text."""

    tag: str
    attributes: dict[str, str | None]
    children: list[Element] = field(default_factory=list)
    pieces: list[str] = field(default_factory=list)

    def all(self, tag: str) -> list[Element]:
        """The elements of this kind below, in the order of the page."""
        found = []
        for child in self.children:
            if child.tag == tag:
                found.append(child)
            found += child.all(tag)
        return found

    @property
    def text(self) -> str:
        """All text below."""
        return " ".join(" ".join(self.pieces).split())

    @property
    def classes(self) -> list[str]:
        return (self.attributes.get("class") or "").split()

    def find(self, name: str) -> Element:
        """The element with this id."""
        [found] = [one for one in self.everything() if one.attributes.get("id") == name]
        return found

    def everything(self) -> list[Element]:
        return [self, *(one for child in self.children for one in child.everything())]


class _Reader(HTMLParser):
    """Builds the tree; tags that are not closed in order are an error."""

    def __init__(self) -> None:
        super().__init__()
        self.open = [Element("page", {})]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len({name for name, _ in attrs}) == len(attrs), f"an attribute of <{tag}> is given twice"
        element = Element(tag, dict(attrs))
        self.open[-1].children.append(element)
        if tag not in VOID:
            self.open.append(element)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open[-1].children.append(Element(tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        if tag in VOID:
            return
        assert self.open[-1].tag == tag, f"</{tag}> ends <{self.open[-1].tag}>"
        self.open.pop()

    def handle_data(self, data: str) -> None:
        for element in self.open:
            element.pieces.append(data)


def read_page(text: str) -> Element:
    """The tree of a page; AssertionError where it is not well-formed."""
    reader = _Reader()
    reader.feed(text)
    reader.close()
    assert [element.tag for element in reader.open] == ["page"]
    return reader.open[0]


def check_page(text: str) -> Element:
    """What holds for every page: no address, ids only once, captions, labels and headings for all."""
    page = read_page(text)
    addresses = [found for found in re.findall(r"https?://[^\s\"'<)]+", text) if "www.w3.org" not in found]
    assert addresses == []
    for element in page.everything():
        for attribute in ("src", "href"):
            value = element.attributes.get(attribute)
            assert value is None or value.startswith(("#", "data:,")), value
    ids = [name for one in page.everything() if (name := one.attributes.get("id"))]
    assert len(ids) == len(set(ids)), sorted(name for name in ids if ids.count(name) > 1)
    for table in page.all("table"):
        assert table.all("caption"), table.text[:80]
        assert len({len(row.children) for row in table.all("tr")}) == 1, table.text[:80]
    labelled = {id(one) for label in page.all("label") for one in label.everything()}
    for field_tag in ("select", "input"):
        assert all(id(one) in labelled for one in page.all(field_tag))
    assert all(one.attributes.get("aria-label") for one in page.all("svg") if "plot" in one.classes)
    assert [len(page.all(tag)) for tag in ("h1", "main", "html")] == [1, 1, 1]
    assert all(section.children[0].tag == "h2" for section in page.all("section"))
    return page


def rows_of(table: Element) -> list[list[str]]:
    """The texts of the cells of a table, row by row."""
    return [[cell.text for cell in row.children] for row in table.all("tr")]
