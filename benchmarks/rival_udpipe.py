"""UDPipe 1 (package ufal.udpipe): tokenizer, tagger and parser, trained one by one and joined to one model.

The options are those with which its authors trained their models of UD 2.0 for these languages, as published in UDPipe's
repository, but for the number of passes (`--passes`): they took 30 iterations of the parser and 100 epochs of the
tokenizer. The vectors of words are learned from the training file, as they did, with gensim's word2vec in place of the
original program, or read from a folder; without either, the parser starts from random ones.

`python -m benchmarks.rival_udpipe LANGUAGE PART --models FOLDER` trains one part and keeps it and its figures there.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import Any

from benchmarks.memory import peak_mb, restart_peak_mb
from crfkit.data import read_conllu, read_text

PARTS = ("tokenizer", "tagger", "parser")
PASSES = {"tokenizer": 20, "tagger": 20, "parser": 8}  # of the tagger: UDPipe's own default

_PARSER = (
    "iterations={{passes}};embedding_upostag=20;embedding_feats=20;embedding_xpostag=0;embedding_form=50;embedding_lemma=0;"
    "embedding_deprel=20;learning_rate_final=0.001;l2=0.5;hidden_layer=200;batch_size=10;transition_system={};"
    "transition_oracle={};structured_interval={};learning_rate={}"
)
PARSER_OPTIONS = {
    "en": _PARSER.format("projective", "dynamic", 8, 0.01),
    "de": _PARSER.format("projective", "dynamic", 10, 0.01),
    "grc": _PARSER.format("swap", "static_lazy", 8, 0.01),
    "agdt": _PARSER.format("swap", "static_lazy", 8, 0.01),
    "la": _PARSER.format("projective", "dynamic", 10, 0.01),
    "pl": _PARSER.format("projective", "dynamic", 8, 0.02),
}
TOKENIZER_OPTIONS = {
    "en": "dimension=64;epochs={passes};initialization_range=0.1;batch_size=100;learning_rate=0.005;dropout=0.1;"
    "early_stopping=1",
}
_TAGGER = (
    "models=2;templates_1=tagger;iterations_1={{passes}};guesser_suffix_rules_1={};guesser_enrich_dictionary_1=6;"
    "guesser_prefixes_max_1=0;use_lemma_1={};use_xpostag_1=1;use_feats_1=1;provide_lemma_1=0;provide_xpostag_1=1;"
    "provide_feats_1=1;prune_features_1={};templates_2=lemmatizer;iterations_2={{passes}};guesser_suffix_rules_2={};"
    "guesser_enrich_dictionary_2={};guesser_prefixes_max_2=4;use_lemma_2=1;use_xpostag_2=0;use_feats_2=0;"
    "provide_lemma_2=1;provide_xpostag_2=0;provide_feats_2=0;prune_features_2={}"
)
TAGGER_OPTIONS = {
    "en": _TAGGER.format(12, 1, 0, 6, 6, 0),
    "de": _TAGGER.format(8, 1, 1, 8, 6, 0),
    "grc": _TAGGER.format(8, 0, 1, 8, 6, 1),
    "la": _TAGGER.format(8, 1, 0, 8, 5, 0),
    "pl": _TAGGER.format(8, 0, 0, 8, 5, 1),
}


def options_of(language: str, part: str, passes: int | None = None) -> str:
    """The options of the trainer of a part, for a language."""
    options = {"tokenizer": TOKENIZER_OPTIONS, "tagger": TAGGER_OPTIONS, "parser": PARSER_OPTIONS}[part]
    return options[language].format(passes=passes or PASSES[part])


def train_part(
    part: str,
    options: str,
    training: Path,
    heldout: Path | None,
    model: Path,
    limit: int | None = None,
    vectors: Path | None = None,
) -> float:
    """Train one of the `PARTS` and write a model of it alone; CPU seconds.

    The heldout file chooses the pass whose weights are kept. The vectors of words are learned if none are given.
    """
    from ufal.udpipe import ProcessingError, Sentences, Trainer

    sentences, error = _sentences(training, limit), ProcessingError()
    kept = Sentences() if heldout is None else _sentences(heldout, limit)
    start = time.process_time()
    if part == "parser" and vectors is None and find_spec("gensim") is not None:
        vectors = model.with_suffix(".vectors")
        learn_vectors(training, vectors, limit)
    if part == "parser" and vectors is not None:
        options += f";embedding_form_file={vectors}"
    given = [options if name == part else "none" for name in PARTS]
    data = Trainer.train("morphodita_parsito", sentences, kept, *given, error)
    seconds = time.process_time() - start
    if error.occurred():
        raise RuntimeError(f"UDPipe could not be trained: {error.message}")
    model.write_bytes(data)
    return seconds


def learn_vectors(training: Path, path: Path, limit: int | None = None) -> None:
    """Skip-gram vectors of the words of a treebank, as UDPipe's authors learned theirs."""
    from gensim.models import Word2Vec

    sentences = [
        [word.form.replace(" ", "\u00a0") for word in sentence.words]
        for sentence in islice(read_conllu(training), limit)
    ]
    settings = {"vector_size": 50, "window": 10, "min_count": 2, "negative": 5, "sample": 0.1, "epochs": 15}
    learned = Word2Vec(sentences, sg=1, hs=0, workers=1, seed=1, **settings)
    learned.wv.save_word2vec_format(str(path), binary=False)


def find_part(
    language: str,
    part: str,
    training: Path,
    heldout: Path | None,
    folder: Path,
    limit: int | None = None,
    passes: int | None = None,
    vectors: Path | None = None,
) -> tuple[Path, dict[str, Any]]:
    """A model of one part, and CPU seconds, peak memory and options of training; one that the folder holds is used.

    `vectors` is a folder, in which those of a language are `LANGUAGE_parser.vectors`.
    """
    model = folder / f"{language}_{part}.udpipe"
    figures = model.with_suffix(".json")
    if not figures.exists():
        folder.mkdir(parents=True, exist_ok=True)
        restart_peak_mb()
        options = options_of(language, part, passes)
        given = None if vectors is None else vectors / f"{language}_parser.vectors"
        seconds = train_part(part, options, training, heldout, model, limit, given)
        found = {"cpu_s": seconds, "peak_mb": peak_mb(), "options": options}
        figures.write_text(json.dumps(found), encoding="utf-8")
    return model, json.loads(figures.read_text(encoding="utf-8"))


def train_parts(
    language: str, training: Path, heldout: Path | None, folder: Path, limit: int | None = None
) -> tuple[Path, dict[str, Any]]:
    """A model of all parts, and the figures of their training; parts that the folder holds already are used."""
    figures = {part: find_part(language, part, training, heldout, folder, limit)[1] for part in PARTS}
    return join_parts(language, training, folder), figures


def join_parts(language: str, training: Path, folder: Path) -> Path:
    """One model of the parts in a folder."""
    from ufal.udpipe import ProcessingError, Sentences, Trainer

    error, model = ProcessingError(), folder / f"{language}.udpipe"
    given = [f"from_model=file:{folder}/{language}_{part}.udpipe" for part in PARTS]
    data = Trainer.train("morphodita_parsito", _sentences(training, 1), Sentences(), *given, error)
    if error.occurred():
        raise RuntimeError(f"UDPipe could not join its parts: {error.message}")
    model.write_bytes(data)
    return model


def annotate(model: Path, text: str, form: str = "tokenize", *, tagged: bool = False) -> tuple[str, float]:
    """CoNLL-U with tags, lemmas and trees, and CPU seconds; `form`: "tokenize" of raw text, "conllu" of given words.

    Tags and lemmas stay as they are where the words are `tagged`.
    """
    from ufal.udpipe import Model, Pipeline, ProcessingError

    error = ProcessingError()
    opened = Model.load(str(model))  # the pipeline does not keep it
    tagger = Pipeline.NONE if tagged else Pipeline.DEFAULT
    pipeline = Pipeline(opened, form, tagger, Pipeline.DEFAULT, "conllu")
    start = time.process_time()
    found: str = pipeline.process(text, error)
    seconds = time.process_time() - start
    if error.occurred():
        raise RuntimeError(f"UDPipe could not read the text: {error.message}")
    return found, seconds


def parse(model: Path, test: Path, limit: int | None) -> tuple[list[list[tuple[int, str]]], float]:
    """(head, relation) of all words of a CoNLL-U file, and CPU seconds."""
    sentences = _sentences(test, limit)
    for i in range(sentences.size()):
        sentences[i].unlinkAllNodes()
    seconds = _apply(model, "parse", sentences)
    return [[(word.head, word.deprel) for word in words] for words in _words(sentences)], seconds


def tag(model: Path, test: Path, limit: int | None) -> tuple[list[list[dict[str, Any]]], float]:
    """Lemma and tags of all words of a CoNLL-U file, and CPU seconds."""
    sentences = _sentences(test, limit)
    for i in range(sentences.size()):
        for word in sentences[i].words:
            word.lemma = word.upostag = word.xpostag = word.feats = ""
    seconds = _apply(model, "tag", sentences)
    return [
        [
            {"lemma": word.lemma, "upos": word.upostag, "xpos": word.xpostag, "feats": word.feats or "_"}
            for word in words
        ]
        for words in _words(sentences)
    ], seconds


def _words(sentences: Any) -> list[list[Any]]:
    """The words of sentences, without their roots."""
    return [list(sentences[i].words)[1:] for i in range(sentences.size())]


def _apply(model: Path, step: str, sentences: Any) -> float:
    """Let a model `tag` or `parse` sentences in place; CPU seconds. (Iterating over them would give copies.)"""
    from ufal.udpipe import Model, ProcessingError

    opened, error = Model.load(str(model)), ProcessingError()
    start = time.process_time()
    for i in range(sentences.size()):
        if not getattr(opened, step)(sentences[i], Model.DEFAULT, error):
            raise RuntimeError(f"UDPipe could not {step}: {error.message}")
    return time.process_time() - start


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


def main(arguments: Sequence[str] | None = None) -> None:
    """Train one part on the files of `benchmarks.parsing`."""
    from benchmarks.corpora import corpus_path
    from benchmarks.parsing import CORPORA, QUICK

    options = argparse.ArgumentParser(prog="python -m benchmarks.rival_udpipe", description="train UDPipe 1")
    options.add_argument("language", choices=list(CORPORA))
    options.add_argument("part", choices=PARTS)
    options.add_argument("--models", type=Path, metavar="FOLDER", required=True, help="where models are kept")
    options.add_argument("--passes", type=int, help="iterations or epochs (default: see PASSES)")
    options.add_argument("--vectors", type=Path, metavar="FOLDER", help="with LANGUAGE_parser.vectors")
    options.add_argument("--quick", action="store_true", help="a smoke test on a few sentences")
    given = options.parse_args(arguments)
    corpus = CORPORA[given.language]
    training = corpus_path(corpus.folder, corpus.train)
    heldout = None if corpus.dev is None else corpus_path(corpus.folder, corpus.dev)
    limit = QUICK if given.quick else None
    _, figures = find_part(
        given.language, given.part, training, heldout, given.models, limit, given.passes, given.vectors
    )
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
