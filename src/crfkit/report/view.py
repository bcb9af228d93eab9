"""Something to look at: in a notebook, as a page of its own, or as text on a terminal."""

import os
from pathlib import Path

from crfkit.errors import UnwritableFileError
from crfkit.markup import Html, escape, fragment

_PAGE = (
    '<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
    "<title>{title}</title><style>body{{color-scheme:light dark;max-width:60em;margin:1em auto;padding:0 1em}}</style>"
    "</head><body>{body}</body></html>\n"
)


class View:
    """A view of predictions. A notebook shows it by itself, `print` shows it as text, `save` writes it as a page."""

    def __init__(self, body: Html, text: str, title: str) -> None:
        self._body = body
        self._text = text
        self._title = title

    @property
    def html(self) -> str:
        """The view with its style, to be put into a page."""
        return fragment(self._body)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a page that needs nothing else."""
        try:
            page = _PAGE.format(title=escape(self._title), body=self.html)
            Path(path).write_text(page, encoding="utf-8")
        except OSError as error:
            raise UnwritableFileError(
                f"{os.fspath(path)}: cannot be written ({error.strerror or error})"
            ) from None

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return self._text

    def _repr_html_(self) -> str:
        return self.html
