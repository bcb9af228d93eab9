"""Models over HTTP: a REST API, a web page, and the protocols of annotation tools."""

from typing import TYPE_CHECKING

from crfkit.lazy import lazy_names
from crfkit.serve.limits import Limits

if TYPE_CHECKING:
    from crfkit.serve.app import make_app
    from crfkit.serve.server import serve

__all__ = ["Limits", "make_app", "serve"]

_NEEDS = "crfkit.serve needs Starlette and uvicorn: pip install '.[serve]'"

try:
    import starlette  # noqa: F401
    import uvicorn  # noqa: F401
except ImportError as error:
    raise ImportError(_NEEDS) from error

if not TYPE_CHECKING:
    __getattr__ = lazy_names(
        globals(), {"crfkit.serve.app": ("make_app",), "crfkit.serve.server": ("serve",)}
    )
