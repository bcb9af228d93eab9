"""Small models to serve, trained once."""

from __future__ import annotations

from functools import cache
from typing import Any

from crfkit import CRF, Parser, Pipeline, TreebankTagger, WordSegmenter
from crfkit.cli.demonstration.sample import draw_names, read_sample
from tests.models.small_corpus import corpus
from tests.models.test_word_segmenter import dictionary, sentences
from tests.pipeline.small_treebank import make_treebank

TEXT = "Anna Smith moved from Oslo to New York. Her brother Peter met her there.\nHe likes Rome!"


@cache
def names() -> CRF[Any]:
    """Names in words, as BIO labels."""
    drawn = draw_names("train")
    return CRF(features="names", l2=0.1).fit(drawn.words[:400], drawn.labels[:400])


@cache
def columns() -> CRF[Any]:
    """Chunks in rows of two columns."""
    X = [[("the", "DT"), ("cat", "NN"), ("sees", "VBZ")], [("dogs", "NNS"), ("run", "VBP")]]
    return CRF(features="chunks", l2=0.1).fit(X, [["B-NP", "I-NP", "B-VP"], ["B-NP", "B-VP"]])


@cache
def attributes() -> CRF[Any]:
    """Labels of positions that are lists of features."""
    return CRF(l2=0.1).fit(*corpus())


@cache
def tagger() -> TreebankTagger:
    """Universal parts of speech."""
    return TreebankTagger("upos").fit(read_sample("train")[:100])


@cache
def parser() -> Parser:
    """Trees."""
    return Parser(l2=1.0).fit(make_treebank(60))


@cache
def pipeline() -> Pipeline:
    """Raw text to trees."""
    return Pipeline(folds=2).fit(make_treebank(60))


@cache
def segmenter() -> WordSegmenter:
    """Words in text without spaces."""
    return WordSegmenter(dictionary()).fit(sentences())


def everything() -> dict[str, Any]:
    """One model of each kind, by name; the first is the default."""
    return {
        "names": names(),
        "columns": columns(),
        "attributes": attributes(),
        "tagger": tagger(),
        "parser": parser(),
        "pipeline": pipeline(),
        "segmenter": segmenter(),
    }
