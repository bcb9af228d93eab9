"""Hooks of MkDocs: the Markdown of the project, which a code host shows as well, in the dialect of Python-Markdown.

- Fences: `python file=NAME` gets the name as a title, `output` is set apart from what printed it.
- Lists: what belongs to an item is indented by four blanks.
- Links: pages outside docs/ are part of the site, other files are named without a link.
- Names in backquotes, such as `CRF`, lead to the API reference, once in a section.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path, PurePosixPath
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
OUTSIDE = {  # pages of the project that are not in docs/ → their names there
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changes.md",
    "examples/README.md": "examples.md",
    "README.md": "index.md",
}
FENCE = re.compile(r"^(?P<indent> *)(?P<ticks>```+)(?P<info>[^`\n]*)$")
ITEM = re.compile(r"^(?P<marker>[-*] |\d+\. +)")
LINK = re.compile(r"(?P<image>!?)\[(?P<text>(?:[^\[\]]|\[[^\]]*\])*)\]\((?P<target>[^)\s]+)\)")


def on_config(config: Any) -> Any:
    """Let the modules beside this one be imported."""
    if str(ROOT) not in sys.path:
        sys.path.insert(0, str(ROOT))
    return config


def on_files(files: Any, config: Any) -> Any:
    """Add the pages that are not in docs/."""
    from mkdocs.structure.files import File

    for source, name in OUTSIDE.items():
        if files.get_file_from_path(name) is None:
            text = (ROOT / source).read_text(encoding="utf-8")
            files.append(File.generated(config, name, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """The text of a page as Python-Markdown reads it."""
    from tools.documentation import docstrings, public_names

    name = page.file.src_uri
    source = next((source for source, target in OUTSIDE.items() if target == name), f"docs/{name}")
    if source == "README.md":
        source = f"docs/{name}"
    markdown = public_names.REST.sub(
        lambda found: "\n\n".join(f"::: {path}" for path in public_names.others(found["package"])), markdown
    )
    places = docstrings.link_places(public_names.reference())
    linked = not name.startswith("reference/") and name not in ("changes.md", "architecture.md")
    return convert(markdown, source, docstrings.Links(places) if linked else None)


def convert(markdown: str, source: str, links: Any = None) -> str:
    """Fences, lists, links and names of a page; `source` is its path in the project."""
    lines: list[str] = []
    closing = ""  # the fence that is open
    extra = 0  # blanks that the lines of a list item get
    linked: set[str] = set()  # names that this section has linked
    for line in markdown.split("\n"):
        fence = FENCE.match(line)
        if closing:
            if line.strip() == closing:
                closing = ""
            lines.append(" " * extra + line if line.strip() else line)
            continue
        if (item := ITEM.match(line)) is not None:
            extra = 4 - len(item["marker"])
            line = item["marker"] + " " * extra + line[item.end() :] if extra > 0 else line
            extra = max(extra, 0)
        elif line.strip() and not line.startswith(" "):
            extra = 0
        elif line.strip():
            line = " " * extra + line
        if fence is not None:
            closing = fence["ticks"]
            line = " " * extra + fence["indent"] + fence["ticks"] + info(fence["info"])
        elif not line.startswith("    ") or extra:
            line = LINK.sub(lambda found: relink(found, source), line)
            if line.startswith("#"):
                linked.clear()
            elif links is not None:
                line = link_names(line, links, linked)
        lines.append(line)
    return "\n".join(lines)


def info(text: str) -> str:
    """The info string of a fence: a class for outputs, a title for files."""
    kind, *options = text.split() or [""]
    files = [option.removeprefix("file=") for option in options if option.startswith("file=")]
    if kind == "output":
        return " { .text .output }"
    return f'{kind} title="{files[0]}"' if files else kind


def relink(found: re.Match[str], source: str) -> str:
    """A link of the page `source` as it is on the site."""
    target, _, anchor = found["target"].partition("#")
    if not target or re.match(r"[a-z]+:", target):
        return found[0]
    path = os.path.normpath(PurePosixPath(source).parent / target)
    here = PurePosixPath(OUTSIDE.get(source, source.removeprefix("docs/")))
    if path.startswith("docs/"):
        goal = path.removeprefix("docs/")
    elif path in OUTSIDE:
        goal = OUTSIDE[path]
    else:  # a file of the sources
        return found["text"]
    shown = os.path.relpath(goal, here.parent) + (f"#{anchor}" if anchor else "")
    return f"{found['image']}[{found['text']}]({shown})"


def link_names(line: str, links: Any, linked: set[str]) -> str:
    """Names in backquotes as links to the reference, each once; tables and links are left alone."""
    if line.lstrip().startswith(("|", "[", "!", "<")):
        return line

    def link(piece: str) -> str:
        text = links.add(piece)
        place = text.rpartition("][")[2].rstrip("]")
        if text == piece or place in linked:
            return piece
        linked.add(place)
        return str(text)

    pieces = re.split(r"(\[[^\]]*\]\([^)]*\)|`[^`]*`)", line)
    return "".join(link(piece) if piece.startswith("`") else piece for piece in pieces)
