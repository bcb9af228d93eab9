"""UAS, LAS, CLAS, MLAS and BLEX: figures worked out by hand, and the definitions word by word."""

from __future__ import annotations

import io
import random

import pytest

from crfkit.data import InputError, Sentence, read_conllu
from crfkit.errors import ShapeError
from crfkit.evaluation import CONTENT_RELATIONS, FUNCTIONAL_RELATIONS, Counts, TreeReport, evaluate_trees

# ID FORM LEMMA UPOS FEATS HEAD DEPREL; the second and third line of figures are what the prediction has instead
GOLD = """\
1 The the DET Definite=Def 2 det
2 dogs dog NOUN Number=Plur 4 nsubj:pass
3 were be AUX Number=Plur 4 aux:pass
4 seen see VERB Tense=Past|Typo=Yes 0 root
5 in in ADP _ 6 case
6 parks park NOUN Number=Plur 4 obl
7 . . PUNCT _ 4 punct

1 Stop stop VERB Mood=Imp 0 root
2 ! ! PUNCT _ 1 punct
"""
PREDICTED = """\
1 The the DET Definite=Def 2 det
2 dogs dog NOUN Number=Plur 4 nsubj
3 were be AUX Number=Plur 4 aux
4 seen see VERB Tense=Past 0 root
5 in in ADP _ 6 case
6 parks parks NOUN Number=Plur 2 nmod
7 . . PUNCT _ 6 punct

1 Stop stopp VERB Mood=Imp 0 root
2 ! ! PUNCT _ 1 punct
"""


def read(text: str) -> list[Sentence]:
    """Sentences of lines with seven of the columns."""
    rows = []
    for line in text.splitlines():
        if line:
            number, form, lemma, upos, feats, head, deprel = line.split()
            line = "\t".join([number, form, lemma, upos, "_", feats, head, deprel, "_", "_"])
        rows.append(line)
    return list(read_conllu(io.StringIO("\n".join(rows))))


def test_figures_by_hand() -> None:
    report = evaluate_trees(read(GOLD), read(PREDICTED))
    assert (report.n_sentences, report.n_words, report.n_trees) == (2, 9, 1)
    # heads: 6 and 7 of the first sentence are wrong
    assert report.uas == pytest.approx(7 / 9, rel=1e-15)
    # relations: 6 alone is wrong (subtypes are dropped); 7 has the right relation and the wrong head
    assert report.label_accuracy == pytest.approx(8 / 9, rel=1e-15)
    assert report.las == pytest.approx(7 / 9, rel=1e-15)
    # content words of gold: dogs, seen, parks, Stop; of the prediction the same (nmod is one as well); right: all but parks
    assert report.content == Counts(3, 4, 4)
    assert report.clas == pytest.approx(6 / 8, rel=1e-15)
    # tag and universal features are right (Typo is none of them), function words as well: The of dogs, were of seen
    assert report.content_morphology == Counts(3, 4, 4)
    # the lemma of Stop is wrong
    assert report.content_lemmas == Counts(2, 4, 4)
    assert report.relations["nmod"] == Counts(0, 1, 0)
    assert report.relations["punct"] == Counts(1, 2, 2)
    assert next(iter(report.relations)) == "punct"


def test_content_words_differ_between_gold_and_prediction() -> None:
    report = evaluate_trees(read(GOLD), read(GOLD.replace("4 obl", "4 case").replace("1 punct", "1 dep")))
    assert report.content == Counts(3, 4, 4)  # parks is none for the prediction, "!" is one
    report = evaluate_trees(read(GOLD), read(GOLD.replace("4 obl", "4 case")))
    assert report.content == Counts(3, 3, 4)
    assert report.clas == pytest.approx(6 / 7, rel=1e-15)
    assert (report.content.precision, report.content.recall) == (1.0, 0.75)


@pytest.mark.parametrize(
    ("before", "after", "n_morphology", "n_lemmas"),
    [
        ("2 dogs dog NOUN Number=Plur", "2 dogs dog NOUN Number=Sing", 3, 4),
        ("2 dogs dog NOUN Number=Plur", "2 dogs dog PROPN Number=Plur", 3, 4),
        ("2 dogs dog NOUN Number=Plur", "2 dogs dog NOUN Foo=Bar|Number=Plur", 4, 4),
        ("1 The the DET Definite=Def", "1 The the DET Definite=Ind", 3, 4),  # function word of dogs
        (
            "1 The the DET Definite=Def 2",
            "1 The the DET Definite=Def 6",
            2,
            4,
        ),  # dogs loses it, parks gets it
        ("5 in in ADP _ 6 case", "5 in in ADP _ 6 mark", 3, 4),
        ("6 parks park", "6 parks parks", 4, 3),
        ("7 . . PUNCT", "7 . dot X", 4, 4),
    ],
)
def test_morphology_and_lemmas(before: str, after: str, n_morphology: int, n_lemmas: int) -> None:
    assert before in GOLD
    report = evaluate_trees(read(GOLD), read(GOLD.replace(before, after)))
    assert report.content == Counts(4, 4, 4)
    assert report.content_morphology == Counts(n_morphology, 4, 4)
    assert report.content_lemmas == Counts(n_lemmas, 4, 4)


def test_a_gold_lemma_that_is_not_given_is_always_right() -> None:
    gold = GOLD.replace("6 parks park", "6 parks _")
    assert evaluate_trees(read(gold), read(GOLD)).content_lemmas.correct == 4
    assert evaluate_trees(read(GOLD), read(gold)).content_lemmas.correct == 3


def by_definition(gold: list[Sentence], predicted: list[Sentence]) -> dict[str, float]:
    """Sets of (sentence, word, head, relation), as the definitions read."""

    def arcs(
        sentences: list[Sentence], kept: frozenset[str] | None = None
    ) -> set[tuple[int, int, int | None, str]]:
        return {
            (n, i, word.head, word.deprel.split(":")[0])
            for n, sentence in enumerate(sentences)
            for i, word in enumerate(sentence.words)
            if kept is None or word.deprel.split(":")[0] in kept
        }

    def f1(a: set[tuple[int, ...]], b: set[tuple[int, ...]]) -> float:
        return 2 * len(a & b) / (len(a) + len(b)) if a or b else 0.0

    g, p = arcs(gold), arcs(predicted)
    return {
        "uas": f1({arc[:3] for arc in g}, {arc[:3] for arc in p}),  # type: ignore[misc]
        "las": f1(g, p),  # type: ignore[arg-type]
        "clas": f1(arcs(gold, CONTENT_RELATIONS), arcs(predicted, CONTENT_RELATIONS)),  # type: ignore[arg-type]
        "label_accuracy": f1({arc[:2] + arc[3:] for arc in g}, {arc[:2] + arc[3:] for arc in p}),  # type: ignore[misc]
    }


@pytest.mark.parametrize("seed", range(20))
def test_random_heads_and_relations(seed: int) -> None:
    chance = random.Random(seed)
    names = ["det", "nsubj", "nsubj:pass", "punct", "case", "obl", "made-up"]
    lengths = [chance.randint(1, 8) for _ in range(chance.randint(1, 5))]

    def text() -> str:
        return "\n\n".join(
            "\n".join(
                f"{i} w{i} w X _ {chance.randint(0, n)} {chance.choice(names)}" for i in range(1, n + 1)
            )
            for n in lengths
        )

    gold, predicted = read(text()), read(text())
    report = evaluate_trees(gold, predicted)
    for name, figure in by_definition(gold, predicted).items():
        assert getattr(report, name) == pytest.approx(figure, rel=1e-12), name


def test_relations_are_content_function_or_punctuation() -> None:
    assert len(CONTENT_RELATIONS) == 29
    assert len(FUNCTIONAL_RELATIONS) == 7
    assert not CONTENT_RELATIONS & FUNCTIONAL_RELATIONS
    assert "punct" not in CONTENT_RELATIONS | FUNCTIONAL_RELATIONS


def test_the_text() -> None:
    report = evaluate_trees(read(GOLD), read(PREDICTED))
    assert str(report).splitlines() == [
        "words: 9; sentences: 2; wholly correct: 50.00%",
        "UAS 77.78%",
        "LAS 77.78%",
        "CLAS 75.00%",
        "MLAS 75.00%",
        "BLEX 50.00%",
        "label accuracy 88.89%",
    ]
    assert report.table(2).splitlines() == [
        "relation  precision   recall       F1    gold  predicted",
        "punct        50.00%   50.00%   50.00%       2          2",
        "root        100.00%  100.00%  100.00%       2          2",
    ]


def test_nothing_at_all() -> None:
    report = evaluate_trees([], [])
    assert isinstance(report, TreeReport)
    assert (report.uas, report.las, report.clas, report.label_accuracy) == (0.0, 0.0, 0.0, 0.0)


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        (
            "2 ! ! PUNCT _ 1 punct\n",
            "",
            "<stream>:9: the gold sentence has 2 words and the predicted one (<stream>:9) 1",
        ),
        (
            "2 dogs",
            "2 cats",
            "<stream>:2: word 2 is 'dogs' in the gold sentence and 'cats' in the predicted one (<stream>:2)",
        ),
        (
            "Plur 4 obl",
            "Plur _ _",
            "<stream>:6: the HEAD of word 6 'parks' is missing, expected a number from 0 to 7",
        ),
    ],
)
def test_what_cannot_be_compared(before: str, after: str, words: str) -> None:
    assert before in GOLD
    with pytest.raises(InputError) as caught:
        evaluate_trees(read(GOLD), read(GOLD.replace(before, after)))
    assert str(caught.value).startswith(words)


def test_as_many_sentences() -> None:
    with pytest.raises(ShapeError):
        evaluate_trees(read(GOLD), read(GOLD)[:1])
