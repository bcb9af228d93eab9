"""Features of chunks beyond the preset `chunks`: a wider window, and the tags of a second tagger.

The parts of speech of CoNLL-2000 are those of the Brill tagger, and many wrong chunks follow a wrong tag. A second opinion
helps: a tagger that is trained on another corpus, UD English EWT, whose tags were checked by hand. Its tags are column 2.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice

from benchmarks.corpora import corpus_path
from benchmarks.orders import Sentences
from crfkit import CRF, LBFGS
from crfkit.data import read_conllu
from crfkit.features import PRESETS, Resource

TREEBANK = ("ud_english_ewt", "en_ewt-ud-train.conllu")
ITERATIONS = 120  # of the second tagger

_MACROS = {"lower": "%lower[{},0]", "pos": "%x[{},1]", "tag": "%x[{},2]"}
_WINDOW = """
lower[-2]|lower[-1] lower[1]|lower[2] lower[-1]|lower|lower[1] lower|pos
pos[-3] pos[3] pos[-3]|pos[-2]|pos[-1] pos[1]|pos[2]|pos[3]
pos[-2]|pos[-1]|pos|pos[1] pos[-1]|pos|pos[1]|pos[2] pos[-2]|pos[-1]|pos|pos[1]|pos[2]
pos[-1]|lower|pos[1] lower[-1]|pos|pos[1] pos[-1]|pos|lower[1] lower|pos[1]|pos[2] pos[-2]|pos[-1]|lower
"""
_TAGS = """
tag[-2] tag[-1] tag tag[1] tag[2] tag[-2]|tag[-1] tag[-1]|tag tag|tag[1] tag[1]|tag[2] tag[-1]|tag[1]
tag[-2]|tag[-1]|tag tag[-1]|tag|tag[1] tag|tag[1]|tag[2]
pos[-1]|tag[-1] pos|tag pos[1]|tag[1] pos|tag|pos[1]|tag[1] pos[-1]|tag[-1]|pos|tag
lower|tag tag[-1]|lower lower|tag[1] lower[-1]|tag tag|lower[1]
"""
_SPELLING = """\
suffix1=%lower_suffix[0,0,1]
prefix3=%lower_prefix[0,0,3]
suffix3[-1]=%lower_suffix[-1,0,3]
suffix3[1]=%lower_suffix[1,0,3]
"""


def _line(name: str) -> str:
    """The line of a template for a name such as lower[-1]|pos."""
    parts = (part.rstrip("]").partition("[") for part in name.split("|"))
    return f"{name}={'|'.join(_MACROS[kind].format(row or 0) for kind, _, row in parts)}\n"


def _lines(names: str) -> str:
    return "".join(_line(name) for name in names.split())


WIDE = PRESETS["chunks"] + _lines(_WINDOW) + _SPELLING
TAGGED = WIDE + _lines(_TAGS)


def second_tagger(limit: int | None = None, resources: Mapping[str, Resource] | None = None) -> CRF:
    """A tagger trained on the first sentences of the treebank, words only, with word clusters if there are."""
    trees = list(islice(read_conllu(corpus_path(*TREEBANK)), limit))
    words = [[word.form for word in tree.words] for tree in trees]
    tags = [[word.xpos for word in tree.words] for tree in trees]
    optimizer = LBFGS(max_iterations=ITERATIONS)
    return CRF(features="pos", optimizer=optimizer, n_threads=1, resources=resources).fit(words, tags)


def with_tags(tagger: CRF, X: Sentences) -> Sentences:
    """Sentences with a further column, the tags of a tagger."""
    tags = tagger.predict([[row[0] for row in x] for x in X])
    return [
        [(*row, tag) for row, tag in zip(x, found, strict=True)] for x, found in zip(X, tags, strict=True)
    ]
