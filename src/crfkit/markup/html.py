"""HTML that is safe by default: whatever is not `Html` is text, and is escaped."""

import html
import re
from collections.abc import Iterable, Sequence

_CONTROL = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # which no page may have
_SPACE = "rgba(128,128,128,.35)"
STYLE = (
    ".crfkit{font:13px/1.5 system-ui,sans-serif;color:inherit;margin:.3em 0}"
    ".crfkit summary{cursor:pointer}"
    ".crfkit details{margin:.15em 0}"
    f".crfkit details>div{{margin-left:.4em;padding-left:.8em;border-left:2px solid {_SPACE}}}"
    ".crfkit table{border-collapse:collapse;border:0;margin:.2em 0;color:inherit;font-size:inherit}"
    ".crfkit tr,.crfkit thead{background:none!important;border:0}"
    ".crfkit td,.crfkit th{padding:.05em 1em .05em 0;border:0;text-align:left;vertical-align:top;font-size:inherit;"
    "color:inherit;max-width:44em;overflow-wrap:anywhere}"
    ".crfkit th{font-weight:600}"
    ".crfkit .number{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}"
    ".crfkit .pale{opacity:.65}"
    ".crfkit .scroll{max-height:20em;overflow:auto}"
    ".crfkit .sentence{line-height:2.1;margin:.2em 0}"
    ".crfkit .label{border-radius:.35em;padding:.1em .3em;border:1px solid;white-space:normal}"
    ".crfkit .label small{font-weight:600;margin-left:.4em;font-size:.8em}"
    ".crfkit .wrong{text-decoration:underline wavy #d33 1px;text-underline-offset:.3em}"
    ".crfkit svg{max-width:100%;height:auto;overflow:visible}"
)


class Html(str):
    """Text that is HTML already."""

    __slots__ = ()


def escape(value: object) -> Html:
    """The value as text on a page; `Html` stays as it is.

    >>> escape("a < b & c")
    'a &lt; b &amp; c'
    """
    if isinstance(value, Html):
        return value
    return Html(html.escape(_CONTROL.sub("\ufffd", str(value))))


def join(parts: Iterable[object], between: object = "") -> Html:
    """Parts one after the other."""
    return Html(escape(between).join(map(escape, parts)))


def tag(name: str, *parts: object, **attributes: str | None) -> Html:
    """An element; `class_` is its class, and an attribute that is None is left out.

    >>> tag("b", "x < y", class_="pale")
    '<b class="pale">x &lt; y</b>'
    """
    given = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{escape(value)}"'
        for name, value in attributes.items()
        if value is not None
    )
    return Html(f"<{name}{given}>{join(parts)}</{name}>")


def fragment(*parts: object) -> Html:
    """Parts with the style that they need: what a notebook shows."""
    return tag("div", tag("style", Html(STYLE)), *parts, class_="crfkit")


def details(summary: object, *parts: object, is_open: bool = False) -> Html:
    """A part that is folded away under its summary."""
    return tag("details", tag("summary", summary), *parts, open="open" if is_open else None)


def table(rows: Iterable[Sequence[object]], head: Sequence[object] = ()) -> Html:
    """A table; numbers are aligned on the right, with thousands apart."""
    first = tag("thead", tag("tr", *(tag("th", cell) for cell in head))) if head else Html()
    body = tag("tbody", *(tag("tr", *map(_cell, row)) for row in rows))
    return tag("table", first, body)


def _cell(value: object) -> Html:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return tag("td", value)
    return tag("td", f"{value:,}" if isinstance(value, int) else f"{value:.6g}", class_="number")
