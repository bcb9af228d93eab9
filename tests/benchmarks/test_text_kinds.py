"""Sentences that count more or less by their kind of text."""

import pytest
from benchmarks.corpora import find_corpus
from benchmarks.morphology import LANGUAGES, read_text
from benchmarks.text_kinds import MIXTURES, read_mixture, sentence_id

from benchmarks import text_kinds
from crfkit.data import Sentence, Word

NEEDS_GERMAN = pytest.mark.skipif(
    find_corpus("ud_german", "de_mixed-train.conllu") is None, reason="the corpus is not here"
)
NEEDS_GREEK = pytest.mark.skipif(
    find_corpus("ancient_greek_perseus", "agdt-train.conllu") is None, reason="the corpus is not here"
)


def sentence(name: str) -> Sentence:
    return Sentence([Word("a")], comments=["# newpar", f"# sent_id = {name}", "# text = a"])


@pytest.mark.parametrize(
    ("corpus", "names", "weights"),
    [
        ("grc", ["tlg0012.tlg001.x@1", "tlg0020.tlg001.x@1", "tlg0085.x@2", "tlg0016.x@3"], [0.5, 0.5, 1, 2]),
        ("pl", ["dev-s1", "dev-12", "test-3", "n01001011", "w02"], [2, 0.5, 0.5, 0.5, 0.5]),
        ("de", ["dev-s1", "lyceum-f1-s1", "athenaeum-f3-s2", "n01001011"], [2, 0.5, 0.5, 0.5]),
    ],
)
def test_sentences_count_by_the_kind_that_their_id_says(
    corpus: str, names: list[str], weights: list[float]
) -> None:
    mixture = MIXTURES[corpus]
    assert mixture.weigh(list(map(sentence, names)), mixture.weights) == weights
    assert mixture.weigh(list(map(sentence, names)), text_kinds.EQUAL) == [1.0] * len(names)


def test_a_sentence_may_have_no_id() -> None:
    assert sentence_id(Sentence([Word("a")])) == ""


@NEEDS_GERMAN
def test_the_last_sentences_of_the_last_kind_are_held_out() -> None:
    training, held_out = read_mixture(MIXTURES["de"])
    kinds = [MIXTURES["de"].kind(one) for one in training]
    assert {MIXTURES["de"].kind(one) for one in held_out} == {"GSD"}
    assert kinds.count("GSD") in (len(held_out), len(held_out) + 1)
    assert set(kinds) == {"LIT", "PUD", "GSD"}
    numbers = [
        [int(sentence_id(one).removeprefix("dev-s")) for one in some if MIXTURES["de"].kind(one) == "GSD"]
        for some in (training, held_out)
    ]
    assert max(numbers[0]) < min(numbers[1])


@NEEDS_GREEK
def test_the_benchmark_weighs_training_sentences() -> None:
    weighted, plain = LANGUAGES["grc-weights"], LANGUAGES["grc"]
    changed = weighted._replace(mixture=MIXTURES["grc"]._replace(weights={"drama": 3.0}))
    texts = [read_text(one, "agdt-train.conllu", 5) for one in (weighted, changed, plain)]  # Sophocles
    assert [text.weights for text in texts] == [[1.0] * 5, [3.0] * 5, None]
    assert texts[0].X == texts[2].X
    assert LANGUAGES["grc-weights"].settings.startswith(LANGUAGES["grc"].settings)
    assert "'prose': 2.0" in LANGUAGES["grc-weights"].settings


@NEEDS_GERMAN
def test_quick_run(capsys: pytest.CaptureFixture[str]) -> None:
    text_kinds.main(["--quick", "--corpus", "de"])
    equal, weighted = (
        [cell.strip() for cell in line.split("|")] for line in capsys.readouterr().out.splitlines()[2:]
    )
    assert (equal[1:3], weighted[1:3]) == (["de", "equal"], ["de", "PUD 0.5, LIT 0.5, GSD 2"])
    assert equal[3:6] != weighted[3:6]
    for cells in (equal, weighted):
        unknown, every, known = (float(cells[k]) for k in (5, 3, 4))
        assert 10 < unknown < every < known < 100
