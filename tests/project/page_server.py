"""Servers that pages start and ask: `$ crfkit serve … &` and `$ curl localhost:8000/… [--json '{…}']`."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

SHOWN = "localhost:8000"
SOURCES = Path(__file__).parents[2] / "src"


class PageServer:
    """The server that a page has started, at a port of its own."""

    def __init__(self, command: str) -> None:
        arguments = shlex.split(command)[1:-1]  # without the & at the end
        self._process = subprocess.Popen(
            [sys.executable, "-m", "crfkit", *arguments, "--port", "0"],
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(SOURCES)},
        )
        assert self._process.stderr is not None
        line = self._process.stderr.readline()
        found = re.search(r"http://([\d.]+:\d+)", line)
        assert found is not None, line
        self._address = found[1]
        self.printed = line.replace(self._address, "127.0.0.1:8000")

    def curl(self, command: str) -> str:
        """What a request answers, errors included."""
        _, url, *options = shlex.split(command)
        given = dict(zip(options[::2], options[1::2], strict=True))
        assert set(given) <= {"--json"}, command
        request = urllib.request.Request("http://" + url.replace(SHOWN, self._address))
        if "--json" in given:
            request.data = given["--json"].encode()
            request.add_header("content-type", "application/json")
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(request, timeout=30) as response:
                return str(response.read().decode())
        except urllib.error.HTTPError as error:
            with error:
                return error.read().decode()

    def stop(self) -> None:
        """End the server."""
        self._process.terminate()
        self._process.wait(30)
        assert self._process.stderr is not None
        self._process.stderr.close()


def without_blanks(text: str) -> str:
    """JSON may be shown on several lines."""
    return re.sub(r"\s+", "", text)
