"""The bundled data of the demonstration: a sample of a treebank, and made-up sentences with names."""

import tomllib
from importlib.resources import as_file, files
from random import Random
from typing import Any, NamedTuple

from crfkit.data import Sentence, read_conllu

DATA = files("crfkit.cli") / "demo_data"
SEED = 0
WITH_SURNAME = 0.6  # share of the persons that have one
OF_TWO_WORDS = 0.25  # share of the places that have two words or more


class Labelled(NamedTuple):
    """Sentences with a label for each word."""

    words: list[list[str]]
    labels: list[list[str]]

    @property
    def n_words(self) -> int:
        """Number of words of all sentences."""
        return sum(map(len, self.words))

    def columns(self) -> str:
        """The text of a column file: a word and its label in each line, a blank line after each sentence."""
        pairs = (zip(*sentence, strict=True) for sentence in zip(self.words, self.labels, strict=True))
        return "".join("".join(f"{word}\t{label}\n" for word, label in sentence) + "\n" for sentence in pairs)


def read_sample(part: str) -> list[Sentence]:
    """The `train` or `test` part of the treebank: words with universal parts of speech, heads and relations."""
    with as_file(DATA / f"{part}.conllu.xz") as path:
        return list(read_conllu(path))


def read_tags(sentences: list[Sentence]) -> Labelled:
    """The words and parts of speech of a treebank."""
    return Labelled(
        [[word.form for word in sentence.words] for sentence in sentences],
        [[word.upos for word in sentence.words] for sentence in sentences],
    )


def draw_names(part: str) -> Labelled:
    """The `train` or `test` part of the made-up sentences with names, labelled as BIO; always the same ones."""
    lists = tomllib.loads((DATA / "names.toml").read_text(encoding="utf-8"))[part]
    random = Random(f"{part} {SEED}")
    drawn = Labelled([], [])
    for _ in range(lists["n_sentences"]):
        words: list[str] = []
        labels: list[str] = []
        for token in random.choice(lists["patterns"]).split():
            kind = token.strip("{}").upper() if token.startswith("{") else None
            name = [token] if kind is None else _name(kind, lists, random)
            words += name
            labels += ["O"] if kind is None else [f"B-{kind}"] + [f"I-{kind}"] * (len(name) - 1)
        drawn.words.append(words)
        drawn.labels.append(labels)
    return drawn


def _name(kind: str, lists: dict[str, Any], random: Random) -> list[str]:
    """The words of a person's, a place's or an organisation's name."""
    if kind == "PER":
        first = [random.choice(lists["first_names"])]
        return first + ([random.choice(lists["surnames"])] if random.random() < WITH_SURNAME else [])
    if kind == "LOC":
        several = random.random() < OF_TWO_WORDS
        return str(random.choice(lists["two_word_towns" if several else "towns"])).split()
    town, surname = random.choice(lists["towns"]), random.choice(lists["surnames"])
    return str(random.choice(lists["organisations"])).format(town=town, surname=surname).split()
