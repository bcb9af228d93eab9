"""UDPipe 1 (package ufal.udpipe): its parser alone, trained and asked with gold tokens, tags and features."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from crfkit.data import read_text

# Projective transitions, static oracle, 8 iterations, 200 hidden units, the rest as the program itself chooses.
OPTIONS = "iterations=8;hidden_layer=200;transition_system=projective;transition_oracle=static"


def train(training: Path, model: Path, limit: int | None) -> float:
    """Train on a CoNLL-U file and write the model; CPU seconds."""
    from ufal.udpipe import ProcessingError, Sentences, Trainer

    sentences, error = _sentences(training, limit), ProcessingError()
    start = time.process_time()
    data = Trainer.train("morphodita_parsito", sentences, Sentences(), "none", "none", OPTIONS, error)
    seconds = time.process_time() - start
    if error.occurred():
        raise RuntimeError(f"UDPipe could not be trained: {error.message}")
    model.write_bytes(data)
    return seconds


def parse(model: Path, test: Path, limit: int | None) -> tuple[list[list[tuple[int, str]]], float]:
    """(head, relation) of all words of a CoNLL-U file, and CPU seconds."""
    from ufal.udpipe import Model, ProcessingError

    opened, sentences, error = Model.load(str(model)), _sentences(test, limit), ProcessingError()
    for i in range(sentences.size()):
        sentences[i].unlinkAllNodes()
    start = time.process_time()
    for i in range(sentences.size()):
        if not opened.parse(sentences[i], Model.DEFAULT, error):
            raise RuntimeError(f"UDPipe could not parse: {error.message}")
    seconds = time.process_time() - start
    found = [
        [(word.head, word.deprel) for word in list(sentences[i].words)[1:]] for i in range(sentences.size())
    ]
    return found, seconds


def version() -> str:
    """Of UDPipe."""
    from ufal.udpipe import Version

    now = Version.current()
    return f"UDPipe {now.major}.{now.minor}.{now.patch}"


def _sentences(path: Path, limit: int | None) -> Any:
    """The sentences of a CoNLL-U file as UDPipe holds them."""
    from ufal.udpipe import InputFormat, ProcessingError, Sentence, Sentences

    reader, error = InputFormat.newConlluInputFormat(), ProcessingError()
    reader.setText(read_text(path))
    sentences, sentence = Sentences(), Sentence()
    while (limit is None or sentences.size() < limit) and reader.nextSentence(sentence, error):
        sentences.push_back(sentence)
        sentence = Sentence()
    if error.occurred():
        raise RuntimeError(f"UDPipe could not read {path}: {error.message}")
    return sentences
