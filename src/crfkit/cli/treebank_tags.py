"""What `crfkit tag` and `crfkit eval` do with a tagger of treebanks: CoNLL-U in, CoNLL-U out, with its columns filled."""

from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from crfkit.cli.model_input import is_type
from crfkit.cli.progress import Display
from crfkit.cli.resources import open_resources
from crfkit.cli.streams import ArrivingLines, batches, open_input, open_output
from crfkit.data import read_conllu, write_conllu
from crfkit.errors import UnsupportedError

if TYPE_CHECKING:
    from crfkit.data import Sentence
    from crfkit.evaluation import TagReport
    from crfkit.pipeline import TreebankTagger

BATCH = 500  # sentences tagged at once: enough for all threads, little to hold


def is_treebank_tagger(path: Path) -> bool:
    """Whether a model file holds a tagger of treebanks."""
    return is_type(path, "TreebankTagger")


def load_treebank_tagger(path: Path, options: dict[str, Any]) -> "TreebankTagger":
    """Load a tagger for use on `options["threads"]` threads, with the `options["resources"]` that it needs.

    UnsupportedError where another one of the options, which are about columns, has a value.
    """
    from crfkit.pipeline import TreebankTagger

    for name, value in options.items():
        if name not in ("threads", "resources") and value is not None and value is not False:
            option = "--" + name.replace("_", "-")
            raise UnsupportedError(
                f"{option} is about files of columns and labels, but {path} is a tagger of treebanks"
            )
    tagger = TreebankTagger.load(path, resources=open_resources(options.get("resources")))
    tagger.n_threads = options["threads"]
    return tagger


def tag_sentences(
    tagger: "TreebankTagger",
    chunks: "Iterable[list[Sentence]]",
    output: IO[str],
    *,
    probabilities: bool = False,
) -> None:
    """Write each sentence with the columns of the tagger filled; sentences come in chunks."""
    for chunk in chunks:
        write_conllu(tagger.predict(chunk, probabilities=probabilities), output)
        output.flush()


def tag_treebank(
    path: Path, file: str, output: str | None, display: Display, options: dict[str, Any]
) -> None:
    """`crfkit tag` with a tagger of treebanks."""
    probabilities = options.pop("marginals")
    tagger = load_treebank_tagger(path, options)
    source = open_input(file)
    display.stage(f"tagging {file}", "sentences", waits=isinstance(source, ArrivingLines))
    chunks = display.count(batches(read_conllu(source), BATCH, source), len)
    with open_output(output) as stream:
        tag_sentences(tagger, chunks, stream, probabilities=probabilities)


def evaluate_tagger(path: Path, file: str, display: Display, options: dict[str, Any]) -> "TagReport":
    """`crfkit eval` with a tagger of treebanks."""
    from crfkit.evaluation import evaluate_tags
    from crfkit.pipeline import TagColumns

    tagger = load_treebank_tagger(path, options)
    display.stage(f"tagging {file}", "sentences")
    sentences = display.count(read_conllu(open_input(file)))
    gold: list[Sentence] = []
    predicted: list[Sentence] = []
    n_impossible = 0
    while chunk := list(islice(sentences, BATCH)):
        gold += chunk
        predicted += tagger.predict(chunk)
        n_impossible += sum(int(words.sum()) for words in tagger.find_impossible(chunk))
    names = TagColumns.parse(tagger.tag).names
    return evaluate_tags(gold, predicted, names, tagger.known_forms_, n_impossible)
