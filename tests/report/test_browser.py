"""Reports in a browser: no error, no request, filters and tables work, in light and in dark.

Needs Playwright and Chromium; without them the tests skip.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("jinja2")
pytest.importorskip("matplotlib")
pytest.importorskip("playwright.sync_api")

from benchmarks.corpora import find_corpus
from playwright.sync_api import sync_playwright

from crfkit import CRF, Parser
from crfkit.data import read_columns
from crfkit.models import SequencesSkipped
from crfkit.optimizers import LBFGS, AdaGrad
from crfkit.report import write_report
from crfkit.structures import Chain
from tests.pipeline.small_treebank import make_treebank
from tests.report.test_label_report import corpus

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with sync_playwright() as engine:
        found = engine.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield found
        found.close()


@pytest.fixture(scope="module")
def labels_report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("labels") / "r.html"
    X, y = corpus(60, 4)
    for labels in y[::2]:
        labels[0] = "O" if labels[0] != "O" else "B-PER"
    model = CRF(features="names", l2=0.5).fit(*corpus(40, 0))
    write_report(model, X, y, path, against=[["O"] * len(one) for one in y], n_samples=50)
    return path


@pytest.fixture(scope="module")
def trees_report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("trees") / "r.html"
    parser = Parser(order=1, optimizer=LBFGS(max_iterations=4)).fit(make_treebank(3, 0))
    write_report(parser, make_treebank(40, 1), None, path)
    return path


class Watched:
    """A page, and all that it complains about or asks for."""

    def __init__(self, browser: Any, path: Path, **options: Any) -> None:
        self.page = browser.new_page(**options)
        self.trouble: list[str] = []
        self.page.on("console", lambda message: self.trouble.append(message.text))
        self.page.on("pageerror", lambda error: self.trouble.append(str(error)))
        self.page.on("request", lambda request: self.trouble.append(request.url))
        self.page.context.set_offline(True)
        self.address = path.as_uri()
        self.page.goto(self.address)

    def __enter__(self) -> Any:
        return self.page

    def __exit__(self, *_: object) -> None:
        self.page.close()
        assert self.trouble == [self.address]  # the file itself, and nothing else


def n_shown(page: Any) -> int:
    return int(page.locator("#list > li:visible").count())


@pytest.mark.parametrize("report", ["labels_report", "trees_report"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_pages_open_without_network(
    browser: Any, report: str, scheme: str, width: int, request: pytest.FixtureRequest
) -> None:
    path = request.getfixturevalue(report)
    with Watched(browser, path, color_scheme=scheme, viewport={"width": width, "height": 900}) as page:
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        background = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert background == {"light": "rgb(246, 247, 249)", "dark": "rgb(18, 22, 28)"}[scheme]
        colours = page.evaluate(
            "[...document.querySelectorAll('svg.plot text')].map(text => getComputedStyle(text).fill)"
        )
        ink = {
            "light": {"rgb(27, 35, 48)", "rgb(91, 102, 117)"},
            "dark": {"rgb(231, 236, 243)", "rgb(163, 175, 191)"},
        }
        assert colours
        assert set(colours) <= ink[scheme]


CONTRAST = """() => {
  const canvas = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
  const rgb = colour => { canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1);
                          return [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3); };
  const light = colour => rgb(colour).map(v => v / 255).map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
                                     .reduce((sum, v, k) => sum + v * [0.2126, 0.7152, 0.0722][k], 0);
  const style = getComputedStyle(document.documentElement);
  const value = name => style.getPropertyValue(name);
  const ratio = (a, b) => { const [x, y] = [light(a), light(b)].sort((p, q) => q - p); return (x + 0.05) / (y + 0.05); };
  const names = ['--ink', '--pale', '--good', '--bad', '--first', ...[0, 1, 2, 3, 4, 5, 6, 7].map(k => '--t' + k)];
  const least = name => Math.min(...['--card', '--paper'].map(back => ratio(value(name), value(back))));
  return Object.fromEntries(names.map(name => [name, least(name)]));
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_texts_have_contrast(browser: Any, labels_report: Path, scheme: str) -> None:
    with Watched(browser, labels_report, color_scheme=scheme) as page:
        ratios = page.evaluate(CONTRAST)
        assert min(ratios.values()) >= 4.5, ratios  # WCAG 2, level AA


def test_errors_are_filtered(browser: Any, labels_report: Path) -> None:
    with Watched(browser, labels_report) as page:
        n_all = page.locator("#list > li").count()
        assert n_all > 25
        assert n_shown(page) == 25
        assert page.locator("#shown").inner_text() == f"{n_all} of {n_all} errors"
        page.locator("#more").click()
        assert n_shown(page) == min(n_all, 50)
        for name, value, rule in (
            ("kind", "missed", "item.dataset.kind === 'missed'"),
            ("type", "PER", "item.dataset.types.split('\\n').includes('PER')"),
        ):
            page.select_option(f"select[name={name}]", value)
            expected = page.evaluate(
                f"[...document.querySelectorAll('#list > li')].filter(item => {rule}).length"
            )
            assert 0 < expected < n_all
            assert page.locator("#shown").inner_text() == f"{expected} of {n_all} errors"
            assert n_shown(page) == min(expected, 25)
            page.select_option(f"select[name={name}]", "")
        page.locator("input[name=text]").fill("SMITH")
        n_with = int(page.locator("#shown").inner_text().split()[0])
        assert 0 < n_with < n_all
        assert all("smith" in text.lower() for text in page.locator("#list > li:visible").all_inner_texts())
        page.get_by_text("Show all").click()
        page.wait_for_function(
            f"document.getElementById('shown').textContent === '{n_all} of {n_all} errors'"
        )
        page.locator("input[name=sure]").fill("0.9")
        expected = page.evaluate(
            "[...document.querySelectorAll('#list > li')].filter(item => Number(item.dataset.sure) >= 0.9).length"
        )
        assert page.locator("#shown").inner_text() == f"{expected} of {n_all} errors"
        page.locator("input[name=text]").fill("no such word anywhere")
        assert n_shown(page) == 0


def test_tables_are_sorted_and_features_chosen(browser: Any, labels_report: Path) -> None:
    with Watched(browser, labels_report) as page:
        table = page.locator("#confusion table.sortable")

        def column() -> list[int]:
            return [
                int(text.replace(",", "")) for text in table.locator("tbody td:last-child").all_inner_texts()
            ]

        head = table.locator("thead th:last-child button")
        head.focus()
        page.keyboard.press("Enter")
        assert table.locator("thead th:last-child").get_attribute("aria-sort") == "descending"
        assert column() == sorted(column(), reverse=True)
        head.click()
        assert table.locator("thead th:last-child").get_attribute("aria-sort") == "ascending"
        assert column() == sorted(column())
        page.select_option("#feature-label", "B-LOC")
        assert page.locator(".by-label:visible").get_attribute("data-label") == "B-LOC"


def test_colours_can_be_chosen(browser: Any, labels_report: Path) -> None:
    with Watched(browser, labels_report, color_scheme="dark") as page:
        button = page.locator("#theme")
        for label, background in (
            ("Colours: light", "rgb(246, 247, 249)"),
            ("Colours: dark", "rgb(18, 22, 28)"),
            ("Colours: as the system says", "rgb(18, 22, 28)"),
        ):
            button.click()
            assert button.get_attribute("aria-label") == label
            assert page.evaluate("getComputedStyle(document.body).backgroundColor") == background


def test_a_page_without_errors_has_no_script_error(browser: Any, tmp_path: Path) -> None:
    X, y = corpus(20, 0)
    model = CRF(features="names", l2=0.01).fit(X, y)
    write_report(model, X, model.predict(X), tmp_path / "r.html")
    with Watched(browser, tmp_path / "r.html") as page:
        assert page.locator("#errors").is_visible()


@pytest.mark.slow
@pytest.mark.skipif(
    find_corpus("conll2002", "esp.train") is None, reason="CoNLL-2002 is not in the folder CRFKIT_DATA"
)
def test_spanish_names(browser: Any, tmp_path: Path) -> None:
    """At most 1 MB, and no trouble in a browser."""

    def read(name: str) -> tuple[list[Any], list[Any]]:
        path = find_corpus("conll2002", name)
        assert path is not None
        rows = [sentence.rows for sentence in read_columns(path, comment=None)]
        return [[row[:-1] for row in one] for one in rows], [[row[-1] for row in one] for one in rows]

    structure, optimizer = Chain(bigrams="bio", unseen="skip"), AdaGrad(max_iterations=5)
    with pytest.warns(SequencesSkipped):  # one sentence begins with I-LOC
        model = CRF(structure=structure, features="names", optimizer=optimizer).fit(*read("esp.train"))
    X, y = read("esp.testa")
    write_report(model, X, y, tmp_path / "r.html", train=read("esp.train"))
    assert (tmp_path / "r.html").stat().st_size <= 1 << 20
    with Watched(browser, tmp_path / "r.html") as page:
        assert page.locator("#list > li").count() == 200
