"""What `crfkit tag` and `crfkit eval` do with a word segmenter: lines of text in, words with their fields out."""

from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from crfkit.cli.model_input import is_type
from crfkit.cli.progress import Display
from crfkit.cli.streams import ArrivingLines, batches, open_input, open_output
from crfkit.data import number_lines, read_words
from crfkit.errors import InputError, UnsupportedError, reword

if TYPE_CHECKING:
    from crfkit.evaluation import WordReport
    from crfkit.models import Word, WordSegmenter

BATCH = 1000  # texts at once


def is_segmenter(path: Path) -> bool:
    """Whether a model file holds a word segmenter."""
    return is_type(path, "WordSegmenter")


def load_segmenter(path: Path, options: dict[str, Any]) -> "WordSegmenter":
    """Load a segmenter; UnsupportedError where `options` have one that is about labels, with a value."""
    from crfkit.models import WordSegmenter, load

    for name, value in options.items():
        if value is not None and value is not False:
            option = "--" + name.replace("_", "-")
            raise UnsupportedError(f"{option} is about labels and columns, but {path} is a word segmenter")
    model = load(path)
    assert isinstance(model, WordSegmenter)
    return model


def write_words(words: "Iterable[Word]", output: IO[str]) -> None:
    """Write a sentence as MeCab does: form, tab, fields with commas; then EOS."""
    from crfkit.features import join_fields

    output.writelines(f"{word.form}\t{join_fields(word.fields)}\n" for word in words)
    output.write("EOS\n")


def tag_texts(
    model: "WordSegmenter", chunks: Iterable[list[str]], output: IO[str], nbest: int | None = None
) -> None:
    """Write the words of each text, or its n best analyses, each below `# rank probability`."""
    for chunk in chunks:
        if nbest is None:
            for words in model.predict(chunk):
                write_words(words, output)
        else:
            for several in model.predict_nbest(chunk, nbest):
                for rank, (probability, words) in enumerate(several, 1):
                    output.write(f"# {rank} {probability:.6f}\n")
                    write_words(words, output)
        output.flush()


def tag_file(
    path: Path, file: str, output: str | None, display: Display, nbest: int | None, options: dict[str, Any]
) -> None:
    """`crfkit tag` with a segmenter: each line of the file is a text."""
    threads = options.pop("threads")
    model = load_segmenter(path, options)
    model.crf_.set_params(n_threads=threads)
    source = open_input(file)
    display.stage(f"segmenting {file}", "texts", waits=isinstance(source, ArrivingLines))
    texts = (line for _, line in number_lines(source))
    with open_output(output) as stream:
        tag_texts(model, display.count(batches(texts, BATCH, source), len), stream, nbest)


def evaluate_file(path: Path, file: str, display: Display, options: dict[str, Any]) -> "WordReport":
    """`crfkit eval` with a segmenter: the file has words with their fields."""
    from crfkit.evaluation import word_report
    from crfkit.features import read_word

    threads = options.pop("threads")
    model = load_segmenter(path, options)
    model.crf_.set_params(n_threads=threads)
    display.stage(f"segmenting {file}", "sentences")
    sentences = display.count(read_words(open_input(file)))
    gold: list[Any] = []
    found: list[Any] = []
    while chunk := list(islice(sentences, BATCH)):
        gold += (
            [read_word(word, f"sentence {n}") for word in words] for n, words in enumerate(chunk, len(gold))
        )
        found += model.predict(["".join(form for form, _ in words) for words in chunk])
    try:
        return word_report(gold, found, model.dictionary.compared)
    except InputError as error:
        raise reword(error, f"{file}: {error}") from None
