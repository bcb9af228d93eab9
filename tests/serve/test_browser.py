"""The page in Chromium: what it shows is what the library answers; keyboard, widths, colours, no other network."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("starlette", reason='needs Starlette: pip install ".[serve]"')
pytest.importorskip("uvicorn", reason='needs uvicorn: pip install ".[serve]"')
pytest.importorskip("httpx", reason="needs httpx")
pytest.importorskip("playwright", reason="needs Playwright")

from playwright.sync_api import sync_playwright

from crfkit.serve.plain_text import split_text
from tests.serve.models import attributes, columns, names, parser, pipeline, segmenter
from tests.serve.servers import RunningServer, running

CHROMIUM = Path("/usr/bin/chromium")
pytestmark = pytest.mark.skipif(not CHROMIUM.exists(), reason="Chromium is not installed")

SLIDE = """(value) => {
  const slider = document.getElementById("threshold");
  slider.value = value;
  slider.dispatchEvent(new Event("input"));
}"""
NAMELESS = """() => [...document.querySelectorAll("input, select, textarea, button, img, output")].filter(
  (node) => !(node.getAttribute("aria-label") || node.textContent.trim() || node.alt || (node.labels && node.labels.length))
).map((node) => node.outerHTML)"""
FOCUSED = "() => document.activeElement.id || document.activeElement.className || document.activeElement.textContent"
DARK = "() => getComputedStyle(document.body).backgroundColor.match(/\\d+/g).every((part) => part < 60)"
LOADED = (
    "() => [...document.querySelectorAll('.tree img')].every((one) => one.complete && one.naturalWidth > 50)"
)
ANSWERED = """([name]) => {
  return new RegExp("^" + name + "-1: .* ms$").test(document.getElementById("status").textContent);
}"""

TEXT = "Anna Smith moved from Oslo to New York. Her brother met Peter there."


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    folder = tmp_path_factory.mktemp("models")
    models: dict[str, Any] = {
        "names": names(), "pipeline": pipeline(), "columns": columns(),
        "features": attributes(), "parser": parser(), "words": segmenter(),
    }  # fmt: skip
    for name, model in models.items():
        model.save(folder / f"{name}.crf")
    with running({name: folder / f"{name}.crf" for name in models}) as found:
        yield found


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with sync_playwright() as started:
        found = started.chromium.launch(executable_path=str(CHROMIUM), args=["--no-sandbox"])
        yield found
        found.close()


class Opened:
    """The page in one window, with all that went wrong there."""

    def __init__(self, browser: Any, server: RunningServer, path: str = "/", **options: Any) -> None:
        self.context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **options})
        self.page = self.context.new_page()
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.server = server
        self.page.goto(server.url + path)

    def ask(self, text: str, model: str = "names") -> None:
        """Choose a model, enter a text and wait for the answer."""
        if self.page.input_value("#model") != model:
            self.page.select_option("#model", model)
        self.page.fill("#text", text)
        self.page.click("#ask")
        self.page.wait_for_function(ANSWERED, arg=[model])

    def close(self) -> None:
        """Nothing went wrong, and nothing came from elsewhere."""
        self.context.close()
        assert self.complaints == []
        assert all(url.startswith((self.server.url, "data:")) for url in self.requests)


@pytest.fixture
def opened(browser: Any, server: RunningServer) -> Iterator[Opened]:
    found = Opened(browser, server)
    found.page.wait_for_selector(".span")
    yield found
    found.close()


def rows(page: Any) -> list[tuple[str, str, float]]:
    """The table of spans: text, label, probability."""
    script = """() => [...document.querySelectorAll("#span-rows tr")].map((row) => {
        const cells = row.querySelectorAll("td");
        return [cells[0].textContent, cells[1].textContent, Number(cells[2].dataset.probability)];
    })"""
    return [(text, label, probability) for text, label, probability in page.evaluate(script)]


def test_spans_and_probabilities_are_those_of_the_library(opened: Opened) -> None:
    opened.ask(TEXT)
    expected = []
    for sentence in split_text(TEXT):
        words = [token.text for token in sentence]
        for span in names().predict_spans([words], 0.01)[0]:
            start, end = sentence[span.start].start, sentence[span.end - 1].end
            expected.append((TEXT[start:end], span.label, span.probability))
    found = rows(opened.page)
    expected.sort(key=lambda row: -row[2])
    assert [row[:2] for row in found] == [row[:2] for row in expected]
    assert [row[2] for row in found] == pytest.approx([row[2] for row in expected], abs=1e-9)
    shown = opened.page.evaluate("() => document.getElementById('marked').innerText")
    chips = opened.page.evaluate(
        "() => [...document.querySelectorAll('.chip')].map((chip) => chip.textContent)"
    )
    for chip in chips:
        shown = shown.replace(chip, "", 1)
    assert shown.split() == TEXT.split()  # nothing of the text is lost
    above = [row for row in expected if row[2] >= 0.5]
    assert sorted(chip.split()[0] for chip in chips) == sorted(row[1] for row in above)


def test_the_threshold_slides_without_a_request(opened: Opened) -> None:
    opened.ask(TEXT)
    before = len(opened.requests)
    counts = []
    for value in (0.01, 0.3, 0.5, 0.9, 0.99):
        opened.page.evaluate(
            SLIDE,
            value,
        )
        counts.append(opened.page.locator(".span").count())
        likely = [row for row in rows(opened.page) if row[2] >= value]
        assert opened.page.locator("#span-rows tr:not(.off)").count() == len(likely)
        assert opened.page.inner_text("#threshold-value") == f"{value:.2f}"
    assert counts == sorted(counts, reverse=True)
    assert counts[0] > counts[-1]
    assert len(opened.requests) == before


def test_an_explanation_by_mouse_and_by_keyboard(opened: Opened) -> None:
    opened.ask(TEXT)
    page = opened.page
    page.click(".token >> nth=4")  # Oslo
    page.wait_for_selector(".part")
    expected = names().explain([token.text for token in split_text(TEXT)[0]], 4)
    assert f"Oslo is {expected.label}, not {expected.against}" in page.inner_text("#why-body")
    first = page.inner_text("#why-body")
    page.focus(".token[tabindex='0']")
    for _ in range(3):
        page.keyboard.press("ArrowLeft")
    assert page.evaluate("() => document.activeElement.textContent") == "Smith"
    page.keyboard.press("Enter")
    page.wait_for_function(
        "(before) => document.getElementById('why-body').innerText.startsWith('Smith is')", arg=first
    )
    page.keyboard.press("End")
    assert page.evaluate("() => document.activeElement.textContent") == "."
    page.keyboard.press("Home")
    assert page.evaluate("() => document.activeElement.textContent") == "Anna"
    sums = page.evaluate(
        "() => [...document.querySelectorAll('.group .number')].map((one) => one.textContent)"
    )
    assert all(re.fullmatch(r"[+−]\d+\.\d\d", one) for one in sums)


def test_everything_is_reached_by_keyboard(opened: Opened) -> None:
    seen = []
    for _ in range(8):
        opened.page.keyboard.press("Tab")
        seen.append(opened.page.evaluate(FOCUSED))
    for wanted in ("model", "text", "ask", "threshold", "token"):
        assert wanted in seen, (wanted, seen)


def test_names_for_screen_readers(opened: Opened) -> None:
    unnamed = opened.page.evaluate(NAMELESS)
    assert unnamed == []
    label = opened.page.get_attribute(".span .token", "aria-label")
    assert re.fullmatch(r".+, [A-Z]+, \d+\.\d percent", label)
    assert opened.page.get_attribute("html", "lang") == "en"
    assert opened.page.get_attribute("#status", "aria-live") == "polite"


def test_nbest(opened: Opened) -> None:
    opened.ask("Anna Smith moved from Oslo to New York.")
    best = names().predict_nbest([["Anna", "Smith", "moved", "from", "Oslo", "to", "New", "York", "."]], 5)[0]
    shown = opened.page.locator(".best .number").all_inner_texts()
    assert len(shown) == 5
    assert float(shown[0].split()[0]) == pytest.approx(100 * best[0][0], abs=0.06)


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("path", ["/", "/docs"])
def test_widths_and_colours(browser: Any, server: RunningServer, width: int, scheme: str, path: str) -> None:
    opened = Opened(browser, server, path, viewport={"width": width, "height": 844}, color_scheme=scheme)
    opened.page.wait_for_selector(".span" if path == "/" else "details")
    assert opened.page.evaluate("() => document.documentElement.scrollWidth") <= width
    dark = opened.page.evaluate(DARK)
    assert dark == (scheme == "dark")
    opened.close()


def test_trees(opened: Opened) -> None:
    text = "The dog sees the cat. The farmers call the horse."
    opened.ask(text, "pipeline")
    expected = pipeline()(text)
    pictures = opened.page.locator(".tree img")
    assert pictures.count() == len(expected)
    described = pictures.first.get_attribute("alt")
    for word in expected[0].words:
        head = "the root" if not word.head else expected[0].words[word.head - 1].form
        assert f"{word.form}: {word.deprel} of {head}" in described
    assert opened.page.evaluate(LOADED)
    opened.page.click(".token >> nth=1")
    opened.page.wait_for_selector(".part")


@pytest.mark.parametrize(
    ("model", "text", "labels"),
    [
        ("columns", "the DT\ndog NN\nruns VBZ", 2),
        ("features", "w=dog bias\nw=runs bias", 2),
        ("parser", "the dog sees the cat", 1),
        ("words", "thecatsat", 3),
    ],
)
def test_other_models(opened: Opened, model: str, text: str, labels: int) -> None:
    opened.ask(text, model)
    assert opened.page.locator(".chip").count() >= labels


def test_text_is_never_markup(opened: Opened) -> None:
    opened.ask('<img src=x onerror="document.title=1"> <script>document.title=2</script> Anna &amp; Oslo')
    assert opened.page.title() == "crfkit: try the models"
    assert opened.page.locator("#marked img, #marked script").count() == 0
    assert "<script>" in opened.page.evaluate("() => document.getElementById('marked').textContent")


def test_characters_outside_of_the_basic_plane(opened: Opened) -> None:
    """Offsets are characters, not the units of JavaScript."""
    text = "😀😀 Anna 😀 moved to Oslo 😀."
    opened.ask(text)
    chips = opened.page.evaluate(
        "() => [...document.querySelectorAll('.chip')].map((chip) => chip.textContent)"
    )
    shown = opened.page.evaluate("() => document.getElementById('marked').textContent")
    for chip in chips:
        shown = shown.replace(chip, "", 1)
    assert shown == text


def test_errors_are_shown(browser: Any, server: RunningServer) -> None:
    opened = Opened(browser, server)
    opened.page.wait_for_selector(".span")
    opened.page.fill("#text", "a " * 3000)
    opened.page.click("#ask")
    opened.page.wait_for_selector("#status.error")
    assert "expected at most 2,000" in opened.page.inner_text("#status")
    opened.context.close()


def test_the_page_of_the_api(browser: Any, server: RunningServer) -> None:
    opened = Opened(browser, server, "/docs")
    opened.page.wait_for_selector("details")
    summary = opened.page.locator("summary", has_text="/tag").first
    summary.click()
    opened.page.locator("details[open] button").click()
    opened.page.wait_for_selector("details[open] pre:not([hidden])")
    assert opened.page.inner_text("details[open] pre").startswith("200 OK")
    opened.close()
