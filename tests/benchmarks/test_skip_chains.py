"""The benchmark of skip chains: its links, and that patterns and graphs are the same model."""

from __future__ import annotations

import pytest
from benchmarks.skip_chains import (
    Article,
    evaluate,
    find_links,
    into_sentences,
    link_articles,
    sentence_links,
)

from benchmarks import skip_chains
from crfkit import LBFGS

TEXTS = [
    ["Mr/O Green/B-PER met/O Green/B-PER in/O Rome/B-LOC", "Rome/B-LOC likes/O Green/B-PER"],
    ["the/O Green/B-ORG of/I-ORG Rome/I-ORG", "Green/B-ORG left/O Rome/B-LOC ,/O Green/B-ORG said/O"],
]


def corpus() -> list[Article]:
    found = []
    for text in TEXTS:
        rows = [[pair.split("/") for pair in sentence.split()] for sentence in text]
        words = [[word for word, _ in row] for row in rows]
        labels = [[label for _, label in row] for row in rows]
        found.append(Article(words, labels, [skip_chains.word_features(sentence) for sentence in words]))
    return found


def test_words_are_linked_with_their_last_occurrence() -> None:
    first = corpus()[0]
    assert find_links(first.words) == [((0, 1), (0, 3)), ((0, 5), (1, 0)), ((0, 3), (1, 2))]
    assert find_links([["Green", "Green", "green"]]) == []
    assert [article.links for article in into_sentences([first])] == [(((0, 1), (0, 3)),), ()]


def test_few_links_lie_over_a_position() -> None:
    assert len(find_links([list(map(str.title, ["ab", "bc", "cd", "de", "ef"] * 2))])) == 5
    assert len(sentence_links(list(map(str.title, ["ab", "bc", "cd", "de", "ef"] * 2)))) == 3


def test_wide_articles_keep_the_links_of_sentences(monkeypatch: pytest.MonkeyPatch) -> None:
    linked = link_articles(corpus())
    assert skip_chains.narrow(linked) == (linked, 1.0)
    monkeypatch.setattr(skip_chains, "MEMORY", 1)
    narrowed, share = skip_chains.narrow(linked)
    assert share == 0
    assert narrowed[0].links == (((0, 1), (0, 3)),)


def test_patterns_and_graphs_are_the_same_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(skip_chains, "OPTIMIZER", LBFGS(tolerance=1e-9, max_iterations=500))
    sentences = into_sentences(corpus())
    patterns = skip_chains.train_chain(sentences, 0.3, patterns=True).model
    graph = skip_chains.train_graph(sentences, 0.3, "likelihood").model
    assert graph.history_[-1].objective == pytest.approx(patterns.history_[-1].objective, rel=1e-7)
    chain = skip_chains.train_chain(sentences, 0.3).model
    assert chain.history_[-1].objective > patterns.history_[-1].objective + 1e-3


def test_rows_of_the_table_are_chosen(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    limits: list[int | None] = []

    def read(language: str, split: str, limit: int | None = None) -> list[Article]:
        limits.append(limit)
        return corpus()

    monkeypatch.setattr(skip_chains, "read", read)
    skip_chains.main(["--language", "dutch", "--articles", "0", "--rows", "chains"])
    assert limits == [None, None]
    assert "patterns" in capsys.readouterr().out
    skip_chains.main(
        ["--language", "dutch", "--articles", "1", "--rows", "articles", "--objective", "likelihood"]
    )
    assert limits[2:] == [1, skip_chains.QUICK]
    rows = [line for line in capsys.readouterr().out.splitlines() if line.startswith("articles:")]
    assert [row.split(": ")[1].split("  ")[0] for row in rows] == [
        f"likelihood, {method}" for method in skip_chains.METHODS
    ]


@pytest.mark.parametrize("objective", skip_chains.OBJECTIVES)
def test_every_way_to_learn_and_to_ask(objective: str) -> None:
    data = corpus()
    linked = link_articles(data)
    trained = skip_chains.train_graph(linked, 0.01, objective)
    assert trained.passes > 1
    for method in skip_chains.METHODS:
        assert evaluate(data, skip_chains.decode_graph(trained.model, linked, method)) == (1.0, 1.0)
