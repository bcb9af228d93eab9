"""`crfkit train` on files that the core reads: the model, the notes and the errors of the general reader."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from crfkit.cli import train as train_command
from crfkit.cli.columns import ColumnExamples, read_column_examples, read_labelled
from crfkit.errors import InputError
from tests.cli.commands import run

PLACES = ["Rome", "dog", "İstanbul", "#", "été", "x-27"]


def text_of(seed: int, n: int, labels: str = "ABC") -> bytes:
    source = random.Random(seed)
    lines: list[str] = []
    for _ in range(n):
        lines += source.choice([[], ["# c"]])
        lines += [f"{source.choice(PLACES)} {source.choice('NV')} {source.choice(labels)}" for _ in range(4)]
        lines.append("")
    return "\n".join(lines).encode()


@pytest.fixture
def generally(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Makes the command read line by line."""

    def read(path: Path, **options: Any) -> list[Any]:
        return list(read_labelled(path, **options))

    return lambda: monkeypatch.setattr(train_command, "read_column_examples", read)


@pytest.fixture(autouse=True)
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    "options",
    [
        ["--features", "chunks"],
        ["--features", "names", "--dev", "dev.txt", "--threads", "2"],
        ["--label-column", "0", "--min-count", "2"],
        ["--folds", "3"],
        ["--bigrams", "observed"],
        ["--tag-dictionary"],
    ],
)
def test_the_model_is_that_of_the_general_reader(generally: Any, options: list[str]) -> None:
    Path("in.txt").write_bytes(text_of(0, 60))
    Path("dev.txt").write_bytes(text_of(1, 20))
    command = ["train", "in.txt", "--max-iterations", "4", *options]
    native = run(*command, "--model", "native.crf")
    generally()
    general = run(*command, "--model", "general.crf")
    assert Path("native.crf").read_bytes() == Path("general.crf").read_bytes()
    assert native.stdout == general.stdout
    assert native.stderr.splitlines()[0] == general.stderr.splitlines()[0]


@pytest.mark.parametrize(
    ("text", "options"),
    [
        (b"", []),
        (b"# c\n", []),
        (b"Rome\n", []),
        (b"Rome N\n", ["--label-column", "2"]),
        (b"Rome\tN\tA\n\n# c\ndog\tN\t\n", []),
        (b"Rome N A\n\ndog A\n", []),
        (b"Rome N A\n\ndog\xff N A\n", []),
        (b"1\tRome\t_\tN\t_\t_\t0\troot\t_\t_\n", []),
        (text_of(2, 9, "XY"), ["--bigrams", "bio"]),
        (text_of(2, 9), ["--dev", "other.txt"]),
        (text_of(2, 9), ["--dev", "missing.txt"]),
        (text_of(2, 9), ["--dev", "narrow.txt"]),
    ],
)
def test_the_errors_are_those_of_the_general_reader(generally: Any, text: bytes, options: list[str]) -> None:
    Path("in.txt").write_bytes(text)
    Path("other.txt").write_bytes(b"# c\nRome N A\ndog N A\n# d\n\n\nRome N A\nRome N D\n")
    Path("narrow.txt").write_bytes(b"Rome A\n")
    command = ["train", "in.txt", "--model", "m.crf", "--max-iterations", "2", *options]
    native = run(*command, status=2).stderr
    generally()
    assert native == run(*command, status=2).stderr


def test_examples_are_those_of_the_general_reader() -> None:
    Path("in.txt").write_bytes(text_of(3, 12))
    native = read_column_examples(Path("in.txt"), label_column=-1, separator=None)
    general = list(read_labelled("in.txt", label_column=-1))
    assert isinstance(native, ColumnExamples)
    assert len(native) == len(general)
    for one, other in zip(native, general, strict=True):
        assert [*one.inputs] == [*other.inputs]
        assert (len(one.inputs), one.inputs[-1], one.labels) == (4, other.inputs[-1], other.labels)
        assert [one.origin.place(i) for i in range(4)] == [other.origin.place(i) for i in range(4)]
    assert native[-1].labels == general[-1].labels
    assert [example.labels for example in native[2:4]] == [example.labels for example in general[2:4]]
    with pytest.raises(InputError):
        read_column_examples(Path("missing.txt"), label_column=-1, separator=None)
