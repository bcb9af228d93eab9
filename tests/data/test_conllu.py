"""CoNLL-U: words, what is kept apart from them, writing, and what is said about bad files and heads."""

from __future__ import annotations

import io
import lzma
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from benchmarks.corpora import corpora_folder, find_corpus

from crfkit.data import (
    EmptyNode,
    InputError,
    Multiword,
    Sentence,
    Word,
    check_tree,
    read_conllu,
    write_conllu,
)
from crfkit.errors import FileFormatError, TreeError, UnsavableError, UnwritableFileError

TEXT = """\
# sent_id = 1
# text = vámonos al mar
1-2\tvámonos\t_\t_\t_\t_\t_\t_\t_\tA=1
1\tvamos\tir\tVERB\tV\tMood=Ind|Number=Plur\t0\troot\t0:root\t_
2\tnos\tnosotros\tPRON\t_\t_\t1\tobj\t1:obj\t_
3-4\tal\t_\t_\t_\t_\t_\t_\t_\t_
3\ta\ta\tADP\t_\t_\t5\tcase\t5:case\t_
4\tel\tel\tDET\t_\t_\t5\tdet\t5:det\t_
5\tmar\tmar\tNOUN\t_\t_\t1\tobl\t1:obl\t_

# text = nada más

1\tnada\tnada\tPRON\t_\t_\t_\t_\t_\t_
1.1\tir\tir\tVERB\tV\t_\t_\t_\t0:root\tB=2
1.2\ty\ty\tCCONJ\t_\t_\t_\t_\t1.1:cc\t_
2\tmás\tmás\tADV\t_\t_\t1\tadvmod\t_\t_
"""


def read(text: str) -> list[Sentence]:
    return list(read_conllu(io.StringIO(text)))


def test_words_multiwords_and_empty_nodes() -> None:
    first, second = read(TEXT)
    assert [w.form for w in first.words] == ["vamos", "nos", "a", "el", "mar"]
    assert first.words[0] == Word(
        "vamos", "ir", "VERB", "V", "Mood=Ind|Number=Plur", 0, "root", "0:root", "_"
    )
    assert [w.head for w in first.words] == [0, 1, 5, 5, 1]
    assert first.multiwords == [Multiword(1, 2, "vámonos", "A=1"), Multiword(3, 4, "al", "_")]
    assert first.comments == ["# sent_id = 1", "# text = vámonos al mar"]
    assert (first.line, second.line) == (3, 13)
    assert [w.head for w in second.words] == [None, 1]
    assert second.empty_nodes == [
        EmptyNode(1, 1, "ir", "ir", "VERB", "V", "_", "0:root", "B=2"),
        EmptyNode(1, 2, "y", "y", "CCONJ", "_", "_", "1.1:cc", "_"),
    ]
    assert second.comments == ["# text = nada más"]


def test_an_empty_node_before_the_first_word() -> None:
    (sentence,) = read("0.1\ty\t" + "_\t" * 7 + "_\n1\ta\t" + "_\t" * 7 + "_\n")
    assert sentence.empty_nodes[0].after == 0


def line(node: str, head: str = "_") -> str:
    return f"{node}\tw\tw\tX\t_\t_\t{head}\t_\t_\t_\n"


def word(form: str, head: int | None, misc: str = "_") -> Word:
    return Word(form, "_", "_", "_", "_", head, "_", "_", misc)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("\n", "<stream>: the file has no sentence"),
        ("# only\n\n", "<stream>: the file has no sentence"),
        ("1\ta\tb\n", "<stream>:1: found 3 tab-separated columns, expected the 10 of CoNLL-U"),
        (line("1") + line("3"), "<stream>:2: the ID is 3, expected 2"),
        (line("one"), "<stream>:1: the ID is 'one', expected a number"),
        (line("1", "x"), "<stream>:1: the HEAD is 'x', expected the number of a word, 0 or _"),
        (line("1", "-1"), "<stream>:1: the HEAD is '-1'"),
        ("# c\n" + line("1", "3") + line("2"), "<stream>:2: the HEAD is 3, but the sentence has 2 words"),
        (line("2-3") + line("1"), "<stream>:1: the range is 2-3, expected one that begins at 1 and goes up"),
        (line("1-1") + line("1"), "<stream>:1: the range is 1-1"),
        (
            line("1-2") + line("1") + line("2-3"),
            "<stream>:3: the range is 2-3, expected one that begins at 3",
        ),
        (line("1-2") + line("1") + "\n" + line("1"), "<stream>:2: the range 1-2 goes beyond the 1 words"),
        (line("1.1") + line("1"), "<stream>:1: the ID is 1.1, expected 0.1"),
        (line("1") + line("1.1") + line("1.3"), "<stream>:3: the ID is 1.3, expected 1.2"),
        (
            line("1") + line("2-3") + line("1.1") + line("2") + line("3"),
            "<stream>:3: the ID is 1.1 after the range 2-3, expected it before that",
        ),
        (line("0.1") + "\n", "<stream>:1: the sentence has no word"),
    ],
)
def test_bad_files(text: str, words: str) -> None:
    with pytest.raises(FileFormatError) as caught:
        read(text)
    assert str(caught.value).startswith(words)


def test_the_real_corpus() -> None:
    path = find_corpus("ud_english_ewt", "en_ewt-ud-dev.conllu")
    if path is None:
        pytest.skip("the corpus ud_english_ewt is not on this machine")
    sentences = list(read_conllu(path))
    assert len(sentences) == 2001
    assert sum(len(s.words) for s in sentences) == 25147
    assert sum(len(s.multiwords) for s in sentences) == 359
    assert sum(len(s.empty_nodes) for s in sentences) == 4
    for sentence in sentences:  # the text in the comment is made of the forms
        text = next(c.removeprefix("# text = ") for c in sentence.comments if c.startswith("# text = "))
        joined = {k: m for m in sentence.multiwords for k in range(m.first, m.last + 1)}
        forms = [
            joined[k].form if k in joined else word.form
            for k, word in enumerate(sentence.words, 1)
            if k not in joined or joined[k].first == k
        ]
        assert "".join(forms).replace(" ", "") == text.replace(" ", "")


# ---- writing


def written(sentences: list[Sentence]) -> str:
    stream = io.StringIO()
    write_conllu(sentences, stream)
    return stream.getvalue()


INNER = (
    "# before\n0.1\ty\t" + "_\t" * 7 + "_\n# inside\n" + line("1", "2") + line("1.1") + "# more\n"
    "2-3\tw\t_\t_\t_\tTypo=Yes\t_\t_\t_\tSpaceAfter=No\n# two\n# three\n"
    + line("2")
    + line("3")
    + "# last\n\n"
)


def test_what_was_read_is_written_again() -> None:
    text = TEXT.replace("más\n\n", "más\n") + "\n"
    assert written(read(text)) == text
    (sentence,) = read(INNER)
    assert sentence.multiwords == [Multiword(2, 3, "w", "SpaceAfter=No", "Typo=Yes")]
    assert written([sentence]) == INNER


def test_where_a_word_was_read() -> None:
    (sentence,) = read(INNER)
    places = [sentence.place(number) for number in (1, 2, 3)]
    rows = INNER.splitlines()
    assert places == [
        f"<stream>:{1 + rows.index(line(n, h).rstrip())}" for n, h in (("1", "2"), ("2", "_"), ("3", "_"))
    ]


@pytest.mark.parametrize("name", ["a.conllu", "a.conllu.xz", "a.conllu.gz", "a.conllu.bz2"])
def test_files_of_every_packing(tmp_path: Path, name: str) -> None:
    sentences = read(TEXT)
    write_conllu(sentences, tmp_path / name)
    again = list(read_conllu(tmp_path / name))
    assert [replace(s, line=1, source="") for s in again] == [
        replace(s, line=1, source="") for s in sentences
    ]
    begins = {".conllu": b"# sent", ".xz": b"\xfd7zXZ", ".gz": b"\x1f\x8b", ".bz2": b"BZh"}
    assert (tmp_path / name).read_bytes().startswith(begins[Path(name).suffix])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"comments": ["text"]}, "the comment 'text' must be one line that begins with #"),
        ({"comments": ["# a\nb"]}, "must be one line that begins with #"),
        (
            {"multiwords": [Multiword(7, 8, "x", "_")]},
            "deps='_') has no place among the 5 words",
        ),
        ({"multiwords": [Multiword(3, 4, "x", "_"), Multiword(1, 2, "y", "_")]}, "Multiword(first=1"),
        ({"empty_nodes": [EmptyNode(9, 1, "_", "_", "_", "_", "_", "_", "_")]}, "EmptyNode(after=9"),
        ({"words": [word("a\tb", 0)]}, "'a\\tb' of node 1 has a tab or a line end"),
        ({"words": [word("a", 0, "x\n")]}, "'x\\n' of node 1 has a tab or a line end"),
    ],
)
def test_what_cannot_be_written(change: dict[str, Any], words: str) -> None:
    sentence = replace(read(TEXT)[0], **change)
    with pytest.raises(UnsavableError) as caught:
        written([read(TEXT)[0], sentence])
    assert str(caught.value).startswith("sentence 2 (<stream>:3): ")
    assert words in str(caught.value)


def test_a_folder_cannot_be_written_to(tmp_path: Path) -> None:
    with pytest.raises(UnwritableFileError):
        write_conllu(read(TEXT), tmp_path)


def assert_same_bytes(path: Path) -> None:
    text = lzma.decompress(path.read_bytes()).decode()
    assert written(list(read_conllu(path))) == text


def test_a_real_corpus_is_written_byte_by_byte() -> None:
    path = find_corpus("ud_english_ewt", "en_ewt-ud-dev.conllu")
    if path is None or path.suffix != ".xz":
        pytest.skip("the packed corpus ud_english_ewt is not on this machine")
    assert_same_bytes(path)


@pytest.mark.slow
@pytest.mark.parametrize("path", sorted(corpora_folder().glob("*/*.conllu.xz")), ids=lambda path: path.name)
def test_every_corpus_is_written_byte_by_byte(path: Path) -> None:
    assert_same_bytes(path)


# ---- trees


def headed(*heads: int | None) -> Sentence:
    words = [word(f"w{number}", head) for number, head in enumerate(heads, 1)]
    return Sentence(words, line=5, source="file")


@pytest.mark.parametrize(
    ("heads", "single_root", "words"),
    [
        ((), True, "file:5: the sentence has no word, expected one at least"),
        ((2, 3), True, "file:6: the HEAD is 3, but the sentence has 2 words"),
        ((0, -1), True, "file:6: the HEAD is -1, but the sentence has 2 words"),
        ((0, 2), True, "file:6: 2 'w2' is its own head, expected another word or 0"),
        ((0, None), True, "file:6: 2 'w2' has no HEAD, expected the number of a word or 0"),
        ((0, 1, 0), True, "file:7: there are 2 roots (1 'w1', 3 'w3'), expected one"),
        ((0, 0, 0), True, "file:6: there are 3 roots (1 'w1', 2 'w2', …), expected one"),
        (
            (0, 4, 2, 3),
            False,
            "file:6: the heads form a cycle, 2 'w2' → 4 'w4' → 3 'w3' → 2 'w2', expected a tree",
        ),
        ((2, 1), True, "file:5: the heads form a cycle, 1 'w1' → 2 'w2' → 1 'w1', expected a tree"),
        ((3, 3, 2), True, "file:6: the heads form a cycle, 2 'w2' → 3 'w3' → 2 'w2', expected a tree"),
    ],
)
def test_heads_that_form_no_tree(heads: tuple[int | None, ...], single_root: bool, words: str) -> None:
    with pytest.raises(TreeError) as caught:
        check_tree(headed(*heads), single_root)
    assert str(caught.value) == words


def test_an_error_in_the_heads_of_a_file_has_its_line() -> None:
    sentence = read(TEXT.replace("\t1\tobl", "\t4\tobl"))[0]
    with pytest.raises(TreeError, match=r"^<stream>:8"):
        check_tree(sentence)


def reaches_the_root(heads: tuple[int | None, ...], number: int) -> bool:
    for _ in heads:
        number = (heads[number - 1] or 0) if number else 0
    return number == 0


@pytest.mark.parametrize("single_root", [True, False])
@pytest.mark.parametrize("n_words", [1, 2, 3, 4])
def test_all_heads_of_few_words(n_words: int, single_root: bool) -> None:
    """Complete heads are accepted where each word reaches the root; partial ones where some complete ones agree."""
    trees = [
        heads
        for heads in product(range(n_words + 1), repeat=n_words)
        if all(reaches_the_root(heads, number) for number in range(1, n_words + 1))
        and (heads.count(0) == 1 or not single_root)
    ]
    accepted = {
        heads
        for heads in product((None, *range(n_words + 1)), repeat=n_words)
        if accepts(headed(*heads), single_root)
    }
    assert accepted == {
        tuple(head if known else None for head, known in zip(heads, mask, strict=True))
        for heads in trees
        for mask in product((True, False), repeat=n_words)
    }
    assert {heads for heads in accepted if None not in heads} == set(trees)


def accepts(sentence: Sentence, single_root: bool) -> bool:
    try:
        check_tree(sentence, single_root, partial=True)
    except InputError:
        return False
    return True


def test_a_word_may_be_made_of_its_form_alone() -> None:
    text = io.StringIO()
    write_conllu([Sentence([Word("Dogs", upos="NOUN"), Word("sleep")])], text)
    rows = ["1 Dogs _ NOUN _ _ _ _ _ _", "2 sleep _ _ _ _ _ _ _ _"]
    assert text.getvalue() == "\n".join(rows).replace(" ", "\t") + "\n\n"
    [read] = read_conllu(io.StringIO(text.getvalue()))
    assert read.words == [Word("Dogs", upos="NOUN"), Word("sleep")]


def test_no_sentences_can_be_read_back(tmp_path: Path) -> None:
    write_conllu([], tmp_path / "none.conllu")
    assert list(read_conllu(tmp_path / "none.conllu")) == []


@pytest.mark.parametrize(
    "sentence",
    [
        Sentence([word("a", 0), word("b\udc80c", 1)]),
        Sentence([word("ä", 0, misc="X=\ud800")]),
        Sentence([word("a", 0)], comments=["# text = \udfff"]),
    ],
)
def test_lone_surrogates_cannot_be_written(sentence: Sentence, tmp_path: Path) -> None:
    with pytest.raises(UnsavableError, match=r"sentence 1 .*has the lone surrogate '\\ud...', which UTF-8"):
        write_conllu([sentence], tmp_path / "out.conllu")
