"""The documentation as a site: built without a warning and without network, complete, with links that lead somewhere."""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
import sys
import zlib
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

pytest.importorskip("mkdocs", reason='needs MkDocs: pip install ".[docs]"')
pytest.importorskip("mkdocstrings", reason='needs mkdocstrings: pip install ".[docs]"')

from tools.documentation import docstrings, pages, public_names

PROJECT = Path(__file__).resolve().parents[2]
LOADED = {
    ("link", "href"),
    ("script", "src"),
    ("img", "src"),
    ("iframe", "src"),
    ("source", "src"),
    ("use", "href"),
}


@functools.cache
def without_network() -> list[str]:
    """A command that runs another one without network, where this machine has one."""
    command = ["unshare", "--map-root-user", "--net"]
    if shutil.which("unshare") and subprocess.run([*command, "true"], capture_output=True).returncode == 0:
        return command
    return []


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the built pages."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    run = subprocess.run(
        [*without_network(), *command], cwd=PROJECT, env=environment, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
    assert "WARNING" not in run.stderr
    return folder


class Page(HTMLParser):
    """What a page has: anchors, links, and files that a browser loads with it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.classes: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = {name: value or "" for name, value in attrs}
        self.classes |= set(attributes.get("class", "").split())
        self.anchors |= {attributes[name] for name in ("id", "name") if name in attributes}
        if tag == "a" and "href" in attributes:
            self.links.append(attributes["href"])
        self.loaded += [value for name, value in attributes.items() if (tag, name) in LOADED]


@pytest.fixture(scope="module")
def html(site: Path) -> dict[Path, Page]:
    return {path: Page(path.read_text(encoding="utf-8")) for path in sorted(site.rglob("*.html"))}


def inventory(site: Path) -> set[str]:
    """The names that the reference has an anchor for."""
    data = (site / "objects.inv").read_bytes()
    lines = zlib.decompress(data.split(b"\n", 4)[4]).decode().splitlines()
    return {line.split()[0] for line in lines}


# ---- the reference


def test_every_public_name_is_in_the_reference() -> None:
    reference = public_names.reference()
    missing = [path for path, place in public_names.public_names().items() if place not in reference]
    assert missing == [], "add them to a page of docs/reference"


def test_the_public_names_are_those_of_the_package() -> None:
    """What is read from the sources is what the package exports."""
    import crfkit.data
    import crfkit.inference

    names = set(public_names.public_names())
    for package in (crfkit.data, crfkit.inference):
        assert {f"{package.__name__}.{name}" for name in package.__all__} <= names
    assert {
        "crfkit.CRF",
        "crfkit.errors.LabelError",
        "crfkit.compat.torchcrf.CRF",
        "crfkit.nn.ChainCRF",
    } <= names
    assert not {"crfkit.data", "crfkit.cli.main", "crfkit.compat.pycrfsuite._logparser"} & names


def members(path: str) -> Iterator[str]:
    """The public methods and properties of a class that have a docstring."""
    shown = public_names.sources()[path.removeprefix("crfkit.")]
    if shown.is_class:
        for name, member in shown.all_members.items():
            documented = member.is_function or (member.is_attribute and "property" in member.labels)
            if documented and not name.startswith("_") and member.docstring:
                yield f"{path}.{name}"


def test_every_name_has_a_docstring() -> None:
    found = public_names.reference().values()
    objects = {path: public_names.sources()[path.removeprefix("crfkit.")] for path in found}
    assert [path for path, shown in objects.items() if not shown.docstring] == []


def test_names_and_methods_are_on_the_pages(site: Path) -> None:
    shown = inventory(site)
    expected = set(public_names.reference().values())
    expected |= {member for path in expected for member in members(path)}
    assert {"crfkit.CRF.predict_spans", "crfkit.CRF.get_params", "crfkit.Parser.fit"} <= expected
    assert sorted(expected - shown) == []


# ---- the pages


def test_internal_links_lead_somewhere(site: Path, html: dict[Path, Page]) -> None:
    n_links = 0
    for path, page in html.items():
        if path.name == "404.html":
            continue
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            assert target.exists(), f"{path.relative_to(site)}: {link}"
            if parts.fragment and target.suffix == ".html":
                anchors = html[target].anchors
                assert unquote(parts.fragment) in anchors, f"{path.relative_to(site)}: {link}"
            n_links += 1
    assert n_links > 1000


def test_nothing_is_loaded_from_elsewhere(site: Path, html: dict[Path, Page]) -> None:
    for path, page in html.items():
        for name in page.loaded:
            parts = urlsplit(name)
            if parts.scheme == "data":
                continue
            assert not parts.scheme, f"{path.relative_to(site)}: {name}"
            assert not parts.netloc, f"{path.relative_to(site)}: {name}"
            if path.name != "404.html":  # whose paths begin at the root of a server
                assert (path.parent / unquote(parts.path)).exists(), f"{path.relative_to(site)}: {name}"
        assert "mermaid" not in page.classes  # Material would fetch the program that draws these
    for path in site.rglob("*.css"):
        assert not re.search(r"(@import|url\()\s*[\"']?(https?:)?//", path.read_text(encoding="utf-8")), path


def test_the_search_has_every_page(site: Path, html: dict[Path, Page]) -> None:
    index = (site / "search" / "search_index.json").read_text(encoding="utf-8")
    for path in html:
        name = path.relative_to(site).as_posix()
        assert name == "404.html" or f'"location":"{name}' in index, name


def test_every_page_is_in_the_navigation() -> None:
    config = (PROJECT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")[2]
    names = {path.relative_to(PROJECT / "docs").as_posix() for path in (PROJECT / "docs").rglob("*.md")}
    assert (
        sorted(name for name in names if not re.search(rf"[ :]{re.escape(name)}$", config, re.MULTILINE))
        == []
    )


def test_there_are_recipes() -> None:
    """Questions as titles, each with code; the first page lists them all."""
    n_recipes = 0
    contents = " ".join((PROJECT / "docs" / "recipes" / "index.md").read_text(encoding="utf-8").split())
    for path in (PROJECT / "docs" / "recipes").glob("*.md"):
        if path.stem != "index":
            _, *recipes = re.split(r"^## ", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
            for recipe in recipes:
                title = recipe.partition("\n")[0]
                assert title.endswith("?"), f"{path.name}: {title}"
                assert "```" in recipe, f"{path.name}: {title}"
                assert f"- [{title}]({path.name}#" in contents, f"{path.name}: {title}"
            n_recipes += len(recipes)
    assert n_recipes >= 30


# ---- from the Markdown of the project to that of MkDocs


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("```python file=a.py\nx\n```", '```python title="a.py"\nx\n```'),
        ("```output\n- x\n```", "``` { .text .output }\n- x\n```"),
        ("```console\n$ make\n```", "```console\n$ make\n```"),
        ("- a\n\n  | b |\n\nc", "-   a\n\n    | b |\n\nc"),
        ("1. a\n   - b", "1.  a\n    - b"),
        ("- a\n\n  ```text\n  b\n  ```", "-   a\n\n    ```text\n    b\n    ```"),
        ("[a](../examples/README.md#x)", "[a](examples.md#x)"),
        ("[a](../src/crfkit/errors.py)", "a"),
        ("[a](spans.md), [b](https://x.org)", "[a](spans.md), [b](https://x.org)"),
        ("    [a](../src/x.py)", "    [a](../src/x.py)"),
    ],
)
def test_markdown(given: str, expected: str) -> None:
    assert pages.convert(given, "docs/page.md") == expected


def test_names_become_links() -> None:
    places = docstrings.link_places(
        {
            "a": "crfkit.CRF",
            "b": "crfkit.x.CRF",
            "c": "crfkit.x.Word",
            "d": "crfkit.y.Word",
            "e": "crfkit.load",
        }
    )
    links = docstrings.Links(places)
    assert links.add("`CRF` and `CRF(l2=1)`") == "[`CRF`][crfkit.CRF] and [`CRF(l2=1)`][crfkit.CRF]"
    assert links.add("`Word`, `load`, `x.Word`") == "`Word`, `load`, [`x.Word`][crfkit.x.Word]"
    shown = pages.convert("`CRF`, `CRF`\n\n## A\n\n`CRF`", "docs/page.md", links)
    assert shown.count("][crfkit.CRF]") == 2  # once in a section


def test_links_of_pages_outside_the_folder() -> None:
    assert pages.convert("[a](docs/spans.md#b)", "CONTRIBUTING.md") == "[a](spans.md#b)"
    assert pages.convert("[a](../docs/spans.md)", "examples/README.md") == "[a](spans.md)"
