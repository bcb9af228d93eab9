"""The CoNLL-2018 evaluation: recorded figures of the shared task's script, an oracle by definition, and bad input."""

from __future__ import annotations

import io
import json
import random
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import pytest

from crfkit.data import EmptyNode, Multiword, Sentence, Word, read_conllu, write_conllu
from crfkit.errors import FileFormatError, InputError, ShapeError, TreeError
from crfkit.evaluation import (
    CONTENT_RELATIONS,
    FUNCTIONAL_RELATIONS,
    TREEBANK_METRICS,
    UNIVERSAL_FEATURES,
    AlignedCounts,
    Counts,
    evaluate_treebank,
    evaluate_trees,
)
from crfkit.evaluation.alignment import TokenSpans, align_words

# Random analyses of made-up texts: tokens merged and cut, words of ranges that differ, spaces inside forms, empty nodes,
# other tags, heads and lemmas; precision, recall, F1 and aligned accuracy as the script of the shared task gave them.
CASES = json.loads((Path(__file__).parent / "conll18_cases.json").read_text(encoding="utf-8"))


def read(text: str) -> list[Sentence]:
    return list(read_conllu(io.StringIO(text)))


@pytest.mark.parametrize("case", CASES)
def test_figures_of_the_shared_task(case: dict[str, object]) -> None:
    report = evaluate_treebank(read(case["gold"]), read(case["system"]))  # type: ignore[arg-type]
    expected = case["figures"]
    assert isinstance(expected, dict)
    assert list(report.counts) == list(expected) == list(TREEBANK_METRICS)
    for name, (precision, recall, f1, aligned) in expected.items():
        found = report[name]
        assert (found.precision, found.recall, found.f1) == pytest.approx((precision, recall, f1), rel=1e-14)
        assert isinstance(found, AlignedCounts) == (aligned is not None)
        if isinstance(found, AlignedCounts):
            assert found.aligned_accuracy == pytest.approx(aligned, rel=1e-14)


# --- by definition -------------------------------------------------------------------------------------------------------

LETTERS = "".join(
    chr(c) for c in range(0x4E00, 0x4E00 + 60)
)  # all different: only the same characters look alike
RELATIONS = ["nsubj", "nsubj:pass", "obj", "case", "det", "aux:pass", "punct", "conj", "made-up"]


def random_tree(chance: random.Random, n: int) -> list[int]:
    order = chance.sample(range(1, n + 1), n)
    heads = {order[0]: 0} | {order[i]: chance.choice(order[:i]) for i in range(1, n)}
    return [heads[i] for i in range(1, n + 1)]


def random_treebank(chance: random.Random, text: str, share: float) -> list[Sentence]:
    """An analysis of a text; ranges have parts of their token as words, in any order, or words from nowhere."""
    ends = sorted({i for i in range(1, len(text)) if chance.random() < 0.5} | {len(text)})
    sentences: list[Sentence] = []
    words: list[Word] = []
    multiwords: list[Multiword] = []
    empty: list[EmptyNode] = []
    begin = 0
    for end in ends:
        form = text[begin:end]
        forms = [form]
        if chance.random() < share:
            forms = [chance.choice([*form, f"not {form[0]}", form]) for _ in range(chance.randint(2, 4))]
            multiwords.append(Multiword(len(words) + 1, len(words) + len(forms), form, "_"))
        words += (
            Word(f, chance.choice("ab_"), chance.choice("NV"), chance.choice("xy"), chance.choice(FEATS))
            for f in forms
        )
        if chance.random() < 0.1:
            empty.append(EmptyNode(len(words), 1, "e", "_", "_", "_", "_", "_", "_"))
        if chance.random() < 0.25 or end == len(text):
            heads = random_tree(chance, len(words))
            words = [
                w._replace(head=h, deprel=chance.choice(RELATIONS)) for w, h in zip(words, heads, strict=True)
            ]
            sentences.append(Sentence(words, multiwords, empty))
            words, multiwords, empty = [], [], []
        begin = end
    return sentences


FEATS = ["_", "Case=Nom|Number=Sing", "Number=Sing|Case=Nom", "Number=Sing|Typo=Yes", "Number=Sing"]


def spans_by_definition(sentences: list[Sentence]) -> list[tuple[int, int, bool, str]]:
    """First character, character after the last, whether the token is a range, and form in lower case, of all words."""
    found, end = [], 0
    for sentence in sentences:
        inside = {i: m for m in sentence.multiwords for i in range(m.first, m.last + 1)}
        for i, word in enumerate(sentence.words, 1):
            token = inside[i].form if i in inside else word.form
            if i not in inside or i == inside[i].first:
                begin, end = end, end + len(token)
            found.append((begin, end, i in inside, word.form.lower()))
    return found


def regions_by_definition(spans: list[tuple[int, int, bool, str]]) -> list[tuple[int, int]]:
    """Unions of ranges that overlap."""
    regions: list[tuple[int, int]] = []
    for begin, end in sorted({(b, e) for b, e, is_range, _ in spans if is_range}):
        if regions and begin < regions[-1][1]:
            regions[-1] = (regions[-1][0], max(end, regions[-1][1]))
        else:
            regions.append((begin, end))
    return regions


def longest_common(a: list[str], b: list[str]) -> int:
    """Length of the longest common subsequence, of all subsequences."""
    for size in range(min(len(a), len(b)), 0, -1):
        if {tuple(c) for c in combinations(a, size)} & {tuple(c) for c in combinations(b, size)}:
            return size
    return 0


@pytest.mark.parametrize("seed", range(60))
def test_alignment_by_definition(seed: int) -> None:
    chance = random.Random(seed)
    text = LETTERS[: chance.randint(1, 16)]
    share = chance.choice([0.0, 0.2, 0.5])
    gold, system = random_treebank(chance, text, share), random_treebank(chance, text, share)
    aligned = align_words(TokenSpans.of(gold), TokenSpans.of(system))
    right, found = spans_by_definition(gold), spans_by_definition(system)
    regions = regions_by_definition(right + found)
    pairs = [(g, s) for s, g in enumerate(aligned) if g is not None]
    assert pairs == sorted(pairs)
    assert len({g for g, _ in pairs}) == len(pairs)

    def inside(word: tuple[int, int, bool, str]) -> tuple[int, int] | None:
        return next((r for r in regions if r[0] <= word[0] and word[1] <= r[1]), None)

    for g, s in pairs:  # within one region, or outside of all with the same characters
        assert right[g][3] == found[s][3]
        assert inside(right[g]) == inside(found[s])
        assert inside(right[g]) or right[g] == found[s]
    for region in [None, *regions]:
        a, b = ([w for w in words if inside(w) == region] for words in (right, found))
        n = sum(inside(right[g]) == region for g, _ in pairs)
        if region is None:
            assert n == len({w[:2] for w in a} & {w[:2] for w in b})
        else:
            assert n == longest_common([w[3] for w in a], [w[3] for w in b])


def figures_by_definition(
    gold: list[Sentence], system: list[Sentence], aligned: list[int | None]
) -> dict[str, tuple[int, int, int]]:
    """Correct, of the system and of gold: sizes of sets of tuples. A word of the system has the name of its gold word."""

    def facts(sentences: list[Sentence], names: list[object]) -> dict[str, set[tuple[object, ...]]]:
        found: dict[str, set[tuple[object, ...]]] = {name: set() for name in TREEBANK_METRICS[2:]}
        begin = 0
        for sentence in sentences:
            own = ["root", *names[begin : begin + len(sentence.words)]]
            begin += len(sentence.words)

            def tags(word: Word) -> tuple[object, ...]:
                feats = frozenset(f for f in word.feats.split("|") if f.split("=")[0] in UNIVERSAL_FEATURES)
                return word.upos, word.xpos, feats

            for i, word in enumerate(sentence.words, 1):
                relation = word.deprel.split(":")[0]
                arc = (own[i], own[word.head or 0], relation)
                children = frozenset(
                    (own[j], child.deprel.split(":")[0], tags(child)[0], tags(child)[2])
                    for j, child in enumerate(sentence.words, 1)
                    if child.head == i and child.deprel.split(":")[0] in FUNCTIONAL_RELATIONS
                )
                lemma = "_" if own[i] in any_lemma else word.lemma
                found["Words"].add((own[i],))
                found["UPOS"].add((own[i], word.upos))
                found["XPOS"].add((own[i], word.xpos))
                found["UFeats"].add((own[i], tags(word)[2]))
                found["AllTags"].add((own[i], *tags(word)))
                found["Lemmas"].add((own[i], lemma))
                found["UAS"].add(arc[:2])
                found["LAS"].add(arc)
                if relation in CONTENT_RELATIONS:
                    found["CLAS"].add(arc)
                    found["MLAS"].add((*arc, tags(word)[0], tags(word)[2], children))
                    found["BLEX"].add((*arc, lemma))
        return found

    all_gold = [word for sentence in gold for word in sentence.words]
    any_lemma = {i for i, word in enumerate(all_gold) if word.lemma == "_"}
    right = facts(gold, list(range(len(all_gold))))
    found = facts(system, [f"new {s}" if g is None else g for s, g in enumerate(aligned)])
    return {name: (len(right[name] & found[name]), len(found[name]), len(right[name])) for name in right}


def check_figures(seed: int) -> None:
    chance = random.Random(seed)
    text = LETTERS[: chance.randint(1, 60)]
    gold = random_treebank(chance, text, 0.2)
    system = random_treebank(chance, text, 0.2)
    if chance.random() < 0.7:  # the same words, changed here and there
        system = [
            replace(
                s,
                words=[
                    w
                    if chance.random() < 0.8
                    else w._replace(upos="V", deprel="det", feats="_", lemma=chance.choice("ab"))
                    for w in s.words
                ],
            )
            for s in gold
        ]
    report = evaluate_treebank(gold, system)
    aligned = align_words(TokenSpans.of(gold), TokenSpans.of(system))
    for name, sizes in figures_by_definition(gold, system, aligned).items():
        found = report[name]
        assert (found.correct, found.predicted, found.gold) == sizes, name
    assert all(
        counts.f1 == 1.0 or counts.gold == 0 for counts in evaluate_treebank(gold, gold).counts.values()
    )
    turned = evaluate_treebank(system, gold)
    for name in (
        "Tokens",
        "Sentences",
        "Words",
    ):  # not others: the order decides between alignments of one length
        one, other = report[name], turned[name]
        assert (other.precision, other.recall) == (one.recall, one.precision)


@pytest.mark.parametrize("seed", range(40))
def test_figures_by_definition(seed: int) -> None:
    check_figures(seed)


@pytest.mark.slow
def test_many_figures_by_definition() -> None:
    for seed in range(1000, 4000):
        check_figures(seed)


def test_given_words_have_the_figures_of_trees() -> None:
    chance = random.Random(5)
    gold = random_treebank(chance, LETTERS, 0.2)
    system = [
        replace(
            s,
            words=[
                w._replace(head=h) for w, h in zip(s.words, random_tree(chance, len(s.words)), strict=True)
            ],
        )
        for s in gold
    ]
    report, trees = evaluate_treebank(gold, system), evaluate_trees(gold, system)
    for name in ("UAS", "LAS", "CLAS", "MLAS", "BLEX"):
        assert report[name].f1 == getattr(trees, name.lower())


# --- files, texts, bad input ---------------------------------------------------------------------------------------------

GOLD = [
    Sentence(
        [
            Word("Vámonos", "ir", "VERB", "_", "Mood=Imp", 0, "root"),
            Word("a", "a", "ADP", "_", "_", 4, "case"),
            Word("el", "el", "DET", "_", "Gender=Masc", 4, "det"),
            Word("mar", "mar", "NOUN", "_", "Gender=Masc", 1, "obl"),
            Word("!", "!", "PUNCT", "_", "_", 1, "punct"),
        ],
        [Multiword(2, 3, "al", "_")],
    ),
    Sentence([Word("Sí", "sí", "INTJ", "_", "_", 0, "root")]),
]
SYSTEM = [
    Sentence(
        [
            Word("Vámonos", "vamonos", "VERB", "_", "Mood=Imp", 0, "root"),
            Word("al", "al", "ADP", "_", "_", 3, "case"),
            Word("mar", "mar", "NOUN", "_", "Gender=Masc", 1, "obl"),
            Word("!Sí", "!", "PUNCT", "_", "_", 1, "punct"),
        ]
    )
]


def test_the_table() -> None:
    # characters: Vámonos al mar ! Sí; tokens 5 and 4, 3 of them shared; words 6 and 4: Vámonos and mar are aligned
    report = evaluate_treebank(GOLD, SYSTEM)
    assert report["Tokens"] == Counts(3, 4, 5)
    assert report["Sentences"] == Counts(0, 1, 2)
    assert report["Words"] == Counts(2, 4, 6)
    assert report["UAS"] == AlignedCounts(2, 4, 6, 2)
    assert report["CLAS"] == AlignedCounts(2, 2, 3, 2)
    assert report["MLAS"] == AlignedCounts(1, 2, 3, 2)  # mar has two function words in gold
    assert str(report).splitlines() == [
        "Metric     | Precision |    Recall |  F1 Score | AligndAcc",
        "-----------+-----------+-----------+-----------+-----------",
        "Tokens     |     75.00 |     60.00 |     66.67 |",
        "Sentences  |      0.00 |      0.00 |      0.00 |",
        "Words      |     50.00 |     33.33 |     40.00 |",
        "UPOS       |     50.00 |     33.33 |     40.00 |    100.00",
        "XPOS       |     50.00 |     33.33 |     40.00 |    100.00",
        "UFeats     |     50.00 |     33.33 |     40.00 |    100.00",
        "AllTags    |     50.00 |     33.33 |     40.00 |    100.00",
        "Lemmas     |     25.00 |     16.67 |     20.00 |     50.00",
        "UAS        |     50.00 |     33.33 |     40.00 |    100.00",
        "LAS        |     50.00 |     33.33 |     40.00 |    100.00",
        "CLAS       |    100.00 |     66.67 |     80.00 |    100.00",
        "MLAS       |     50.00 |     33.33 |     40.00 |     50.00",
        "BLEX       |     50.00 |     33.33 |     40.00 |     50.00",
    ]


def test_a_word_that_reaches_beyond_a_range_is_not_aligned() -> None:
    begin, end = Word("a", head=0, deprel="root"), Word("d", head=1, deprel="obj")
    parts = [Word("bcd", head=1, deprel="obj"), Word("q", head=1, deprel="obj")]
    gold = [Sentence([begin, *parts, end], [Multiword(2, 3, "bc", "_")])]
    for system in ([begin, parts[0]], [begin._replace(form="abc"), end]):
        assert evaluate_treebank(gold, [Sentence(system)])["Words"].correct == 1


def test_function_words_must_be_the_same_words() -> None:
    tag = {"upos": "DET", "head": 3}
    det, dep = Word("so", deprel="det", **tag), Word("so", deprel="dep", **tag)  # type: ignore[arg-type]
    dog = Word("dog", head=0, deprel="root")
    report = evaluate_treebank([Sentence([det, dep, dog])], [Sentence([dep, det, dog])])
    assert report["CLAS"] == AlignedCounts(1, 2, 2, 2)
    assert report["MLAS"] == AlignedCounts(0, 2, 2, 2)


def test_files(tmp_path: Path) -> None:
    write_conllu(GOLD, tmp_path / "gold.conllu.xz")
    write_conllu(SYSTEM, tmp_path / "system.conllu")
    report = evaluate_treebank(tmp_path / "gold.conllu.xz", str(tmp_path / "system.conllu"))
    assert report == evaluate_treebank(GOLD, SYSTEM) == evaluate_treebank(iter(GOLD), iter(SYSTEM))


def test_tags_without_trees() -> None:
    tagged = [replace(s, words=[w._replace(head=None, deprel="_") for w in s.words]) for s in GOLD]
    report = evaluate_treebank(GOLD, tagged)
    assert report["UPOS"].f1 == 1.0
    assert list(report.counts) == list(TREEBANK_METRICS[:8])
    assert str(report).splitlines()[-1] == (
        "no heads in the system's treebank: UAS, LAS, CLAS, MLAS, BLEX are left out"
    )
    with pytest.raises(InputError, match="'LAS', expected one of Tokens, Sentences, Words, UPOS"):
        report["LAS"]


def with_word(number: int, **columns: object) -> list[Sentence]:
    """The gold treebank with another word in its first sentence."""
    words = list(GOLD[0].words)
    words[number - 1] = words[number - 1]._replace(**columns)  # type: ignore[arg-type]
    return [replace(GOLD[0], words=words, source="system.conllu"), GOLD[1]]


@pytest.mark.parametrize(
    ("system", "kind", "message"),
    [
        (with_word(1, head=4), TreeError, "system.conllu:1: the heads form a cycle, 1 'Vámonos' → 4 'mar'"),
        (
            with_word(5, head=0),
            TreeError,
            "system.conllu:6: there are 2 roots (1 'Vámonos', 5 '!'), expected one",
        ),
        (with_word(5, head=None), TreeError, "system.conllu:6: 5 '!' has no HEAD"),
        (with_word(5, head=9), TreeError, "system.conllu:6: the HEAD is 9, but the sentence has 5 words"),
        (with_word(5, form=" "), FileFormatError, "system.conllu:6: the FORM is empty"),
        (
            with_word(4, form="maR"),
            ShapeError,
            "<stream>:5: the texts differ after 'Vámonosalma': gold has 'r!Sí', the system (system.conllu:5) 'R!Sí';",
        ),
        (
            GOLD[:1],
            ShapeError,
            "<stream>:1: the texts differ after 'Vámonosalmar!': gold has 'Sí', the system (<stream>:6) no more text;",
        ),
        (
            [],
            ShapeError,
            "<stream>:1: the texts differ at the beginning: gold has 'Vámonosalmar!Sí', the system",
        ),
        ("abc", InputError, "abc"),
        ([["dogs", "bark"]], InputError, "expected a path or a list of crfkit.data.Sentence, found a list"),
    ],
)
def test_bad_input(system: object, kind: type[InputError], message: str) -> None:
    with pytest.raises(kind) as caught:
        evaluate_treebank(GOLD, system)  # type: ignore[arg-type]
    assert str(caught.value).startswith(message)


def test_nothing_at_all() -> None:
    assert all(
        counts == Counts(0, 0, 0) or counts.f1 == 0.0 for counts in evaluate_treebank([], []).counts.values()
    )


def test_spaces_do_not_count() -> None:
    spaced = [
        Sentence([Word("10 000", head=0, deprel="root")]),
        Sentence([Word("à\u00a0la", head=0, deprel="root")]),
    ]
    joined = [
        Sentence([Word("10000", head=0, deprel="root")]),
        Sentence([Word("àla", head=0, deprel="root")]),
    ]
    report = evaluate_treebank(spaced, joined)
    assert all(counts.f1 == 1.0 for counts in report.counts.values())
