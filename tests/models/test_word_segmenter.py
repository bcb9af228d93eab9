"""Words of text without spaces: dictionaries, segmenters, and sources of MeCab's dictionaries."""

from __future__ import annotations

import dataclasses
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import crfkit
from crfkit import InputError, WordDictionary, WordSegmenter
from crfkit.compat import read_mecab, write_mecab
from crfkit.features import CharacterClasses, Entry, Rewriting, WordTemplates, join_fields, split_fields
from crfkit.structures import CostMatrix

TOOL = Path("/usr/lib/mecab/mecab-dict-index")
needs_mecab = pytest.mark.skipif(
    not TOOL.exists() or shutil.which("mecab") is None, reason="MeCab is not installed"
)

CLASSES = """\
DEFAULT 0 1 0  # INVOKE GROUP LENGTH
SPACE 0 1 0
LOWER 0 0 2
DIGIT 1 1 1
0x0020 SPACE
0x0030..0x0039 DIGIT
0x0061..0x007A LOWER
0x0041..0x005A LOWER DIGIT
"""
TEMPLATES = """\
UNIGRAM U0:%F[0]
UNIGRAM U1:%F[0],%F?[1]
UNIGRAM U2:%w
UNIGRAM U3:%t,%u
BIGRAM B0:%L[0]/%R[0]
BIGRAM B1:%l/%r
"""
REWRITING = """\
[unigram rewrite]
*,*\t$1,$2
[left rewrite]
(P|D),*\t$1,$2
*,*\t$1,*
[right rewrite]
(P|D),*\t$1,$2
*,*\t$1,*
"""
LEXICON: dict[str, tuple[str, ...]] = {
    "the": ("D", "the"), "cat": ("N", "cat"), "cats": ("N", "cats"), "sat": ("V", "sat"), "at": ("P", "at"),
    "on": ("P", "on"), "them": ("N", "them"), "mat": ("N", "mat"), "he": ("N", "he"), "hem": ("V", "hem"),
    "a": ("D", "a"), "seat": ("N", "seat"), "eat": ("V", "eat"), "mats": ("N", "mats"), "in": ("P", "in"),
}  # fmt: skip
SENTENCES = [
    "the cat sat on the mat",
    "he sat at the cats",
    "a cat eat them in the seat",
    "the mats on a seat",
]


def dictionary() -> WordDictionary:
    unknown = {"DEFAULT": ["X"], "SPACE": ["X"], "LOWER": ["N", "V"], "DIGIT": ["C"]}
    return WordDictionary(
        [Entry(form, fields) for form, fields in LEXICON.items()],
        {kind: [Entry(kind, (field, "*")) for field in fields] for kind, fields in unknown.items()},
        CharacterClasses.parse(CLASSES.splitlines()),
        WordTemplates.parse(TEMPLATES.splitlines()),
        Rewriting.parse(REWRITING.splitlines()),
        ("E", "*"),
        compared=2,
        unknown_compared=1,
    )


def sentences() -> list[list[tuple[str, tuple[str, ...]]]]:
    return [[(word, LEXICON[word]) for word in sentence.split()] for sentence in SENTENCES] + [
        [("the", ("D", "the")), ("dog", ("N", "dog")), ("sat", ("V", "sat")), ("12", ("C", "12"))]
    ]


@pytest.fixture(scope="module")
def trained() -> WordSegmenter:
    return WordSegmenter(dictionary(), l2=0.05).fit(sentences())


def test_training_sentences(trained: WordSegmenter) -> None:
    texts = [sentence.replace(" ", "") for sentence in SENTENCES]
    found = trained.predict(texts)
    assert [" ".join(word.form for word in words) for words in found] == SENTENCES
    assert found[0][1] == ("cat", ("N", "cat"), 3, 6, True)
    assert [word.form for word in trained.predict(["the cats 99 sat "])[0]] == ["the", "cats", "99", "sat"]
    assert trained.predict(["", "  "]) == [[], []]
    ((best, words), *_) = trained.predict_nbest(texts[:1], 3)[0]
    assert words == found[0]
    assert 0 < best < 1
    probabilities = dict(trained.predict_marginals(texts[:1])[0])
    assert probabilities[found[0][0]] >= best


def test_unknown_words() -> None:
    """INVOKE, GROUP and LENGTH, and characters of several classes."""

    def found(text: str) -> set[tuple[int, int, str]]:
        return {(c.start, c.end, c.entry.fields[0]) for c in dictionary().candidates(text) if not c.known}

    assert (0, 2, "N") not in found("z ")  # LENGTH ends with the characters that go together
    assert found("z,") == {(0, 1, "N"), (0, 1, "V"), (1, 2, "X")}
    assert found("zqx") == {(s, e, f) for s, e in [(0, 1), (0, 2), (1, 2), (1, 3), (2, 3)] for f in "NV"}
    assert (0, 1, "N") not in found("a1")  # the lexicon has a word, and the class does not invoke
    assert found("123") >= {(0, 3, "C"), (0, 1, "C")}  # the group, and one character
    assert found("é,é") >= {(0, 3, "X")}
    assert found("Z1") == {(0, 1, "N"), (0, 1, "V"), (0, 2, "N"), (0, 2, "V"), (1, 2, "C")}


def test_which_fields_are_compared() -> None:
    """Two of a word of the lexicon, one of an unknown word, in the dictionary of this file."""
    (word,) = [c for c in dictionary().candidates("cat") if c.known and c.end == 3]
    assert dictionary().is_right(word, 0, 3, ("N", "cat", "anything"))
    assert not dictionary().is_right(word, 0, 3, ("N", "dog"))
    assert not dictionary().is_right(word, 0, 2, ("N", "cat"))
    unknown = next(c for c in dictionary().candidates("zq") if c.end == 2 and c.entry.fields[0] == "N")
    assert dictionary().is_right(unknown, 0, 2, ("N", "zq"))
    assert not dictionary().is_right(unknown, 0, 2, ("V", "*"))


def test_features_are_those_of_the_templates() -> None:
    arcs = dictionary().lattice("the", dictionary().candidates("the")).arcs
    (arc,) = [arc for arc in arcs if arc.end == 3 and arc.start == 0]
    assert arc.features == ["U0:D", "U1:D,the", "U2:the", "U3:2,D,the"]
    assert arc.label == (("D,the", "D", "the"), ("D,the", "D", "the"))
    names = dictionary().structure.pair_names((("N,*", "N", "*"),) * 2, arc.label)
    assert names == ["B0:N/D", "B1:D,the/N,*"]


def test_templates_and_rewriting() -> None:
    """What `*` means, and which fields a word shows to either side."""
    rewriting = "[left rewrite]\n*,*\t$1,left\n[right rewrite]\nN,*\tright,$2\n*\t$1\n"
    made = WordDictionary.build(
        [("cat", "N,*"), ("sat", "V,past"), ("on", "P")],
        ["N,*"],
        templates="UNIGRAM U:%F[0],%F?[1]\nUNIGRAM W:%F[1]\nBIGRAM B:%L[0]/%R[0]\nBIGRAM C:%L?[1]/%R[1]\nBIGRAM D:%r/%l",
        rewriting=rewriting.replace("*,*", "(N|V),*", 1).replace("\n[right", "\n*\t$1,other\n[right", 1),
        boundary="E,*",
    )
    arcs = {text: made.lattice(text, made.candidates(text)).arcs[0] for text in ("cat", "sat", "on")}
    assert [arc.features for arc in arcs.values()] == [["W:*"], ["U:V,past", "W:past"], []]
    cat, sat, on = (arc.label for arc in arcs.values())
    assert made.structure.pair_names(cat, sat) == ["B:right/V", "D:right,*/V,left"]
    assert made.structure.pair_names(sat, on) == ["B:V/P", "D:V/P,other"]
    assert made.structure.pair_names(made.structure.boundary, cat) == ["B:E/N", "D:E/N,left"]


def test_save_and_load(trained: WordSegmenter, tmp_path: Path) -> None:
    trained.save(tmp_path / "words.crf")
    again = crfkit.load(tmp_path / "words.crf")
    assert isinstance(again, WordSegmenter)
    texts = ["thecatsatonthemat", "heeat12cats"]
    assert again.predict(texts) == trained.predict(texts)
    assert again.dictionary.compared == 2


def test_a_dictionary_of_plain_lists(tmp_path: Path) -> None:
    """Default classes and templates, without rewriting: saved, and as sources."""
    words = [("the", "D,x"), ("cat", "N"), ("at", "P,a,b"), ("a,b", 'N,"q"')]
    sentences = [
        [("the", "D,x"), ("cat", "N")],
        [("dog", "N"), ("at", "P,a,b"), ("a,b", 'N,"q"'), ("9", "N")],
    ]
    model = WordSegmenter(WordDictionary.build(words, ["N", "P,a,b"]), l2=0.1).fit(sentences)
    texts = ["thecatatdog", "a,b9at the"]
    found = model.predict(texts)
    assert [word.form for word in found[0]] == ["the", "cat", "at", "dog"]
    model.save(tmp_path / "m")
    assert crfkit.load(tmp_path / "m").predict(texts) == found
    write_mecab(model, tmp_path / "d")
    again = read_mecab(tmp_path / "d")
    assert again.predict(texts) == model.with_costs().predict(texts)
    for entry in model.dictionary.words:
        assert again.dictionary.rewriting.rewrite(entry.fields).left == entry.fields


def analyses(found: list[tuple[float, Any]]) -> list[tuple[Any, ...]]:
    return [tuple(word[:4] for word in words) for _, words in found]


@pytest.mark.parametrize("priced", [False, True])
def test_an_analysis_is_one_arc(priced: bool) -> None:
    """A word that the lexicon has, twice even, and that is made as an unknown word too."""
    words = [("the", "D"), ("cat", "N"), ("cat", "N"), ("cat", "V")]
    model = WordSegmenter(WordDictionary.build(words, ["N", "V", "N"]), l2=0.1)
    model.fit([[("the", "D"), ("cat", "N")], [("cat", "V")]])
    model = model.with_costs() if priced else model
    (found,) = model.predict_nbest(["thecat"], 100)
    assert len(set(analyses(found))) == len(found) > 3
    assert sum(prob for prob, _ in found) == pytest.approx(1)
    assert all(word.known for word in found[0][1])
    (marginals,) = model.predict_marginals(["thecat"])
    assert len({word[:4] for word, _ in marginals}) == len(marginals)
    assert sum(prob for word, prob in marginals if word.end == 6) == pytest.approx(1)


def test_the_cheapest_of_equal_words_counts() -> None:
    """With costs that are known: as Viterbi takes it, also where it is the unknown word."""
    made = WordDictionary.build([("ab", "N"), ("a", "N")], ["N"])
    words = [Entry("ab", ("N",), cost=50), Entry("ab", ("N",), cost=30), Entry("a", ("N",), cost=20)]
    unknown = {kind.name: [Entry(kind.name, ("N",), cost=10)] for kind in made.classes.classes}
    costs = CostMatrix(np.zeros((1, 1), np.int16))
    model = WordSegmenter.from_costs(dataclasses.replace(made, words=words, unknown=unknown, costs=costs))
    found = [c for c in model.dictionary.candidates("ab") if c.start == 0]
    assert [(c.end, c.entry.cost, c.known) for c in found] == [(1, 20, True), (2, 10, False)]
    assert [(word.form, word.known) for word in model.predict(["ab"])[0]] == [("ab", False)]


def test_whole_costs_are_summed_without_rounding() -> None:
    """Of equally cheap analyses the last word begins as late as possible, as MeCab has it."""
    made = WordDictionary.build([], ["N"])
    words = [Entry("a" * n, ("N",), cost=7 * n) for n in (1, 2, 3)]
    unknown = {kind.name: [Entry(kind.name, ("N",), cost=999)] for kind in made.classes.classes}
    costs = CostMatrix(np.zeros((1, 1), np.int16))
    model = WordSegmenter.from_costs(dataclasses.replace(made, words=words, unknown=unknown, costs=costs))
    assert {word.form for n in range(40) for word in model.predict(["a" * n])[0]} == {"a"}


def test_equal_words_of_mecab_sources_count_in_training(trained: WordSegmenter, tmp_path: Path) -> None:
    """`mecab-cost-train` has an arc for each of them, and its objective is kept."""
    model = WordSegmenter(WordDictionary.build([("cat", "N")], ["N"])).fit([[("cat", "N")]])
    write_mecab(model, tmp_path)
    read = dataclasses.replace(read_mecab(tmp_path).dictionary, costs=None)
    assert [c.known for c in read.candidates("cat") if (c.start, c.end) == (0, 3)] == [True, False]
    again = WordSegmenter(read).fit([[("cat", "N")]])
    again.save(tmp_path / "model")
    assert not crfkit.load(tmp_path / "model").dictionary.distinct
    trained.save(tmp_path / "model")
    assert crfkit.load(tmp_path / "model").dictionary.distinct


def test_score(trained: WordSegmenter) -> None:
    gold = [[("the", "D,the"), ("mat", "N,mat"), ("sat", "N,sat")], [("thec", "N,*"), ("at", "P,at")]]
    found = [[word.form for word in words] for words in trained.predict(["thematsat", "thecat"])]
    assert found == [["the", "mat", "sat"], ["the", "cat"]]
    assert trained.score(gold) == pytest.approx(2 * 3 / (5 + 5))
    assert trained.score(gold, n_fields=1) == pytest.approx(2 * 2 / (5 + 5))
    assert trained.score(gold, n_fields=None, metric="recall") == pytest.approx(2 / 5)
    assert trained.score(gold, metric="sequence_accuracy") == 0.5
    assert trained.score(gold, metric=lambda right, given: float(right[0][:2] == given[0][:2])) == 1
    assert trained.score([]) == 0
    with pytest.raises(InputError, match="accuracy"):
        trained.score(gold, metric="accuracy")
    with pytest.raises(InputError, match=r"sentence 0, word 1 is 'mat', expected \(form, fields\)"):
        trained.score([[("the", "D"), "mat"]])  # type: ignore[list-item]


def test_whole_costs(trained: WordSegmenter) -> None:
    """Analyses by whole numbers are those of the weights where these are not rounded away."""
    texts = [sentence.replace(" ", "") for sentence in SENTENCES]
    assert trained.with_costs().predict(texts) == trained.predict(texts)


TEXTS = [
    "thecatsatonthemat", "thecatseatthem", "heatonamat", "hemats", "the cats 12 sat", "12zq7themat", "Zt9é,éon",
    "qqqqqq", "  theseat  on ", "a" * 30, "1" * 40, "eataseatinamat",
]  # fmt: skip


def mecab(folder: Path, texts: list[str]) -> list[list[tuple[str, tuple[str, ...]]]]:
    """What MeCab says, with the dictionary of a folder."""
    compiled: list[Any] = [TOOL, "-d", folder, "-o", folder, "-f", "utf-8", "-t", "utf-8"]
    subprocess.run(compiled, check=True, capture_output=True)
    (folder / "mecabrc").write_text("")
    run: list[Any] = ["mecab", "-r", folder / "mecabrc", "-d", folder, "-b", "100000"]
    printed = subprocess.run(
        run, check=True, capture_output=True, input="\n".join(texts) + "\n", encoding="utf-8"
    )
    found: list[Any] = [[]]
    for line in printed.stdout.splitlines():
        if line == "EOS":
            found.append([])
        else:
            form, fields = line.split("\t")
            found[-1].append((form, tuple(fields.split(","))))
    return found[:-1]


@needs_mecab
def test_mecab_gives_the_same_analyses(trained: WordSegmenter, tmp_path: Path) -> None:
    write_mecab(trained, tmp_path)
    expected = [[word[:2] for word in words] for words in trained.with_costs().predict(TEXTS)]
    assert mecab(tmp_path, TEXTS) == expected
    again = read_mecab(tmp_path)
    assert [[word[:2] for word in words] for words in again.predict(TEXTS)] == expected


def test_read_and_write_again(trained: WordSegmenter, tmp_path: Path) -> None:
    write_mecab(trained, tmp_path / "one")
    read = read_mecab(tmp_path / "one")
    assert read.dictionary.boundary == ("E", "*")
    assert read.dictionary.templates == trained.dictionary.templates
    assert read.dictionary.classes == trained.dictionary.classes
    write_mecab(read, tmp_path / "two")
    for file in (tmp_path / "one").iterdir():
        assert file.read_bytes() == (tmp_path / "two" / file.name).read_bytes()
    untrained = dataclasses.replace(read.dictionary, costs=None)
    again = WordSegmenter(untrained, l2=0.05).fit(sentences())
    np.testing.assert_allclose(np.sort(again.crf_.weights_), np.sort(trained.crf_.weights_), atol=1e-2)


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        ("char.def", "DEFAULT 0 1\n", r"char\.def: line 1"),
        ("char.def", "DEFAULT 0 1 0\n", "no class SPACE"),
        ("feature.def", "UNIGRAM %x[0]\n", "stands for nothing"),
        ("feature.def", "TRIGRAM %F[0]\n", r"feature\.def: line 1"),
        ("rewrite.def", "*\t$1\n", r"rewrite\.def: line 1"),
        ("matrix.def", "2 2\n0 5 1\n", r"matrix\.def"),
        ("lex.csv", "the,one,0,0,D\n", r"lex\.csv: line 1"),
        ("unk.def", "DEFAULT,0,0,0,X\n", "unknown words of the class SPACE"),
        ("lex.csv", "the,0,99,0,D\n", "contexts"),
    ],
)
def test_damaged_sources(trained: WordSegmenter, tmp_path: Path, file: str, text: str, message: str) -> None:
    write_mecab(trained, tmp_path)
    (tmp_path / file).write_text(text)
    with pytest.raises(InputError, match=message):
        read_mecab(tmp_path)


def test_bad_input(trained: WordSegmenter) -> None:
    with pytest.raises(InputError, match=r"texts is 'thecat', expected a list of texts; write \[text\]"):
        trained.predict("thecat")
    with pytest.raises(InputError, match="texts is None, expected a list"):
        trained.predict(None)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="text 1 is 5, expected a string"):
        trained.predict(["thecat", 5])  # type: ignore[list-item]
    with pytest.raises(InputError, match="not trained"):
        WordSegmenter(dictionary()).predict(["thecat"])
    with pytest.raises(InputError, match="not trained"):
        WordSegmenter(dictionary()).with_costs()
    with pytest.raises(InputError, match="cost_factor is 0, expected a whole number"):
        trained.with_costs(0)
    for wrong in (-1, 1.5):
        with pytest.raises(InputError, match=r"n_fields is .*, expected None or a number of fields"):
            trained.score(sentences(), n_fields=wrong)  # type: ignore[arg-type]
        with pytest.raises(InputError, match=r"n_fields is .*, expected None or a number of fields"):
            crfkit.evaluation.word_report(sentences(), sentences(), wrong)  # type: ignore[arg-type]
    for sentence, message in (
        (["the", "cat"], r"sentence 0, word 0 is 'the', expected \(form, fields\)"),
        (["he"], "sentence 0, word 0 is 'he', expected"),  # which is no pair of letters
        ([("the", "D", "the")], "sentence 0, word 0"),
        ([("the", "D"), ("", "N")], "sentence 0, word 1 has the form ''"),
        ([("the", None)], "sentence 0, word 0, 'the': fields are None"),
        ("the", "sentence 0 is 'the', expected a list"),
        (7, "sentence 0 is 7, expected a list"),
    ):
        with pytest.raises(InputError, match=message):
            WordSegmenter(dictionary()).fit([sentence])  # type: ignore[list-item]
    with pytest.raises(InputError, match="has costs"):
        trained.with_costs().fit(sentences())


@pytest.mark.parametrize(
    ("words", "unknown", "message"),
    [
        (["the"], ["N"], r"word 0 is 'the', expected \(form, fields\)"),
        ([("the", "D"), "he"], ["N"], "word 1 is 'he'"),
        ({"the": "D"}, ["N"], "word 0 is 'the'"),
        ("the", ["N"], r"words is 'the', expected a list of \(form, fields\)"),
        ([("the", 5)], ["N"], "word 0, 'the': fields are 5, expected a text with commas or a list"),
        ([("", "D")], ["N"], "word 0 has the form ''"),
        ([], "NV", "unknown is 'NV', expected a list of fields"),
        ([], {"DEFAULT": "N"}, "unknown is 'N', expected a list of fields"),
        ([], {"DIGITS": ["N"]}, "unknown has 'DIGITS', expected classes of characters: DEFAULT, SPACE, "),
        ([], [5], "fields are 5"),
        ([], [], "no fields for unknown words of the class DEFAULT"),
    ],
)
def test_bad_dictionaries(words: Any, unknown: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        WordDictionary.build(words, unknown)


def test_a_bad_number_of_fields() -> None:
    for compared in (-1, 0.5, "2"):
        with pytest.raises(InputError, match=r"compared is .*, expected None or a number of fields"):
            WordDictionary.build([], ["N"], compared=compared)  # type: ignore[arg-type]


def test_fields_as_text() -> None:
    """Quotation marks where they are needed, and texts with line ends or of any length."""
    for fields in (("a", "b,c", 'd"e', '"', "", "f\ng,", "\r"), ("",), (",",), ('"x' * 100_000, "y")):
        assert split_fields(join_fields(fields)) == fields
    assert split_fields('a,"b""c"d,"e') == ("a", 'b"cd', "e")
