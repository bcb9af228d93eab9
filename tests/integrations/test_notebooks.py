"""The notebooks of examples/ run from top to bottom, and hold no outputs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

import crfkit

nbformat = pytest.importorskip("nbformat", reason="needs nbformat: pip install nbformat")
nbclient = pytest.importorskip("nbclient", reason="needs nbclient: pip install nbclient")
pytest.importorskip("ipykernel", reason="needs ipykernel: pip install ipykernel")
for package in ("narwhals", "polars", "jinja2", "matplotlib"):
    pytest.importorskip(package, reason=f"needs {package}")

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
VIEWS = {"names": 7, "trees": 3, "errors": 3}  # how many outputs are HTML, at least


def execute(notebook: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run all cells in a kernel of their own, with this crfkit."""
    source = str(Path(crfkit.__file__).parents[1])
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([source, os.environ.get("PYTHONPATH", "")]))
    monkeypatch.setenv("PYTHONWARNINGS", "default")
    for name in ("IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR"):
        monkeypatch.setenv(name, str(tmp_path / name.lower()))
    nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()


def outputs_of(notebook: Any) -> list[Any]:
    return [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]


def test_there_are_notebooks() -> None:
    assert {path.stem for path in NOTEBOOKS} >= set(VIEWS)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_no_outputs_are_stored(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    assert outputs_of(notebook) == []
    assert all(cell.execution_count is None for cell in notebook.cells if cell.cell_type == "code")


@pytest.mark.filterwarnings("default")  # what the client's own packages warn of
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_run(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    notebook = nbformat.read(path, as_version=4)
    execute(notebook, tmp_path, monkeypatch)
    found = outputs_of(notebook)
    assert [output for output in found if output.output_type == "error"] == []
    pages = [output.data["text/html"] for output in found if "text/html" in output.get("data", {})]
    assert len(pages) >= VIEWS.get(path.stem, 0)
    if 'verbose="live"' in path.read_text(encoding="utf-8").replace("\\", ""):
        assert any("iterations, " in page and "<svg" in page for page in pages)  # its last picture stays


@pytest.mark.filterwarnings("default")
def test_an_interrupted_kernel_keeps_the_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The signal that ■ sends, in the middle of training: the cell ends without an error, and the model is there."""
    cell = """
import os, signal
from crfkit import CRF, LBFGS

def press(progress):
    if progress.iteration == 3:
        os.kill(os.getpid(), signal.SIGINT)

optimizer = LBFGS(max_iterations=50, tolerance=0.0, change=0.0)
X, y = [[["a"], ["b"], ["c"]], [["b"], ["b"]]], [["A", "B", "B"], ["B", "A"]]
crf = CRF(optimizer=optimizer, l2=1e-9).fit(X, y, verbose="live", callback=press)
"""
    question = "print(crf.stop_reason_.name, crf.n_iter_ < 50, len(crf.predict([[['a']]])))"
    notebook = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(cell), nbformat.v4.new_code_cell(question)],
        metadata={"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}},
    )
    execute(notebook, tmp_path, monkeypatch)
    assert notebook.cells[1].outputs[0].text == "INTERRUPTED True 1\n"
