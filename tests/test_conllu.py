"""CoNLL-U: words, what is kept apart from them, and what is said about bad files."""

from __future__ import annotations

import io

import pytest
from benchmarks.corpora import find_corpus

from crfkit.data import EmptyNode, InputError, Multiword, Sentence, Word, read_conllu

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


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "<stream>: the file has no sentence"),
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
        (line("0.1") + "\n", "<stream>:1: the sentence has no word"),
    ],
)
def test_bad_files(text: str, words: str) -> None:
    with pytest.raises(InputError) as caught:
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
