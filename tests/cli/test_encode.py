"""`crfkit encode`, and training on what it writes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from click.testing import Result

import crfkit
from crfkit.data import open_dataset
from crfkit.errors import ArgumentError, FileFormatError
from crfkit.features import Template, dataset_writer, encode_files, open_resource
from tests.cli.commands import run as run_texts
from tests.models.test_stored_dictionaries import inflected

ROWS = "the D DET\ndog N NOUN\nruns V VERB\n\na D DET\ncat N NOUN\n\n"


def run(*arguments: Any, status: int = 0) -> Result:
    return run_texts(*map(str, arguments), status=status)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "train.txt"
    path.write_text(ROWS * 4)
    return path


def test_encode_and_train(tmp_path: Path, file: Path) -> None:
    out, model = tmp_path / "data", tmp_path / "m.crf"
    result = run("encode", file, file, "--out", out, "--features", "names", "--shard-size", 9)
    assert "16 sequences, 40 positions, 3 labels" in result.stderr
    dataset = open_dataset(out)
    assert dataset.n_shards == 6
    run("encode", file, file, "--out", out, "--features", "names", "--shard-size", 9)
    run("train", out, "--model", model, "--dev", file, "--patience", 3)
    crf = crfkit.load(model)
    assert crf.predict([[("the", "D"), ("cat", "N")]]) == [["DET", "NOUN"]]
    tagged = run("tag", model, file)
    assert tagged.stdout.count("NOUN") >= 8
    known = crfkit.CRF(features="names").fit(dataset)
    run("train", out, "--model", model, "--features", "names")
    assert crfkit.load(model).weights_.tobytes() == known.weights_.tobytes()


@pytest.mark.parametrize("preset", ["names", "pos", "chunks", "morphology"])
def test_a_preset_brings_its_settings_along(tmp_path: Path, preset: str) -> None:
    """Facets, dictionary, optimizer, penalties, bigrams: the model file is that of training on the file itself."""
    file, out = tmp_path / "train.txt", tmp_path / "data"
    pairs = inflected(60, partial=False)
    sequences = ["".join(f"{w} {c} {tag}\n" for (w, c), tag in zip(x, y, strict=True)) for x, y in pairs]
    file.write_text("\n".join(sequences))
    ours, theirs = tmp_path / "a.crf", tmp_path / "b.crf"
    short = ("--max-iterations", 3)
    run("train", file, "--features", preset, "--model", theirs, *short)
    run("encode", file, "--features", preset, "--out", out)
    run("train", out, "--model", ours, *short)
    assert ours.read_bytes() == theirs.read_bytes()
    small, size = tmp_path / "small", ("--shard-size", 60)
    run("encode", file, "--features", preset, "--out", small, *size)
    assert open_dataset(small).n_shards > 2
    run("train", file, "--features", preset, "--model", theirs, *short, *size)
    run("train", small, "--model", ours, *short)
    assert ours.read_bytes() == theirs.read_bytes()
    assert (
        f"shard_size is 61, but {small}"
        in run("train", small, "--model", ours, "--shard-size", 61, status=2).stderr
    )


def test_words_are_kept_for_a_dictionary(tmp_path: Path, file: Path) -> None:
    out, model = tmp_path / "data", tmp_path / "m.crf"
    command = ("encode", file, "--features", "names", "--out")
    run(*command, tmp_path / "without")
    train = ("train", "--model", model, "--tag-dictionary")
    assert "without the words of column 0" in run(*train, tmp_path / "without", status=2).stderr
    run(*command, out, "--word-column", 0, "--min-count", "auto")
    run(*train, out)
    assert crfkit.load(model).tag_dictionary
    assert "'few' is no number, nor auto" in run(*command, out, "--min-count", "few", status=2).stderr


def test_hashed_features(tmp_path: Path, file: Path) -> None:
    out, model = tmp_path / "data", tmp_path / "m.crf"
    run("encode", file, "--out", out, "--features", "names", "--hash-bits", 6)
    assert open_dataset(out).n_features <= 64
    run("train", out, "--model", model)
    tagged = run("tag", model, file).stdout
    shown = run("inspect", model).stdout
    assert "h6:" in shown
    other = tmp_path / "other.crf"
    run("train", file, "--model", other, "--features", "names", "--hash-bits", 6)
    assert run("tag", other, file).stdout == tagged
    assert "1<=x<=30" in run("encode", file, "--out", out, "--hash-bits", 31, status=2).stderr
    assert "hash_bits=6" in run("train", out, "--model", model, "--hash-bits", 7, status=2).stderr


def test_a_model_reads_files_as_those_that_were_encoded(tmp_path: Path) -> None:
    """One of words with blanks, separated by tabs, takes a line with a blank for one word."""
    file, new, model = tmp_path / "train.txt", tmp_path / "new.txt", tmp_path / "m.crf"
    file.write_text("is\tO\nNew York\tLOC\n\nold\tO\n\n" * 3)
    new.write_text("is\nNew York\n")
    run("encode", file, "--out", tmp_path / "data", "--features", "names")
    encode_files([file], tmp_path / "more", features="names")
    for source in (file, tmp_path / "data", tmp_path / "more"):
        options = ["--features", "names"] if source == file else []
        run("train", source, "--model", model, *options)
        assert run("tag", model, new).stdout == "is\tO\nNew York\tLOC\n\n"


def test_a_model_never_replaces_a_file_of_its_data_set(tmp_path: Path, file: Path) -> None:
    out = tmp_path / "data"
    run("encode", file, "--out", out, "--features", "names")
    for path in sorted(out.iterdir()):
        before = path.read_bytes()
        assert "would replace" in run("train", out, "--model", path, status=2).stderr
        assert path.read_bytes() == before


def test_a_run_that_was_killed_while_it_wrote_its_first_file_goes_on(tmp_path: Path, file: Path) -> None:
    out = tmp_path / "data"
    out.mkdir()
    (out / ".unfinished.json.part").write_text("{")
    run("encode", file, "--out", out, "--features", "names")
    assert sorted(path.name for path in out.iterdir())[:2] == ["dataset.json", "shard-00000.safetensors"]
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "letters.txt").write_text("dear")
    again = run("encode", file, "--out", tmp_path / "other", "--features", "names", status=2)
    assert "holds something else" in again.stderr


def test_a_run_goes_on_at_the_file_that_was_mended(tmp_path: Path, file: Path) -> None:
    """Of the files before it no shard is written again, and the data set is that of one run."""
    files = [tmp_path / f"{i}.txt" for i in range(5)]
    for path in files:
        path.write_text(file.read_text())
    options = ("--out", tmp_path / "data", "--features", "names", "--shard-size", 10)
    files[3].write_text(file.read_text() * 3 + "\nthe D DET\ndog N\n")
    assert "3.txt:" in run("encode", *files, *options, status=2).stderr
    parts = sorted((tmp_path / "data").glob("part-*"))
    times = {path: path.stat().st_mtime_ns for path in parts}
    assert len(parts) == 6
    files[3].write_text(file.read_text() * 3 + "\nthe D DET\ndog N NOUN\n")
    files[4].write_text("the D\n")
    assert "4.txt: found 1 input column" in run("encode", *files, *options, status=2).stderr
    assert {path: path.stat().st_mtime_ns for path in parts} == times
    assert "other files or options" in run("encode", *files, *options, "--min-count", 2, status=2).stderr
    assert "other files or options" in run("encode", *files[1:], *options, status=2).stderr
    run("encode", *files[:4], *options)  # without the file that cannot be read
    run("encode", *files[:4], "--out", tmp_path / "whole", *options[2:])
    found, whole = open_dataset(tmp_path / "data"), open_dataset(tmp_path / "whole")
    assert found.head == whole.head
    assert found.n_sequences == 8 * 6 + 1


def test_a_file_that_changed_after_all_were_read_is_named(
    tmp_path: Path, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(dataset_writer.DatasetWriter, "_write_shards", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            encode_files(file, tmp_path / "data")
    file.write_text(file.read_text() + "\nthe D DET\n")
    with pytest.raises(ArgumentError, match="has changed since: restore it"):
        encode_files(file, tmp_path / "data")


def test_files_with_other_columns_are_named(tmp_path: Path, file: Path) -> None:
    other = tmp_path / "other.txt"
    other.write_text("the DET\n")
    result = run("encode", file, other, "--out", tmp_path / "data", "--features", "names", status=2)
    assert f"{other}: found 1 input column besides the label, expected 2 as in {file}" in result.stderr


def test_a_treebank_as_plain_columns(tmp_path: Path) -> None:
    """The error names an option that there is."""
    trees, out = tmp_path / "trees.conllu", tmp_path / "data"
    trees.write_text("1\tthe\t_\tDET\t_\t_\t0\troot\t_\tX\n\n")
    command = ("encode", trees, "--out", out, "--features", "pos")
    assert "--plain-columns" in run(*command, status=2).stderr
    run("encode", trees, "--out", tmp_path / "more", "--features", "pos", "--plain-columns")
    assert open_dataset(tmp_path / "more").labels == ["X"]


def test_one_path_is_a_list_of_one(tmp_path: Path, file: Path) -> None:
    assert encode_files(str(file), tmp_path / "data").n_sequences == 8
    assert encode_files(file, tmp_path / "more").n_sequences == 8


def test_resources(tmp_path: Path, file: Path) -> None:
    out, model, words = tmp_path / "data", tmp_path / "m.crf", tmp_path / "animals.txt"
    words.write_text("dog\ncat\n")
    resource = ("--resource", f"animals={words}")
    run("encode", file, "--out", out, "--features", "names", *resource)
    run("train", out, "--model", model, *resource)
    known = crfkit.CRF(features="names", resources={"animals": open_resource(words)}).fit(file)
    assert crfkit.load(model).weights_.tobytes() == known.weights_.tobytes()
    assert run("tag", model, file, *resource).stdout.count("NOUN") >= 8
    assert "give the model the resources" in run("train", out, "--model", model, status=2).stderr


def test_a_template_reads_resources(tmp_path: Path, file: Path) -> None:
    out, model, words, template = (tmp_path / name for name in ("data", "m.crf", "animals.txt", "template"))
    words.write_text("dog\ncat\n")
    template.write_text("animal=%in[0,0,animals]\nB\n")
    file.write_text(ROWS.replace(" D ", " ").replace(" N ", " ").replace(" V ", " "))
    encode = ("encode", file, "--out", out, "--template", template)
    assert "or by --resource animals=FILE" in run(*encode, status=2).stderr
    assert not out.exists()
    resource = ("--resource", f"animals={words}")
    run(*encode, *resource)
    run("train", out, "--model", model, *resource)
    known = crfkit.CRF(features=Template.read(template), resources={"animals": open_resource(words)}).fit(
        file
    )
    assert crfkit.load(model).weights_.tobytes() == known.weights_.tobytes()
    run(*encode, *resource)  # it is complete
    words.write_text("dog\n")
    assert "another data set" in run(*encode, *resource, status=2).stderr


def test_standard_input_and_pipes(tmp_path: Path, file: Path) -> None:
    """Nothing of a pipe is lost where the file is looked at before it is read."""
    options = ("--features", "pos", "--shard-size", "9")
    known = encode_files(file, tmp_path / "known", features="pos", shard_size=9)
    text = file.read_text()
    run_texts("encode", "-", "--out", str(tmp_path / "stdin"), *options, text=text)
    run_texts("encode", "-", "--out", str(tmp_path / "stdin"), *options, text=text)
    changed = run_texts("encode", "-", "--out", str(tmp_path / "stdin"), *options, text=text * 2, status=2)
    assert "another data set" in changed.stderr
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = Thread(target=pipe.write_text, args=(text,))
    writer.start()
    run("encode", pipe, "--out", tmp_path / "piped", *options)
    writer.join()
    for name in ("stdin", "piped"):
        assert open_dataset(tmp_path / name).n_sequences == known.n_sequences
        for path in (tmp_path / "known").glob("*.safetensors"):
            assert (tmp_path / name / path.name).read_bytes() == path.read_bytes()
    twice = run_texts("encode", "-", "-", "--out", str(tmp_path / "x"), *options, status=2)
    assert "given twice" in twice.stderr
    mixed = run_texts("encode", str(file), "-", "--out", str(tmp_path / "x"), *options, text="a\n", status=2)
    assert "<stdin>:1: found one column" in mixed.stderr
    with pytest.raises(FileFormatError, match="pipe: not a file, expected one that can be read again"):
        encode_files(pipe, tmp_path / "y")


@pytest.mark.skipif(os.name == "nt", reason="limits are those of POSIX")
def test_standard_input_that_does_not_fit_on_the_disk(tmp_path: Path) -> None:
    """The beginning of it is not taken for all; `ulimit -f` lets files have 4 KiB."""
    command = f"ulimit -f 4; exec {sys.executable} -m crfkit encode - --features pos --out out"
    asked: Any = {"input": ROWS * 200, "cwd": tmp_path, "text": True, "capture_output": True, "check": False}
    done = subprocess.run(["bash", "-c", command], **asked)
    assert done.returncode == 2
    assert done.stderr.startswith("crfkit: <stdin>: cannot be kept in ")
    assert not (tmp_path / "out").exists()


def test_other_structures(tmp_path: Path) -> None:
    file, out, model = tmp_path / "train.txt", tmp_path / "data", tmp_path / "m.crf"
    file.write_text("is O\nNew B-LOC\nYork I-LOC\n\nold O\n\n" * 3)
    run("encode", file, "--out", out, "--features", "names")
    for options in (["--structure", "segments"], ["--order", "2"], ["--bigrams", "observed"]):
        run("train", out, "--model", model, *options)
        assert run("tag", model, file).stdout.split("\n")[1] == "New B-LOC B-LOC"


def test_what_does_not_go_together(tmp_path: Path, file: Path) -> None:
    out = tmp_path / "data"
    refused: list[tuple[tuple[Any, ...], str]] = [
        (("encode", file, "--out", out), "expected one of --features"),
        (("encode", file, "--out", out, "--features", "nothing"), "nothing"),
        (("encode", tmp_path / "none", "--out", out, "--features", "pos"), "cannot be read"),
        (("train", tmp_path, "--model", tmp_path / "m"), "not an encoded data set"),
    ]
    for arguments, message in refused:
        assert message in run(*arguments, status=2).stderr
    run("encode", file, "--out", out, "--features", "names")
    refused = [
        (("encode", file, "--out", out, "--features", "pos"), "another data set"),
        (("train", out, "--model", tmp_path / "m", "--folds", 2), "--folds"),
        (("train", out, "--model", tmp_path / "m", "--cost", 2), "--cost needs"),
        (("train", out, "--model", tmp_path / "m", "--features", "pos"), "other features"),
        (("train", out, "--model", tmp_path / "m", "--min-count", 2), "min_count"),
        (("train", out, "--model", tmp_path / "m", "--tag-dictionary"), "tag_dictionary"),
    ]
    for arguments, message in refused:
        assert message in run(*arguments, status=2).stderr
