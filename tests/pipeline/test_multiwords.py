"""The words of multiword tokens: those seen, those like them, and their capitals."""

from __future__ import annotations

import pytest

from crfkit.pipeline.multiwords import MultiwordSplitter, Rule

SEEN = [
    ("don't", ["do", "n't"]),
    ("Don't", ["Do", "n't"]),
    ("can't", ["ca", "n't"]),
    ("John's", ["John", "'s"]),
    ("im", ["in", "dem"]),
    ("zum", ["zu", "dem"]),
    ("wakatab", ["wa", "katab"]),
    ("dámelo", ["da", "me", "lo"]),
]
SPLITTER = MultiwordSplitter.learn(SEEN)


@pytest.mark.parametrize(("token", "words"), [(token, tuple(words)) for token, words in SEEN])
def test_what_was_seen_comes_back(token: str, words: tuple[str, ...]) -> None:
    assert SPLITTER.split(token) == words
    for rule in Rule.each(token.lower(), tuple(word.lower() for word in words)):
        assert rule.apply(token) == words


@pytest.mark.parametrize(
    ("token", "words"),
    [
        ("didn't", ("did", "n't")),
        ("DON'T", ("DO", "N'T")),
        ("DIDN'T", ("DID", "N'T")),
        ("Mary's", ("Mary", "'s")),
        ("Zum", ("Zu", "dem")),
        ("ZUM", ("ZU", "DEM")),
        ("Im", ("In", "dem")),
        ("wakatib", ("wa", "katib")),
        ("llámelo", None),
        ("x", None),
    ],
)
def test_tokens_that_are_like_those_seen(token: str, words: tuple[str, ...] | None) -> None:
    found = SPLITTER.split(token)
    assert found == words or (words is None and (found is None or all(found)))


def test_the_most_frequent_words_of_a_token_win() -> None:
    pairs = [("its", ["it", "s"])] * 2 + [("its", ["it", "'s"])]
    assert MultiwordSplitter.learn(pairs).split("its") == ("it", "s")


def test_no_rule_gives_an_empty_word() -> None:
    for token in ("n't", "'s", "m", "s", "", "wa", "İm"):
        found = SPLITTER.split(token)
        assert found is None or all(found)
