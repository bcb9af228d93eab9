"""`python -m benchmarks.skip_chains`: names in sentences and articles whose equal words are linked.

A skip chain has a factor between equal capitalised words, so that a name that is clear in one place helps in another (Sutton
and McCallum 2004). Qian et al. (2009) name loopy belief propagation and Gibbs sampling as the usual approximations for such
models, and exact inference with sparse higher-order features as their rival. Here, on CoNLL-2002, with the same features of
words, the same penalty and the same weights of links for all:

    chain         CRF: no links
    patterns      CRF(Patterns(…)): a link is a pattern "both words have this type" with a gap; exact; within sentences
    skip chain    GraphCRF, with links within sentences or within articles; learned by likelihood (exact), belief
                  propagation or pseudo-likelihood; asked exactly, by max-product messages or by Gibbs sampling

A word is linked with its last occurrence. The Dutch files mark articles; in the Spanish ones every sentence stands alone.
Exact inference takes graphs that need at most `MEMORY` bytes; of wider articles it has the links within sentences alone. The
table says how many articles of the training and of the development data have all their links.

The penalty of all models is the best of the chain on testa; testb is asked with `--test`. `--articles N` trains on the first
articles (Dutch) or on 30 times as many sentences (Spanish), `--articles 0` on all. Seconds are those of the processor, one
thread. Rows can be measured by processes of their own:

    python -m benchmarks.skip_chains --language dutch --articles 0 --rows articles --objective likelihood
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from benchmarks.corpora import corpus_path
from benchmarks.tasks import shape
from crfkit import CRF, LBFGS, Chain, FactorGraph, GraphCRF, Patterns, inference
from crfkit.data import read_columns
from crfkit.evaluation import span_report
from crfkit.features import GraphInput
from crfkit.models import UnsavableModel

LANGUAGES = {"dutch": "ned", "spanish": "esp"}
BOUNDARY = "-DOCSTART-"
SENTENCES_OF_ARTICLE = 30
PENALTIES = (0.1, 0.3, 1.0)
OPTIMIZER = LBFGS(max_iterations=100)
MEMORY = 1 << 26  # bytes of exact inference on one graph
MOST_OPEN = 3  # links of a sentence over one position: each of them multiplies the states of patterns
GIBBS: dict[str, Any] = {"n": 400, "burn_in": 50, "n_chains": 4, "random_state": 0}
OBJECTIVES = ("likelihood", "belief_propagation", "pseudo_likelihood")
ROWS = ("chains", "sentences", "articles")
METHODS = ("exact", "belief_propagation", "gibbs")
N_LABELS = 9
QUICK = 5  # articles with which the development data are cut short too

Place = tuple[int, int]  # sentence, position
Link = tuple[Place, Place]
Labels = list[list[str]]
form = lru_cache(maxsize=None)(shape)


class Article(NamedTuple):
    """Sentences that belong together, and which of their words are linked."""

    words: list[list[str]]
    labels: Labels
    features: list[list[list[str]]]
    links: tuple[Link, ...] = ()


Corpus = list[Article]


def word_features(words: Sequence[str]) -> list[list[str]]:
    """What is seen at each position: the word, its form and affixes, and its neighbours."""
    T, small, forms = len(words), [word.lower() for word in words], list(map(form, words))

    def at(column: Sequence[str], i: int) -> str:
        return column[i] if 0 <= i < T else "_"

    found = []
    for i, word in enumerate(words):
        features = [f"w={word}", f"l={small[i]}", f"s={forms[i]}"]
        features += [f"w{k}={at(words, i + k)}" for k in (-2, -1, 1, 2)]
        features += [f"s{k}={at(forms, i + k)}" for k in (-1, 1)]
        for n in (2, 3, 4):
            features += [f"p{n}={word[:n]}", f"u{n}={small[i][-n:]}"]
        features += [f"ww={at(words, i - 1)}|{word}", f"ls={at(small, i - 1)}|{forms[i]}"]
        features += [f"sl={forms[i]}|{at(small, i + 1)}"]
        features += [f"sss={at(forms, i - 1)}|{forms[i]}|{at(forms, i + 1)}"]
        found.append(features)
    return found


def read(language: str, split: str, limit: int | None = None) -> Corpus:
    """The articles of a file, without links; in Spanish each sentence is one."""
    found = []
    for rows in islice(articles(language, split), limit):
        words = [[row[0] for row in sentence] for sentence in rows]
        labels = [[row[-1] for row in sentence] for sentence in rows]
        found.append(Article(words, labels, [word_features(sentence) for sentence in words]))
    return found


def articles(language: str, split: str) -> Iterator[list[list[tuple[str, ...]]]]:
    """The rows of the sentences of each article."""
    path = corpus_path("conll2002", f"{LANGUAGES[language]}.{split}")
    article: list[list[tuple[str, ...]]] = []
    for sequence in read_columns(path, comment=None):
        rows = list(sequence.rows)
        if article and (language == "spanish" or rows[0][0] == BOUNDARY):
            yield article
            article = []
        rows = rows[1:] if rows[0][0] == BOUNDARY else rows
        if rows:
            article.append(rows)
    if article:
        yield article


def find_links(sentences: Sequence[Sequence[str]]) -> list[Link]:
    """Each capitalised word with its last occurrence, unless that is the word before."""
    last: dict[str, Place] = {}
    links = []
    for s, words in enumerate(sentences):
        for i, word in enumerate(words):
            if word[0].isupper() and len(word) > 1:
                if word in last and last[word] != (s, i - 1):
                    links.append((last[word], (s, i)))
                last[word] = s, i
    return links


def sentence_links(words: Sequence[str]) -> list[Link]:
    """Those of a sentence, without any that would lie over a position with `MOST_OPEN` others."""
    n_open, kept = np.zeros(len(words), dtype=int), []
    for (_, i), (_, j) in find_links([words]):
        if n_open[i:j].max() < MOST_OPEN:
            n_open[i:j] += 1
            kept.append(((0, i), (0, j)))
    return kept


def into_sentences(corpus: Corpus) -> Corpus:
    """Each sentence by itself, with its links."""
    return [
        Article([words], [labels], [features], tuple(sentence_links(words)))
        for article in corpus
        for words, labels, features in zip(article.words, article.labels, article.features, strict=True)
    ]


def link_articles(corpus: Corpus) -> Corpus:
    """With links between all sentences of an article."""
    return [article._replace(links=tuple(find_links(article.words))) for article in corpus]


def narrow(corpus: Corpus) -> tuple[Corpus, float]:
    """Wide articles with links within sentences alone; the share of articles that keep all of theirs."""
    found = []
    for article in corpus:
        if article.links and inference.plan(shape_of(article)).memory > MEMORY:
            within = [
                ((s, i), (s, j))
                for s, words in enumerate(article.words)
                for (_, i), (_, j) in sentence_links(words)
            ]
            found.append(article._replace(links=tuple(within)))
        else:
            found.append(article)
    same = [one.links == other.links for one, other in zip(corpus, found, strict=True)]
    return found, sum(same) / len(same)


def shape_of(article: Article) -> FactorGraph:
    """The graph of an article without scores."""
    numbers: dict[Place, int] = {}
    pairs = []
    for s, words in enumerate(article.words):
        for i in range(len(words)):
            numbers[s, i] = len(numbers)
            if i > 0:
                pairs.append((numbers[s, i - 1], numbers[s, i]))
    pairs += [(numbers[a], numbers[b]) for a, b in article.links]
    return FactorGraph.from_arrays(
        [N_LABELS] * len(numbers), pairs, [np.zeros((N_LABELS, N_LABELS))] * len(pairs)
    )


def type_of(label: Any) -> str:
    """PER of B-PER and I-PER."""
    return str(label)[2:] or "O"


def same_type(labels: tuple[Any, ...]) -> str | None:
    """The key of a link's weight: the type that both words have."""
    first, second = map(type_of, labels)
    return first if first == second else None


def skip_chain(article: Article, graph: GraphInput) -> None:
    """The chain of each sentence, and the links."""
    for s, features in enumerate(article.features):
        for i, names in enumerate(features):
            graph.variable((s, i))
            graph.factor("word", [(s, i)], names)
            if i > 0:
                graph.factor("transition", [(s, i - 1), (s, i)])
        graph.factor("start", [(s, 0)])
        graph.factor("end", [(s, len(features) - 1)])
    for places in article.links:
        graph.factor("link", places, tie=same_type)


class LinkPatterns:
    """The links of a sentence as patterns over its labels."""

    def __init__(self, labels: Iterable[str]) -> None:
        self.types: dict[str, set[str]] = {}
        for label in sorted(labels):
            self.types.setdefault(type_of(label), set()).add(label)

    def __call__(self, x: Sequence[Sequence[str]]) -> Iterator[tuple[int, list[Any], str]]:
        """(first position, labels of each position, weight); the first feature of a position is its word."""
        for (_, i), (_, j) in sentence_links([features[0].removeprefix("w=") for features in x]):
            for name, labels in self.types.items():
                yield i, [labels, *[None] * (j - i - 1), labels], f"link {name}"


class Trained(NamedTuple):
    """A model, and what its training took."""

    model: Any
    seconds: float
    per_pass: float
    passes: float


def train(fit: Callable[..., Any]) -> Trained:
    """Train with a clock; `fit` takes a callback."""
    clock: list[tuple[float, float]] = []
    begin = time.process_time()
    model = fit(callback=lambda progress: clock.append((time.process_time(), progress.passes)))
    seconds = time.process_time() - begin
    (first, before), (last, after) = clock[0], clock[-1]
    return Trained(model, seconds, (last - first) / max(after - before, 1), after)


def train_chain(corpus: Corpus, l2: float, *, patterns: bool = False) -> Trained:
    """A chain, with the links of sentences as patterns if they are asked for."""
    X = [x for article in corpus for x in article.features]
    y = [labels for article in corpus for labels in article.labels]
    structure = Patterns([LinkPatterns({label for labels in y for label in labels})], max_states=1 << 16)
    model = CRF(structure if patterns else Chain(), optimizer=OPTIMIZER, l2=l2, n_threads=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnsavableModel)  # the patterns know the labels, which no file holds
        return train(lambda callback: model.fit(X, y, callback=callback))


def train_graph(corpus: Corpus, l2: float, objective: str) -> Trained:
    """A skip chain with the links of the corpus."""
    model = GraphCRF(skip_chain, objective, optimizer=OPTIMIZER, l2=l2, n_threads=1)
    y = [[label for labels in article.labels for label in labels] for article in corpus]
    return train(lambda callback: model.fit(corpus, y, callback=callback))


def decode_chain(model: CRF, corpus: Corpus) -> Labels:
    """The labels of each sentence."""
    return model.predict([x for article in corpus for x in article.features])


def decode_graph(model: GraphCRF, corpus: Corpus, method: str) -> Labels:
    """The labels of each sentence: "exact", "belief_propagation" (max-product), or "gibbs" (the likeliest of each word)."""
    if method == "gibbs":
        found = [
            [graph.variables[v].labels[int(p.argmax())] for v, p in enumerate(probabilities.values())]
            for graph in map(model.graph, corpus)
            for probabilities in [inference.gibbs(graph, **GIBBS).marginals]
        ]
    else:
        model.set_params(inference=method)
        found = [list(labels.values()) for labels in model.predict(corpus)]
    sentences: Labels = []
    for article, labels in zip(corpus, found, strict=True):
        remaining = iter(labels)
        sentences += [[str(label) for label in islice(remaining, len(words))] for words in article.words]
    return sentences


class Score(NamedTuple):
    """Of predicted labels."""

    f1: float
    linked: float  # the share of words with links that are right


def evaluate(corpus: Corpus, predicted: Labels) -> Score:
    """Names, and the words that links between sentences of an article could help."""
    gold = [labels for article in corpus for labels in article.labels]
    right, first = [], 0
    for article in corpus:
        places = {place for link in find_links(article.words) for place in link}
        right += [gold[first + s][i] == predicted[first + s][i] for s, i in places]
        first += len(article.words)
    return Score(span_report(gold, predicted, "BIO").overall.f1, float(np.mean(right)))


class Experiment:
    """One language: its files, the penalty, and the table."""

    def __init__(self, language: str, n_articles: int, *, test: bool) -> None:
        of_one = SENTENCES_OF_ARTICLE if language == "spanish" else 1
        self.train = read(language, "train", n_articles * of_one or None)
        self.dev = read(language, "testa", QUICK * of_one if 0 < n_articles <= QUICK else None)
        self.test = read(language, "testb") if test else None
        self.has_articles = any(len(article.words) > 1 for article in self.train)
        chains = {l2: train_chain(self.train, l2) for l2 in PENALTIES}
        self.l2 = max(
            PENALTIES, key=lambda l2: evaluate(self.dev, decode_chain(chains[l2].model, self.dev)).f1
        )
        self.chain = chains[self.l2]
        words = sum(len(words) for article in self.train for words in article.words)
        n_links = len([1 for article in link_articles(self.train) for _ in article.links])
        print(f"{language}: {len(self.train)} articles, {words:,} words, {n_links:,} links; l2 = {self.l2}")
        print(f"{'model':44} {'F1':>6} {'linked':>7} {'s/pass':>7} {'passes':>6} {'CPU s':>6}", flush=True)

    def row(self, name: str, trained: Trained, decode: Callable[[Corpus], Labels]) -> None:
        """Ask a model, and print what it did."""
        found = [evaluate(data, decode(data)) for data in (self.dev, self.test) if data is not None]
        line = f"{name:44} {found[0].f1:6.2%} {found[0].linked:7.2%} {trained.per_pass:7.3f} "
        line += f"{trained.passes:6.0f} {trained.seconds:6.0f}"
        for test in found[1:]:
            line += f"   testb {test.f1:.2%} {test.linked:.2%}"
        print(line, flush=True)

    def chains(self) -> None:
        """The chain, and the links of sentences as patterns."""
        self.row("chain", self.chain, lambda data: decode_chain(self.chain.model, data))
        patterns = train_chain(self.train, self.l2, patterns=True)
        self.row("patterns, sentences", patterns, lambda data: decode_chain(patterns.model, data))

    def graphs(self, scope: str, objectives: Iterable[str]) -> None:
        """Skip chains with links within a scope, learned in these ways and asked in every way."""
        link = into_sentences if scope == "sentences" else link_articles
        linked = link(self.train)
        narrowed, share = narrow(linked)
        of_dev = narrow(link(self.dev))[1]
        print(f"  {scope}: exact with all links: {share:.1%} of training graphs, {of_dev:.1%} of testa's")
        for objective in objectives:
            trained = train_graph(narrowed if objective == "likelihood" else linked, self.l2, objective)
            for method in METHODS:

                def decode(data: Corpus, trained: Trained = trained, method: str = method) -> Labels:
                    asked = link(data)
                    return decode_graph(
                        trained.model, narrow(asked)[0] if method == "exact" else asked, method
                    )

                self.row(f"{scope}: {objective}, {method}", trained, decode)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a table for each language."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.skip_chains", description="skip chains")
    parser.add_argument(
        "--language", action="append", choices=list(LANGUAGES), help="only this one (may be repeated)"
    )
    parser.add_argument(
        "--articles", type=int, default=100, help="of the training data (default 100; 0 for all)"
    )
    parser.add_argument(
        "--rows", action="append", choices=ROWS, help="only the chains, or the graphs with these links"
    )
    parser.add_argument("--objective", action="append", choices=OBJECTIVES, help="of graphs; only this one")
    parser.add_argument("--test", action="store_true", help="ask testb too")
    given = parser.parse_args(arguments)
    for language in given.language or LANGUAGES:
        experiment = Experiment(language, given.articles, test=given.test)
        for row in given.rows or ROWS:
            if row == "chains":
                experiment.chains()
            elif row == "sentences" or experiment.has_articles:
                experiment.graphs(row, given.objective or OBJECTIVES)


if __name__ == "__main__":
    main()
