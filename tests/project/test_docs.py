"""Every example of the README, the pages and the docstrings runs, and gives what it shows.

On a page, from top to bottom in one empty folder:

    ```text file=NAME    is written to that file (as is ```python file=NAME)
    ```python            runs in one namespace; an ```output block after it is what it prints
    ```console           lines `$ crfkit …` run, the lines after them are what they print; `< NAME` gives standard input,
                         and a status other than 0 is shown by `$ echo $?`

In what is shown, `…` stands for anything within a line, and alone on a line for any number of lines.
"""

from __future__ import annotations

import contextlib
import doctest
import importlib
import io
import logging
import pkgutil
import re
import shlex
import sys
import tomllib
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import MagicMock

import click
import pytest
from click.testing import CliRunner

import crfkit
from crfkit.cli import main
from crfkit.features import PRESETS
from crfkit.features.template_functions import FUNCTIONS
from tests.project.page_server import PageServer, without_blanks

PROJECT = Path(__file__).resolve().parents[2]
PAGES = sorted([*PROJECT.glob("*.md"), *PROJECT.glob("docs/**/*.md")])
WITHOUT_EXAMPLES = ("architecture", "benchmarks", "CHANGELOG", "CONTRIBUTING", "gallery", "index", "scaling")
WIDTH = 100  # columns of prose on a page
NOT_RUN = ("pip ", "make ", "git ", "python -m benchmarks.")  # commands of the shell that pages may show
WITH_EXAMPLES = (
    "CRF",
    "Chain",
    "ChainScores",
    "FeatureFunctions",
    "Parser",
    "Template",
    "inference.log_partition",
    "data.read_columns",
)

NEEDS = {  # page or module, and those within it → optional packages without which it is skipped
    "neural": ("torch",),
    "dataframes": ("narwhals", "polars", "pandas"),
    "notebooks": ("IPython",),
    "reports": ("jinja2", "matplotlib"),
    "explaining": ("jinja2", "matplotlib"),
    "integrations": ("spacy", "torch"),
    "crfkit.nn": ("torch",),
    "crfkit.compat.torchcrf": ("torch",),
    "crfkit.data.frames": ("narwhals", "polars"),
    "crfkit.integrations.spacy": ("spacy",),
    "crfkit.serve": ("starlette", "uvicorn"),
    "crfkit.distributed": ("dask", "distributed"),
    "cluster": ("dask", "distributed"),
    "serving": ("starlette", "uvicorn", "httpx"),
}

STAND_INS = {"integrations": ("mlflow", "wandb")}  # modules that a page calls and that are not installed

FENCE = re.compile(r"^(?P<ticks>```+)(?P<info>[^`\n]*)\n(?P<text>.*?)^(?P=ticks)$", re.DOTALL | re.MULTILINE)


def name_of(page: Path) -> str:
    """The path of a page in the project."""
    return page.relative_to(PROJECT).as_posix()


class Block(NamedTuple):
    """A fenced block of a page."""

    kind: str
    file: str | None  # where it is written, for `file=NAME`
    text: str
    line: int  # of its fence, counted from 1


class ExampleError(AssertionError):
    """An example that does not do what its page says."""


def blocks_of(page: str) -> Iterator[Block]:
    for found in FENCE.finditer(page):
        kind, *options = found["info"].split() or [""]
        files = [option.removeprefix("file=") for option in options if option.startswith("file=")]
        yield Block(kind, files[0] if files else None, found["text"], page.count("\n", 0, found.start()) + 1)


def agrees(shown: str, printed: str) -> bool:
    """Whether what was printed is what is shown, blanks at the ends of lines apart."""
    pattern = ""
    for line in shown.rstrip().splitlines():
        if line.strip() == "…":
            pattern += r"(?:.*\n)*?"
        else:
            pattern += ".*?".join(map(re.escape, line.rstrip().split("…"))) + r"[ \t]*\n"
    return re.fullmatch(pattern, printed.rstrip() + "\n" if printed.strip() else "") is not None


class Runner:
    """Runs the blocks of one page, in the folder at hand."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.namespace: dict[str, Any] = {"__name__": "__main__"}
        self.printed: str | None = None  # by the Python block before
        self.server: PageServer | None = None  # that the page has started

    def run(self, page: str) -> int:
        """Run everything; how many examples there were."""
        try:
            return self.run_blocks(page)
        finally:
            if self.server is not None:
                self.server.stop()

    def run_blocks(self, page: str) -> int:
        n_run = 0
        for block in blocks_of(page):
            if block.file is not None:
                Path(block.file).write_text(block.text, encoding="utf-8")
            elif block.kind == "python":
                self.printed = self.python(block)
                n_run += 1
                continue
            elif block.kind == "output":
                if self.printed is None:
                    raise ExampleError(f"{self.name}:{block.line}: no Python block before this output")
                self.compare(block.line, block.text, self.printed)
            elif block.kind in ("console", "sh"):
                n_run += self.console(block)
            self.printed = None
        return n_run

    def compare(self, line: int, shown: str, printed: str) -> None:
        if not agrees(shown, printed):
            raise ExampleError(f"{self.name}:{line}: shown:\n{shown}\nprinted:\n{printed}")

    def python(self, block: Block) -> str:
        """Run a block; what it prints."""
        code = "\n" * block.line + block.text  # so that a traceback shows the line of the page
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            try:
                exec(compile(code, self.name, "exec", dont_inherit=True), self.namespace)
            except Exception as error:
                raise ExampleError(f"{self.name}:{block.line}: {type(error).__name__}: {error}") from error
        return printed.getvalue()

    def console(self, block: Block) -> int:
        """Run the commands of a block; how many there were."""
        before, *commands = re.split(r"^\$ ", block.text, flags=re.MULTILINE)
        if before.strip():
            raise ExampleError(f"{self.name}:{block.line}: a console block begins with `$ `")
        status, n_run = 0, 0
        for number, text in enumerate(commands):
            command, _, shown = re.sub(r" *\\\n +", " ", text).partition("\n")
            where = f"{self.name}:{block.line}: {command}"
            if command == "echo $?":
                self.compare(block.line, shown, str(status))
            elif command.startswith("crfkit serve ") and command.endswith(" &"):
                self.server = PageServer(command)
                self.compare(block.line, shown, self.server.printed)
            elif command.startswith("curl ") and self.server is not None:
                n_run += 1
                printed = self.server.curl(command)
                self.compare(block.line, without_blanks(shown), without_blanks(printed))
            elif command.startswith("crfkit "):
                status, printed = crfkit_command(command)
                n_run += 1
                self.compare(block.line, shown, printed)
                asked = number + 1 < len(commands) and commands[number + 1].startswith("echo $?")
                if status != 0 and not asked:
                    raise ExampleError(f"{where}: exit status {status}, shown by no `$ echo $?`")
            elif not command.startswith(NOT_RUN):
                raise ExampleError(f"{where}: not a command that is run here")
        return n_run


def crfkit_command(command: str) -> tuple[int, str]:
    """The exit status of a command line, and all that it prints."""
    command, _, file = command.partition(" < ")
    text = Path(file.strip()).read_bytes() if file else None
    result = CliRunner().invoke(main, shlex.split(command)[1:], input=text, prog_name="crfkit")
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.output


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty folder to be in; modules that a page writes there can be imported, as from a script beside them."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    before = set(sys.modules)
    yield tmp_path
    logger = logging.getLogger("crfkit")  # which a page may have shown how to use
    logger.handlers.clear()
    logger.setLevel(logging.NOTSET)
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(tmp_path)):
            del sys.modules[name]


def skip_without_needs(name: str) -> None:
    """Skip what needs packages that are not installed."""
    for part, packages in NEEDS.items():
        if name == part or name.startswith(f"{part}."):
            for package in packages:
                pytest.importorskip(package, reason=f"needs {package}")


# ---- the pages


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_examples(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    skip_without_needs(page.stem)
    for module in STAND_INS.get(page.stem, ()):
        monkeypatch.setitem(sys.modules, module, MagicMock())
    n_run = Runner(name_of(page)).run(page.read_text(encoding="utf-8"))
    assert n_run or page.stem in WITHOUT_EXAMPLES or page.parent.name == "reference"


def anchors_of(page: str) -> set[str]:
    """The anchors that a page's headings get, as on GitHub."""
    headings = re.findall(r"^#+ (.+)$", FENCE.sub("", page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_within_the_project_lead_somewhere(page: Path) -> None:
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if target.startswith(("http://", "https://")):
            continue
        name, _, anchor = target.partition("#")
        path = page.parent / name if name else page
        assert path.exists(), f"{page.name}: {target}"
        if anchor:
            assert anchor in anchors_of(path.read_text(encoding="utf-8")), f"{page.name}: {target}"


def long_lines(page: str) -> list[str]:
    """The lines of prose beyond the width: not code, tables, headings, pictures, or a single long word."""
    prose = FENCE.sub(lambda found: "\n" * found[0].count("\n"), page).splitlines()
    verbatim = ("|", "  |", "#", "![", "<", "    ")
    return [
        line
        for line in prose
        if len(line) > WIDTH and len(line.split()) > 2 and not line.startswith(verbatim)
    ]


@pytest.mark.parametrize("page", [page for page in PAGES if page.stem != "CHANGELOG"], ids=name_of)
def test_prose_is_wrapped(page: Path) -> None:
    assert long_lines(page.read_text(encoding="utf-8")) == []


def test_a_long_line_is_found() -> None:
    long = "word " * 30
    page = f"{long}\n- {long}\n| {long} |\n# {long}\n\n    {long}\n```text\n{long}\n```\n{'x' * 120}\n"
    assert long_lines(page) == [long, f"- {long}"]


def test_install_commands_need_no_release() -> None:
    """Packages of others by name, this one from its folder, with an extra that exists."""
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    texts = [*PAGES, *PROJECT.glob("*/*.md"), *PROJECT.glob("src/**/*.py"), *PROJECT.glob("tests/**/*.py")]
    found = 0
    for path in texts:
        if path == Path(__file__):
            continue
        for command in re.findall(r"pip install ([^\n`)]+)", path.read_text(encoding="utf-8")):
            assert "crfkit" not in command, f"{path.name}: pip install {command}"
            for extra in re.findall(r"\.\[([^]]*)\]", command):
                assert set(extra.split(",")) <= set(project["optional-dependencies"]), (
                    f"{path.name}: {command}"
                )
                found += 1
    assert found >= 3


def test_the_reference_of_templates_is_complete() -> None:
    text = (PROJECT / "docs" / "templates.md").read_text(encoding="utf-8")
    for function in FUNCTIONS:
        assert f"`%{function}[" in text
    for name in PRESETS:
        assert f"`{name}`" in text


def test_every_option_of_every_command_is_described() -> None:
    text = (PROJECT / "docs" / "command-line.md").read_text(encoding="utf-8")
    commands = click.Context(main)
    for name in main.list_commands(commands):
        section = text.partition(f"\n## crfkit {name}\n")[2].partition("\n## ")[0]
        assert section, name
        command = main.get_command(commands, name)
        assert command is not None
        for parameter in command.params:
            if isinstance(parameter, click.Option):
                assert f"`{parameter.opts[0]}" in section, f"{name} {parameter.opts[0]}"


# ---- the docstrings


def modules() -> list[str]:
    found = pkgutil.walk_packages(crfkit.__path__, "crfkit.")
    return ["crfkit", *(module.name for module in found if not module.name.endswith("__main__"))]


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("name", modules())
def test_docstrings(name: str) -> None:
    skip_without_needs(name)
    if name.endswith(("_triton", "_kernel", "_kernels")):
        pytest.importorskip("triton", reason="needs Triton: pip install triton")
    report: list[str] = []
    examples = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    module = importlib.import_module(name)
    if module.__doc__ is None:  # the native module
        return
    for test in doctest.DocTestFinder().find(module):
        examples.run(test, out=report.append)
    assert examples.summarize(verbose=False).failed == 0, "".join(report)


@pytest.mark.parametrize("name", WITH_EXAMPLES)
def test_the_main_names_have_an_example(name: str) -> None:
    value: Any = crfkit
    for part in name.split("."):
        value = getattr(value, part)
    assert ">>> " in (value.__doc__ or "")


# ---- the runner itself: a wrong example is found


RIGHT = """
```text file=train.txt
the D
dog N
```

```python
import pathlib
print(pathlib.Path("train.txt").read_text().split())
```

```output
['the', 'D', … 'N']
```

```console
$ make demo
anything
$ crfkit train train.txt --model m.crf --quiet
$ crfkit tag m.crf - < train.txt
the D D
…
$ crfkit tag m.crf nosuch.txt
crfkit: nosuch.txt: …
$ echo $?
2
```
"""


@pytest.mark.usefixtures("folder")
def test_a_right_page_passes() -> None:
    assert Runner("page").run(RIGHT) == 4


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("print(pathlib", "print(pathlibs"),
        ("'N']", "'V']"),
        ("the D D\n…", "the D N\n…"),
        ("the D D\n…", "the D D"),
        ("$ echo $?\n2", "$ echo $?\n0"),
        ("$ echo $?\n2\n", ""),
        ("--quiet\n", "--quiet\nsomething\n"),
        ("--quiet", "--quite"),
        ("$ make demo", "$ wget demo"),
        ("$ make demo", "make demo"),
        ("```python", "```pithon"),
    ],
)
def test_a_wrong_example_is_found(right: str, wrong: str) -> None:
    assert right in RIGHT
    with pytest.raises(ExampleError, match=r"^page:\d+: "):
        Runner("page").run(RIGHT.replace(right, wrong))


def test_a_wrong_docstring_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    planted = types.ModuleType("planted", ">>> 1 + 1\n3\n")
    monkeypatch.setattr(importlib, "import_module", lambda name: planted)
    with pytest.raises(AssertionError, match="Expected"):
        test_docstrings("planted")


@pytest.mark.parametrize(
    ("shown", "printed", "same"),
    [
        ("a … c\n", "a b c\n", True),
        ("a … c\n", "a b\nc\n", False),
        ("a\n…\nd\n", "a\nb\nc\nd\n", True),
        ("a\n…\nd\n", "a\nd\n", True),
        ("a\n…\nd\n", "a\nb\nc\n", False),
        ("a \n\n", "a\n", True),
        ("", "", True),
        ("", "a\n", False),
        ("a.c\n", "abc\n", False),
    ],
)
def test_what_is_shown_and_what_is_printed(shown: str, printed: str, same: bool) -> None:
    assert agrees(shown, printed) is same
