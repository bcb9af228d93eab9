"""Labels of unknown words by words with the same stem, against a plain search over all pairs of words."""

from __future__ import annotations

import pickle
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from crfkit import CRF, LBFGS, TagDictionary, load
from crfkit.errors import ArgumentError
from crfkit.features import RelatedForms, encode_pairs
from tests.cli.commands import complaint, run

STEMS = ["serv", "domin", "amic", "fili", "puell", "ros", "port", "am"]
ENDINGS = {"us": "n", "um": "a", "i": "g", "o": "d", "a": "fn", "am": "fa", "ae": "fg", "": "x", "avit": "v"}


def corpus(seed: int) -> tuple[list[list[str]], list[list[str]]]:
    r = random.Random(seed)
    X, y = [], []
    for _ in range(12):
        pairs = [(r.choice(STEMS), r.choice([*ENDINGS])) for _ in range(r.randint(1, 5))]
        X.append([(stem + end).title() if r.random() < 0.2 else stem + end for stem, end in pairs])
        y.append([ENDINGS[end] if r.random() < 0.8 else r.choice("nag") for _, end in pairs])
    return X, y


def by_the_rules(X: list[list[str]], y: list[list[str]], word: str, least: int) -> set[str]:
    """The labels of related forms: for each stem of the word, exchanges are counted anew over all pairs of words."""
    labels: dict[str, set[str]] = {}
    for words, own in zip(X, y, strict=True):
        for one, label in zip(words, own, strict=True):
            labels.setdefault(one.lower(), set()).add(label)

    def shows(stem: str, old: str, a: str, new: str, b: str) -> bool:
        return a in labels.get(stem + old, ()) and b in labels.get(stem + new, ())

    stems = {one[:k] for one in labels for k in range(3, len(one) + 1)}
    every = {label for own in labels.values() for label in own}
    for k in range(len(word) - 1, 2, -1):
        if len(word) - k > 4:
            break
        found = set()
        for one, seen in labels.items():
            old, new = one[k:], word[k:]
            if not one.startswith(word[:k]) or len(old) > 4:
                continue
            for a in seen:
                for b in every:
                    if old != new and sum(shows(stem, old, a, new, b) for stem in stems) >= least:
                        found.add(b)
        if found:
            return found
    return set()


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("least", [1, 2, 3])
def test_labels_are_those_of_exchanges(seed: int, least: int) -> None:
    X, y = corpus(seed)
    dictionary = TagDictionary.from_data(X, y, related=least, ending_count=3)
    plain = TagDictionary.from_data(X, y, ending_count=3)
    n_related = 0
    for word in [stem + end for stem in [*STEMS, "nov"] for end in ENDINGS]:
        expected: set[Any] = set() if word in dictionary else {*by_the_rules(X, y, word, least)}
        n_related += bool(expected)
        assert set(dictionary.allowed_labels(word)) == (expected or set(plain.allowed_labels(word))), word
    assert n_related or least == 3
    new = [[stem + end for stem in STEMS for end in ENDINGS]]
    allowed = dictionary.allowed(new)
    for i, word in enumerate(new[0]):
        ids = allowed.labels[allowed.position_ptr[i] : allowed.position_ptr[i + 1]]
        assert [dictionary.classes[b] for b in ids] == sorted(map(str, dictionary.allowed_labels(word)))


def test_models_and_files(tmp_path: Path) -> None:
    X, y = corpus(1)
    new = [[stem + end for end in ENDINGS] for stem in STEMS]
    settings: dict[str, Any] = {
        "features": "morphology",
        "optimizer": LBFGS(max_iterations=15),
        "facets": False,
    }
    crf = CRF(**settings, tag_dictionary="related").fit(X, y)
    given = CRF(**settings, tag_dictionary=TagDictionary.from_data(X, y, related=2)).fit(X, y)
    plain = CRF(**settings, tag_dictionary=True).fit(X, y)
    assert crf.weights_.tolist() == given.weights_.tolist() == plain.weights_.tolist()  # all words are known
    assert crf.predict(new) == given.predict(new) != plain.predict(new)
    for name, model in (("a", crf), ("b", given)):
        model.save(tmp_path / name)
        for again in (load(tmp_path / name), pickle.loads(pickle.dumps(model))):
            assert again.predict(new) == crf.predict(new)
            assert again.predict_marginals(new)[0].tolist() == crf.predict_marginals(new)[0].tolist()
    assert load(tmp_path / "a").tag_dictionary == "related"
    pairs = zip(X, y, strict=True)
    stored = encode_pairs(pairs, tmp_path / "stored", features="morphology", min_count=1)
    assert CRF(**settings, tag_dictionary="related").fit(stored).predict(new) == crf.predict(new)
    with pytest.raises(
        ArgumentError, match="tag_dictionary is 'forms', expected True, 'related', None, False or"
    ):
        CRF(tag_dictionary="forms").fit(X, y)
    with pytest.raises(ArgumentError, match="related is -1, expected a whole number of at least 0"):
        TagDictionary.from_data(X, y, related=-1)


def test_other_labels_and_joined_dictionaries() -> None:
    X, y = corpus(2)
    dictionary = TagDictionary.from_data(X, y, related=1)
    fewer = dictionary.bind_labels(["v", "n", "a", "new"])
    words = [stem + end for stem in STEMS for end in ENDINGS if stem + end not in dictionary]
    n_compared = 0
    for word in words:
        left = {"v", "n", "a"} & set(dictionary.allowed_labels(word))
        assert dictionary.related is not None
        if left and dictionary.related.candidates(word):
            n_compared += 1
            assert left & set(fewer.allowed_labels(word)) or set(fewer.allowed_labels(word)) == set(
                fewer.classes
            )
    assert n_compared
    other = TagDictionary.from_lexicon({"flos": ["n"]})
    for joined in (dictionary.join(other), other.join(dictionary)):
        assert all(
            set(joined.allowed_labels(word)) == set(dictionary.allowed_labels(word))
            for word in words
            if dictionary.related is not None and dictionary.related.candidates(word)
        )
        assert joined.allowed_labels("flos") == ("n",)


def test_damaged_tables_are_refused() -> None:
    X, y = corpus(3)
    related = TagDictionary.from_data(X, y, related=1).related
    assert related is not None
    good = vars(related)
    for name, value in (
        ("word_ptr", related.word_ptr[:-1]),
        ("rule_labels", related.rule_labels[:-1]),
        ("rules", related.rules[:, :2]),
        ("rules", related.rules - 1000),
        ("endings", related.endings[:1]),
    ):
        fields = {key: good[key] for key in RelatedForms.__dataclass_fields__}
        with pytest.raises(ArgumentError, match="related forms"):
            RelatedForms(**{**fields, name: value})
    empty = RelatedForms.learn([], np.zeros(0, np.int64), np.zeros(0, np.int64), 1)
    assert empty.candidates("servus") == ()


def test_rules_lead_to_endings_that_unknown_words_have() -> None:
    """Those of at least one character: none leads from stem-s to stem."""
    ids = np.arange(2)
    found = RelatedForms.learn(["stem", "stems"], ids, ids, 1)
    rules = [(found.endings[e], label, found.endings[f]) for e, label, f in found.rules.tolist()]
    assert rules == [("", 0, "s"), ("m", 0, "ms"), ("ms", 1, "m")]


def test_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    X, y = corpus(4)
    lines = ["".join(f"{a}\t{b}\n" for a, b in zip(*both, strict=True)) for both in zip(X, y, strict=True)]
    Path("train.txt").write_text("\n".join(lines), encoding="utf-8")
    run("train", "train.txt", "--features", "morphology", "--related-forms", "--model", "m.crf", "--quiet")
    assert load("m.crf").tag_dictionary == "related"
    run("train", "train.txt", "--features", "morphology", "--model", "m.crf", "--quiet")
    assert load("m.crf").tag_dictionary == "related"
    run("train", "train.txt", "--features", "pos", "--tag-dictionary", "--model", "m.crf", "--quiet")
    assert load("m.crf").tag_dictionary is True
    run(
        "train", "train.txt", "--features", "morphology", "--no-tag-dictionary", "--model", "m.crf", "--quiet"
    )
    assert load("m.crf").tag_dictionary is False
    given = ["train", "train.txt", "--model", "m.crf", "--related-forms", "--no-tag-dictionary"]
    assert "expected one of them" in complaint(*given)
