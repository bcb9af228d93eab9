"""Pictures of the docs that a script draws are what it draws now."""

from __future__ import annotations

from tools import network_picture


def test_the_network() -> None:
    assert network_picture.TARGET.read_text(encoding="utf-8") == network_picture.picture()
