"""What `crfkit demo` shows: a tagger, names with constraints and a parser from bundled data, in under a minute."""

import os
import shlex
from pathlib import Path
from typing import NamedTuple

from crfkit import __version__
from crfkit.cli.demonstration import parts, timing
from crfkit.cli.demonstration.sample import Labelled, draw_names, read_sample, read_tags
from crfkit.cli.demonstration.screen import PALE, Screen
from crfkit.cli.streams import make_folder
from crfkit.data import Sentence, write_conllu
from crfkit.errors import InputError

__all__ = ["Screen", "Shown", "Sizes", "demo", "draw_names", "read_sample"]

SOURCE = "UD English EWT (CC BY-SA 4.0), github.com/UniversalDependencies/UD_English-EWT"


class Sizes(NamedTuple):
    """How much is trained."""

    n_trees: int | None = None  # for the parser; None: all
    n_passes: int = 3  # of the parser
    n_iterations: int = 30  # beside python-crfsuite


class Shown(NamedTuple):
    """What was shown."""

    wrong_tags: int  # in the sentence that is shown
    wrong_arcs: int
    names: list[list[str]]  # the two best answers
    fixed: list[str]  # with a label that the user fixed
    timings: tuple[timing.Timing, timing.Timing] | None
    commands: list[str]  # to go on with


def demo(folder: Path, screen: Screen, sizes: Sizes | None = None, program: str = "crfkit") -> Shown:
    """Train, show, and write data and models to a folder, for the commands that are printed at the end."""
    sizes = sizes or Sizes()
    make_folder(folder)
    treebank, test = read_sample("train"), read_sample("test")
    [(number, gold)] = [
        (n, sentence)
        for n, sentence in enumerate(test, 1)
        if parts.SENTENCE.split() == [word.form for word in sentence.words]
    ]
    screen.say(
        (f"crfkit {__version__}", "bold"),
        ": all that follows is trained now, here, on data that comes with it:",
    )
    screen.say(f"{SOURCE}, and made-up sentences with names.")

    screen.heading("Tags: gold beside predicted")
    words = read_tags(treebank)
    tagger = parts.train_tagger(screen, words, read_tags(test))
    screen.say(f"Sentence {number} of these others:")
    wrong_tags = parts.show_tags(screen, tagger, gold)

    screen.heading("Names: only valid ones, the n best, and what you know")
    names_train, names_test = draw_names("train"), draw_names("test")
    namer = parts.train_names(screen, names_train, names_test)
    names, fixed = parts.show_names(screen, namer)

    screen.heading("A dependency tree")
    parser = parts.train_parser(screen, treebank[: sizes.n_trees], test, sizes.n_passes)
    screen.say("The same sentence; only its words were given:")
    parsed = parts.parse_new(parser, tagger, gold)
    wrong_arcs = parts.show_tree(screen, parsed, gold)

    screen.heading("Speed")
    timings = timing.compare(screen, tagger, words, sizes.n_iterations)

    for name, model in (("tagger", tagger), ("names", namer), ("parser", parser)):
        model.save(folder / f"{name}.crf")
    write_data(folder, words=read_tags(test), names_train=names_train, names_test=names_test, test=test)
    screen.heading(f"Go on with the files in {folder}{os.sep}")
    commands = commands_for(folder, program)
    for text, line in commands:
        screen.say((f"# {text}", PALE))
        screen.code(line)
    return Shown(wrong_tags, wrong_arcs, names, fixed, timings, [line for _, line in commands])


def write_data(
    folder: Path, *, words: Labelled, names_train: Labelled, names_test: Labelled, test: list[Sentence]
) -> None:
    """The files that the commands read."""
    fixed = [
        "\t".join((word, *parts.FIXED) if word == "City" else (word, "*"))
        for word in parts.WITH_NAMES.split()
    ]
    texts = {
        "tags-test.txt": words.columns(),
        "names-train.txt": names_train.columns(),
        "names-test.txt": names_test.columns(),
        "names-fixed.txt": "\n".join(fixed) + "\n",
        "new.txt": "\n".join(parts.SENTENCE.split()) + "\n",
    }
    try:
        for name, text in texts.items():
            (folder / name).write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(f"{error.filename}: cannot be written ({error.strerror or error})") from None
    write_conllu(test, folder / "test.conllu")


def commands_for(folder: Path, program: str) -> list[tuple[str, str]]:
    """What each command does, and the command."""

    def at(name: str) -> str:
        return shlex.quote(str(folder / name))

    return [
        (
            "tags with probabilities; edit new.txt, one word a line",
            f"{program} tag {at('tagger.crf')} {at('new.txt')} --marginals",
        ),
        ("accuracy and confusions", f"{program} eval {at('tagger.crf')} {at('tags-test.txt')}"),
        ("what the model has learnt", f"{program} inspect {at('names.crf')} --top 3"),
        (
            "names where the second column fixes a label",
            f"{program} tag {at('names.crf')} {at('names-fixed.txt')} --allowed-column 1",
        ),
        (
            "your own model: the same form, a word and its label a line",
            f"{program} train {at('names-train.txt')} --dev {at('names-test.txt')} --features names --bigrams bio "
            f"--model {at('mine.crf')}",
        ),
        (
            "trees with probabilities, and a picture of each",
            f"{program} parse {at('parser.crf')} {at('test.conllu')} --probabilities --output {at('parsed.conllu')} "
            f"--svg {at('pictures')}",
        ),
    ]
