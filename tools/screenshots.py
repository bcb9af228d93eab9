"""`python -m tools.screenshots`: docs/images/serve.png and report.png, the web page of a model and its report, in Chromium.

Needs Playwright, and Chromium at the path of the environment variable CHROMIUM (/usr/bin/chromium).
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

import crfkit
from crfkit.cli.demonstration import draw_names
from crfkit.report import write_report

IMAGES = Path(__file__).resolve().parents[1] / "docs" / "images"
TEXT = (
    "Anna Smith moved from Oslo to New York in 2019. Her brother Peter works for Green Energy Ltd. in Rome."
)
WIDTH = 1280


def train(folder: Path) -> Path:
    """A model of names on the made-up sentences of the demonstration, and its report beside it."""
    train_set, test_set = draw_names("train"), draw_names("test")
    model = crfkit.CRF(structure=crfkit.Chain(bigrams="bio"), features="names", l2=0.5)
    model.fit(train_set.words, train_set.labels)
    model.save(folder / "names.crf")
    write_report(
        model,
        test_set.words,
        test_set.labels,
        folder / "report.html",
        train=(train_set.words, train_set.labels),
        title="Names in made-up sentences",
    )
    return folder / "names.crf"


@contextmanager
def served(model: Path) -> Iterator[str]:
    """The address of a server of the model, while it runs."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    address = f"http://127.0.0.1:{port}"
    server = subprocess.Popen([sys.executable, "-m", "crfkit", "serve", str(model), "--port", str(port)])
    try:
        for _ in range(100):
            try:
                urlopen(f"{address}/health").close()
                break
            except URLError:
                time.sleep(0.1)
        yield address
    finally:
        server.terminate()
        server.wait()


def take_page(browser: Any, address: str) -> None:
    """The web page with a text, its names, and why a word has its label."""
    page = browser.new_page(viewport={"width": WIDTH, "height": 1000})
    page.goto(address)
    page.fill("textarea", TEXT)
    page.get_by_role("button", name="Analyse").click()
    page.get_by_text("Oslo", exact=True).first.wait_for()
    page.get_by_text("Oslo", exact=True).first.click()
    page.wait_for_timeout(1500)
    page.screenshot(path=IMAGES / "serve.png", full_page=True)


def take_report(browser: Any, report: Path) -> None:
    """The first sections of the report, one error explained."""
    page = browser.new_page(viewport={"width": WIDTH, "height": 1500})
    page.goto(report.as_uri())
    page.get_by_text("Why?").first.click()
    page.wait_for_timeout(300)
    page.screenshot(path=IMAGES / "report.png")


def main() -> None:
    """Take both."""
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        model = train(Path(name))
        program = os.environ.get("CHROMIUM", "/usr/bin/chromium")
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        take_report(browser, model.with_name("report.html"))
        with served(model) as address:
            take_page(browser, address)
        browser.close()


if __name__ == "__main__":
    main()
