"""Files on disk: missing ones, drafts that a killed process left, and the same bytes for equal training runs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import crfkit
from crfkit import CRF, LBFGS, InputError
from crfkit.data import MissingFileError, read_columns
from crfkit.models import replacing
from tests.cli.commands import run
from tests.models.test_training import data

ROOT = Path(__file__).parents[2]


def test_a_missing_file_is_a_file_not_found_error(tmp_path: Path) -> None:
    path = tmp_path / "absent.crf"
    for read in (crfkit.load, lambda path: list(read_columns(path))):
        with pytest.raises(FileNotFoundError, match=r"absent\.crf: cannot be read: No such file") as caught:
            read(path)
        assert caught.type is MissingFileError
        assert (caught.value.errno, caught.value.filename) == (2, str(path))
    assert issubclass(MissingFileError, InputError)
    done = run("tag", str(path), "x.txt", status=2)
    assert done.stderr == f"crfkit: {path}: cannot be read: No such file or directory\n"


KILLED = """
import os, signal, sys
from crfkit.models import replacing
with replacing(sys.argv[1]) as stream:
    stream.write(b"half")
    stream.flush()
    if sys.argv[2] == "wait":
        print(flush=True)
        sys.stdin.read()
    else:
        os.kill(os.getpid(), signal.SIGKILL)
"""


def test_the_next_save_removes_what_a_killed_one_left(tmp_path: Path) -> None:
    path = tmp_path / "model.crf"
    others = [".model.crf.part", ".other.crf.0123456789ab.part", ".model.crf.0123456789ab.part.txt"]
    for name in others:
        (tmp_path / name).write_bytes(b"somebody else's")
    done = subprocess.run([sys.executable, "-c", KILLED, str(path), "die"], check=False)
    assert done.returncode == -signal.SIGKILL
    assert len(os.listdir(tmp_path)) == len(others) + 1
    with replacing(path) as stream:
        stream.write(b"whole")
    assert sorted(os.listdir(tmp_path)) == sorted([*others, "model.crf"])
    assert path.read_bytes() == b"whole"


@pytest.mark.skipif(sys.platform == "win32", reason="other locks")
def test_the_draft_of_a_save_under_way_stays(tmp_path: Path) -> None:
    path = tmp_path / "model.crf"
    command = [sys.executable, "-c", KILLED, str(path), "wait"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdin is not None
        assert other.stdout is not None
        other.stdout.readline()
        with replacing(path) as stream:
            stream.write(b"first")
        assert len(os.listdir(tmp_path)) == 2
        other.stdin.close()
    assert other.returncode == 0
    assert os.listdir(tmp_path) == ["model.crf"]
    assert path.read_bytes() == b"half"


SAVED = """
import sys
import crfkit
from crfkit import CRF, LBFGS, Chain, Growth, Patterns, Parser
from crfkit.data import Sentence, Word
from tests.models.test_training import data

X, y = data()
words = [[position[0] for position in sequence] for sequence in X]
sets = [[{*names, "a", "b", "c"} for names in sequence] for sequence in X]
folder, n_threads = sys.argv[1], int(sys.argv[2])
few = LBFGS(max_iterations=6)
partial = [[None if i % 5 == 3 else {"D", "V"} if i % 5 == 4 else label for i, label in enumerate(labels)] for labels in y]
models = {
    "plain": (CRF(optimizer=few), X, y, {"dev": (X[:5], y[:5])}),
    "partial": (CRF(Chain(bigrams="observed"), optimizer=few), X, partial, {}),
    "mixed": (CRF(optimizer=few), X, [[{1, "N"} if label == "D" else label for label in labels] for labels in y], {}),
    "sgd": (CRF(optimizer="sgd", l1=0.1), X, y, {}),
    "sets": (CRF(optimizer=few), sets, y, {}),
    "sets in dicts": (CRF(optimizer=few), [[{"names": names} for names in sequence] for sequence in sets], y, {}),
    "words": (CRF(features="pos", tag_dictionary=True, optimizer=few), words, y, {}),
    "grown": (CRF(Patterns(grow=Growth(min_count=1, min_gain=0.1)), optimizer=few), X, y, {}),
}
for name, (model, X, y, options) in models.items():
    model.set_params(n_threads=n_threads).fit(X, y, **options).save(f"{folder}/{name}")
def word(i):
    return Word(f"w{i}", "_", "X", "_", "_", i, "ab"[i % 2], "_", "_")

sentences = [Sentence([word(i) for i in range(n)]) for n in (3, 4, 5)]
Parser(n_threads=n_threads).fit(sentences).save(f"{folder}/parser")
"""


def test_equal_training_runs_give_equal_files(tmp_path: Path) -> None:
    """In other processes, with other hash seeds, on one thread and on three."""
    files = []
    for n_threads in (1, 3):
        folder = tmp_path / str(n_threads)
        folder.mkdir()
        environment = {**os.environ, "PYTHONHASHSEED": str(n_threads)}
        command = [sys.executable, "-W", "ignore", "-c", SAVED, str(folder), str(n_threads)]
        subprocess.run(command, cwd=ROOT, env=environment, check=True)
        files.append({path.name: path.read_bytes() for path in folder.iterdir()})
    assert len(files[0]) == 9
    assert {name for name in files[0] if files[0][name] != files[1][name]} == set()


def test_saving_what_was_loaded_gives_the_same_file(tmp_path: Path) -> None:
    CRF(optimizer=LBFGS(max_iterations=3)).fit(*data()).save(tmp_path / "first")
    crfkit.load(tmp_path / "first").save(tmp_path / "second")
    assert (tmp_path / "first").read_bytes() == (tmp_path / "second").read_bytes()
