"""UDPipe 1 (package ufal.udpipe): tokenizer, tagger and parser, trained one by one and joined to one model.

The options are those with which its authors trained their models of UD 2.0 for these languages, as published in UDPipe's
repository, but for the number of passes: 8 iterations of the parser in place of 30, and 20 epochs of the tokenizer in place
of 100, which would take hours. The vectors of words are learned from the training file, as they did, with gensim's
word2vec in place of the original program; without gensim the parser starts from random ones.
"""

from __future__ import annotations

import json
import time
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import Any

from benchmarks.memory import peak_mb, restart_peak_mb
from crfkit.data import read_conllu, read_text

PARTS = ("tokenizer", "tagger", "parser")

_PARSER = (
    "iterations=8;embedding_upostag=20;embedding_feats=20;embedding_xpostag=0;embedding_form=50;embedding_lemma=0;"
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
    "en": "dimension=64;epochs=20;initialization_range=0.1;batch_size=100;learning_rate=0.005;dropout=0.1;early_stopping=1",
}
TAGGER_OPTIONS = {
    "en": "models=2;"
    "templates_1=tagger;guesser_suffix_rules_1=12;guesser_enrich_dictionary_1=6;guesser_prefixes_max_1=0;use_lemma_1=1;"
    "use_xpostag_1=1;use_feats_1=1;provide_lemma_1=0;provide_xpostag_1=1;provide_feats_1=1;prune_features_1=0;"
    "templates_2=lemmatizer;guesser_suffix_rules_2=6;guesser_enrich_dictionary_2=6;guesser_prefixes_max_2=4;use_lemma_2=1;"
    "use_xpostag_2=0;use_feats_2=0;provide_lemma_2=1;provide_xpostag_2=0;provide_feats_2=0;prune_features_2=0",
}


def options_of(language: str, part: str) -> str:
    """The options of the trainer of a part, for a language."""
    return {"tokenizer": TOKENIZER_OPTIONS, "tagger": TAGGER_OPTIONS, "parser": PARSER_OPTIONS}[part][
        language
    ]


def train(training: Path, model: Path, limit: int | None, language: str = "en") -> float:
    """Train the parser on a CoNLL-U file and write the model; CPU seconds."""
    return train_part("parser", options_of(language, "parser"), training, None, model, limit)


def train_part(
    part: str, options: str, training: Path, heldout: Path | None, model: Path, limit: int | None = None
) -> float:
    """Train one of the `PARTS` and write a model of it alone; CPU seconds.

    The heldout file chooses the pass whose weights are kept.
    """
    from ufal.udpipe import ProcessingError, Sentences, Trainer

    sentences, error = _sentences(training, limit), ProcessingError()
    kept = Sentences() if heldout is None else _sentences(heldout, limit)
    start = time.process_time()
    if part == "parser" and find_spec("gensim") is not None:
        vectors = model.with_suffix(".vectors")
        learn_vectors(training, vectors, limit)
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


def train_parts(
    language: str, training: Path, heldout: Path | None, folder: Path, limit: int | None = None
) -> tuple[Path, dict[str, Any]]:
    """A model of all parts, and CPU seconds and peak memory of training; parts that the folder holds already are used."""
    figures: dict[str, Any] = {}
    for part in PARTS:
        model = folder / f"{language}_{part}.udpipe"
        if not model.exists():
            restart_peak_mb()
            seconds = train_part(part, options_of(language, part), training, heldout, model, limit)
            found = {"cpu_s": seconds, "peak_mb": peak_mb()}
            model.with_suffix(".json").write_text(json.dumps(found), encoding="utf-8")
        found = json.loads(model.with_suffix(".json").read_text(encoding="utf-8"))
        figures[part] = {name: found[name] for name in ("cpu_s", "peak_mb")}
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


def annotate(model: Path, text: str, form: str = "tokenize") -> tuple[str, float]:
    """CoNLL-U with tags, lemmas and trees, and CPU seconds; `form`: "tokenize" of raw text, "conllu" of given words."""
    from ufal.udpipe import Model, Pipeline, ProcessingError

    error = ProcessingError()
    opened = Model.load(str(model))  # the pipeline does not keep it
    pipeline = Pipeline(opened, form, Pipeline.DEFAULT, Pipeline.DEFAULT, "conllu")
    start = time.process_time()
    found: str = pipeline.process(text, error)
    seconds = time.process_time() - start
    if error.occurred():
        raise RuntimeError(f"UDPipe could not read the text: {error.message}")
    return found, seconds


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
