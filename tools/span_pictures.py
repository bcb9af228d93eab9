"""`python -m tools.span_pictures`: draw docs/images/names.svg and addresses.svg, with the models of the pages."""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stdout
from html import escape
from io import StringIO
from pathlib import Path
from typing import Any

from crfkit import Span
from crfkit.report.text_width import text_width

DOCS = Path(__file__).resolve().parents[1] / "docs"
FENCE = re.compile(
    r"^```python(?: file=(?P<file>\S+))?\n(?P<code>.*?)^```$", re.DOTALL | re.MULTILINE
)  # examples of a page
COLOURS = {  # label → background, text below
    "PER": ("#cfe3f8", "#1c5a94"),
    "LOC": ("#d3efdb", "#1d6b3c"),
    "ORG": ("#fbe0c4", "#8a4b08"),
    "number": ("#cfe3f8", "#1c5a94"),
    "road": ("#d3efdb", "#1d6b3c"),
    "city": ("#fbe0c4", "#8a4b08"),
    "postcode": ("#ead9f5", "#68328f"),
    "unit": ("#f9d6dc", "#96263c"),
}
SIZE, SMALL, GAP, LINE, MARGIN = 19, 12, 7, 62, 14
TIGHT = 0.86  # of the width that a text may have at most


def examples(page: str, until: str) -> dict[str, Any]:
    """The names that the examples of a page define, up to the one that mentions `until`."""
    namespace: dict[str, Any] = {"__name__": "page"}
    before = set(sys.modules)
    here = Path.cwd()
    with tempfile.TemporaryDirectory() as folder, redirect_stdout(StringIO()):
        os.chdir(folder)
        sys.path.insert(0, folder)
        try:
            for found in FENCE.finditer((DOCS / page).read_text(encoding="utf-8")):
                if found["file"]:
                    Path(found["file"]).write_text(found["code"], encoding="utf-8")
                    continue
                if until in found["code"]:
                    break
                exec(compile(found["code"], page, "exec"), namespace)
        finally:
            sys.path.remove(folder)
            os.chdir(here)
            for name in set(sys.modules) - before:
                if str(getattr(sys.modules[name], "__file__", "")).startswith(folder):
                    del sys.modules[name]
    return namespace


def pieces(words: Sequence[str], spans: Sequence[Span]) -> Iterator[tuple[str, str | None, str]]:
    """(text, label, caption) from left to right: each span is one piece, as is each word outside."""
    begins = {span.start: span for span in spans}
    position = 0
    while position < len(words):
        span = begins.get(position)
        if span is None:
            yield words[position], None, ""
            position += 1
        else:
            yield " ".join(words[span.start : span.end]), span.label, f"{span.label} {span.probability:.2f}"
            position = span.end


def draw(sentences: Sequence[tuple[Sequence[str], Sequence[Span]]]) -> str:
    """Sentences with their spans in colour, a line each."""
    parts: list[str] = []
    width = 0.0
    for line, (words, spans) in enumerate(sentences):
        top, x = MARGIN + line * LINE, float(MARGIN)
        for text, label, caption in pieces(words, spans):
            size = max(text_width(text, SIZE) * TIGHT, text_width(caption, SMALL) * TIGHT)
            if label is None:
                middle, y = x + size / 2, top + 19
            else:
                size += 2 * GAP
                fill, dark = COLOURS[label]
                middle, y = x + size / 2, top + 19
                parts.append(
                    f'<rect x="{x:.1f}" y="{top}" width="{size:.1f}" height="27" rx="5" fill="{fill}"/>'
                    f'<text x="{middle:.1f}" y="{top + 41}" font-size="{SMALL}" fill="{dark}">{caption}</text>'
                )
            parts.append(
                f'<text x="{middle:.1f}" y="{y}" font-size="{SIZE}" fill="#1b1b1b">{escape(text)}</text>'
            )
            x += size + GAP
        width = max(width, x - GAP + MARGIN)
    height = 2 * MARGIN + len(sentences) * LINE - 16
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height}" '
        f'viewBox="0 0 {width:.0f} {height}" font-family="sans-serif" text-anchor="middle">'
    )
    sheet = f'<rect width="{width:.0f}" height="{height}" fill="white"/>'
    return "\n".join([head, sheet, *parts, "</svg>"]) + "\n"


def names() -> str:
    """Names of persons, places and organisations."""
    crf = examples("names.md", "predict_spans")["crf"]
    texts = ["Carl Smith lives in New York .", "Ann visits the Bank of Rome ."]
    sentences = [text.split() for text in texts]
    return draw(list(zip(sentences, crf.predict_spans(sentences, decode="f1"), strict=True)))


def addresses() -> str:
    """Parts of addresses."""
    page = examples("addresses.md", "predict_spans")
    texts = [
        "12 Orchard Lane, St Albans AL3 5QT",
        "Flat 7, 31 Castle Road, Derby",
        "Long Acre Street 8 CF10 1AA Cardiff",
    ]
    sentences = [page["tokens"](text) for text in texts]
    return draw(list(zip(sentences, page["crf"].predict_spans(sentences), strict=True)))


PICTURES: dict[str, Callable[[], str]] = {"names.svg": names, "addresses.svg": addresses}


if __name__ == "__main__":
    for name, picture in PICTURES.items():
        (DOCS / "images" / name).write_text(picture(), encoding="utf-8")
