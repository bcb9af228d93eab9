"""A page in one file: sections from Jinja2 templates, with style, script and plots inside."""

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from crfkit import __version__
from crfkit.errors import MissingPackageError

_PACKAGES = ("jinja2", "matplotlib")  # what the extra `report` installs


@dataclass(frozen=True)
class Section:
    """One part of a page, under a heading."""

    name: str  # of its anchor, and of its template: `sections/NAME.html`, unless `template` says another
    title: str
    data: Mapping[str, Any]
    template: str | None = None


@dataclass(frozen=True)
class Figure:
    """A number that people look at first."""

    name: str
    value: float  # a share, shown in percent
    note: str = ""


@dataclass(frozen=True)
class Page:
    """What a report shows, from the top down."""

    title: str
    summary: str  # what was tested on what, in a sentence
    figures: Sequence[Figure]
    facts: Sequence[tuple[str, str]]  # of the model and the data
    sections: Sequence[Section]
    notes: Sequence[str] = field(default=())  # what a reader should know before all else

    def html(self) -> str:
        """The page as the text of an HTML file."""
        text: str = _templates().get_template("page.html").render(page=self, version=__version__)
        return text


def check_packages() -> None:
    """MissingPackageError where what pages are made with is not installed."""
    for name in _PACKAGES:
        try:
            importlib.import_module(name)
        except ImportError:
            raise MissingPackageError(
                f"a report needs {name}, which is not installed: pip install {' '.join(_PACKAGES)} "
                "(the extra `report` of crfkit)"
            ) from None


@lru_cache(maxsize=1)
def _templates() -> Any:
    """The templates of this package; text is escaped wherever it stands."""
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("crfkit.report", "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["percent"] = lambda share: f"{100 * share:.2f}"
    environment.filters["probability"] = _probability
    environment.filters["thousands"] = lambda number: f"{number:,}"
    environment.filters["weight"] = lambda weight: f"{weight:+.3f}".replace("-", "−")
    return environment


def _probability(p: float) -> str:
    """Three digits; never 1 or 0 for what is not."""
    if 0.0 < p < 0.0005:
        return "< 0.001"
    return "> 0.999" if 0.9995 <= p < 1.0 else f"{p:.3f}"
