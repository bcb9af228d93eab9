"""Pages for browsers: one file each, whose own style and script are all that the browser may run."""

import base64
import hashlib
import re
from collections.abc import Callable
from importlib.resources import files

from starlette.requests import Request
from starlette.responses import Response

_INLINE = re.compile(r"<(style|script)>(.*?)</\1>", re.DOTALL)


def load_page(name: str) -> Callable[[Request], Response]:
    """What answers with a page of this package."""
    text = (files("crfkit.serve") / name).read_text(encoding="utf-8")
    policy = content_policy(text)
    headers = {"content-security-policy": policy, "cache-control": "no-cache"}

    def answer(request: Request) -> Response:
        return Response(text.encode("utf-8"), media_type="text/html; charset=utf-8", headers=headers)

    return answer


def content_policy(page: str) -> str:
    """A policy that allows the page's own inline style and script, by their hashes, and requests to the same server."""
    allowed: dict[str, list[str]] = {"style": [], "script": []}
    for found in _INLINE.finditer(page):
        digest = hashlib.sha256(found[2].encode("utf-8")).digest()
        allowed[found[1]].append(f"'sha256-{base64.b64encode(digest).decode()}'")
    return "; ".join(
        [
            "default-src 'none'",
            f"style-src {' '.join(allowed['style'])}",
            f"script-src {' '.join(allowed['script'])}",
            "img-src data:",
            "connect-src 'self'",
            "base-uri 'none'",
            "form-action 'none'",
            "frame-ancestors 'none'",
        ]
    )
