"""CoNLL-U that is damaged or unusual: an error with file and line, or sentences from which nothing is lost."""

from __future__ import annotations

import io
import random
import re
import warnings
from collections.abc import Callable

import pytest

from crfkit.data import CommentsDropped, Sentence, read_conllu, write_conllu
from crfkit.errors import FileFormatError

SAMPLE = """\
# newdoc id = sample
# sent_id = 1
# text = Vámonos al mar, señor Łukasz!
1-2\tVámonos\t_\t_\t_\t_\t_\t_\t_\t_
1\tVamos\tir\tVERB\tV\tMood=Ind|Number=Plur\t0\troot\t0:root\t_
2\tnos\tnosotros\tPRON\tP\tCase=Acc\t1\tobj\t1:obj\t_
3-4\tal\t_\t_\t_\tTypo=Yes\t_\t_\t_\tSpaceAfter=No
3\ta\ta\tADP\tE\t_\t5\tcase\t5:case\t_
4\tel\tel\tDET\tD\tDefinite=Def\t5\tdet\t5:det\t_
5\tmar\tmar\tNOUN\tN\tNumber=Sing\t1\tobl\t1:obl\tSpaceAfter=No
6\t,\t,\tPUNCT\t_\t_\t7\tpunct\t7:punct\t_
7\tseñor\tseñor\tNOUN\tN\t_\t1\tvocative\t1:vocative\tGloss=a|b=c
8\tŁukasz\tŁukasz\tPROPN\tN\t_\t7\tflat\t7:flat\tSpaceAfter=No
9\t!\t!\tPUNCT\t_\t_\t1\tpunct\t1:punct\t_

# sent_id = 2
0.1\t_\tser\tVERB\t_\t_\t_\t_\t0:root\t_
1\t東京\t東京\tPROPN\t_\t_\t0\troot\t0.1:nsubj\t_
# a comment inside
1.1\ty\ty\tCCONJ\t_\t_\t_\t_\t1:cc\tE=1
1.2\tx\tx\tX\t_\t_\t_\t_\t1:dep\t_
2\tмай\tмай\tNOUN\t_\tCase=Nom\t1\tconj\t1:conj\t_
3\tبيت\tبيت\tNOUN\t_\t_\t1\tconj\t1:conj\t_

# sent_id = 3
1\tSí\tsí\tINTJ\t_\t_\t0\troot\t_\t_

"""


def read(data: bytes) -> list[Sentence]:
    return list(read_conllu(io.BytesIO(data)))


def written(sentences: list[Sentence]) -> bytes:
    stream = io.StringIO()
    write_conllu(sentences, stream)
    return stream.getvalue().encode()


def test_the_sample_is_written_byte_by_byte() -> None:
    assert written(read(SAMPLE.encode())) == SAMPLE.encode()


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace(b"\n", b"\r\n"),
        lambda text: b"\xef\xbb\xbf" + text,
        lambda text: text.rstrip(b"\n"),
        lambda text: text.rstrip(b"\n") + b"\n",
        lambda text: text + b"\n \n\t\n",
        lambda text: b"\n\n" + text,
        lambda text: text.replace(b"\n\n", b"\n\n\n"),
    ],
    ids=[
        "CRLF",
        "BOM",
        "no final newline",
        "no final blank line",
        "blanks at the end",
        "at the start",
        "twice",
    ],
)
def test_what_makes_no_difference(change: Callable[[bytes], bytes]) -> None:
    assert written(read(change(SAMPLE.encode()))) == SAMPLE.encode()


@pytest.mark.parametrize("kept", ["\0", "\x01\x1b", "\x85", "\u2028", "a b", "\u202e\u0301", "#", "=|=", ""])
@pytest.mark.parametrize("column", [1, 2, 3, 4, 5, 7, 8, 9])
def test_odd_characters_are_kept(column: int, kept: str) -> None:
    for name in ("1", "1-2", "1.1"):
        columns = [name, *"bcdef", "_", *"hij"]
        columns[column] = kept
        rows = ["\t".join(columns), "2" + "\tx" * 5 + "\t_" * 4]
        if name != "1":
            rows.insert(0 if name == "1.1" else 1, "1" + "\tx" * 5 + "\t_" * 4)
        text = ("\n".join(rows) + "\n\n").encode()
        assert written(read(text)) == text


def test_columns_that_the_format_leaves_empty_are_kept() -> None:
    rows = ["0.1 a b c d e f g h i", "1-2 a b c d e f g h i", "1 x x x x x _ x x x", "2 x x x x x 1 x x x"]
    text = ("\n".join(rows).replace(" ", "\t") + "\n\n").encode()
    assert written(read(text)) == text


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (
            SAMPLE.encode().replace("ñ".encode(), b"\xf1", 1),
            ":3: expected UTF-8, found byte 0xf1 at position",
        ),
        (SAMPLE.encode()[:-40] + b"\xd8\n", "expected UTF-8, found byte 0xd8"),
        (SAMPLE.encode().replace(b"\n", b"\r"), ":1: found a carriage return inside of the comment"),
        (
            SAMPLE.encode().replace(b"nosotros", b"nos\rotros"),
            ":6: found a carriage return inside of the line",
        ),
        (SAMPLE.encode("utf-16"), ":1: expected UTF-8, found byte 0xff"),
        (SAMPLE.encode().replace(b"\t", b"    "), ":4: found a line without tabs"),
        (b"\0" * 100, ":1: found a line without tabs"),
        (b"\n\n", "<stream>: the file has no sentence"),
    ],
)
def test_damaged_bytes_are_named_with_their_line(data: bytes, words: str) -> None:
    with pytest.raises(FileFormatError) as caught:
        read(data)
    assert words in str(caught.value)


def test_comments_after_the_last_sentence_are_not_lost_without_a_word() -> None:
    with pytest.warns(CommentsDropped, match=":28: the file ends in comments without a sentence"):
        read(SAMPLE.encode() + b"# the end\n")


def test_a_sentence_of_5000_words() -> None:
    rows = [f"{n}\tw{n}\t_\tX\t_\t_\t{n - 1}\tdep\t_\t_" for n in range(1, 5001)]
    text = ("\n".join(rows) + "\n\n").encode()
    [sentence] = read(text)
    assert len(sentence.words) == 5000
    assert written([sentence]) == text


# ---- mutants


def mutant(rng: random.Random, text: bytes) -> bytes:
    """The text with a few edits of bytes, columns and lines."""
    for _ in range(rng.choice([1, 1, 1, 2, 5])):
        text = rng.choice(EDITS)(rng, text)
    return text


def change_byte(rng: random.Random, text: bytes) -> bytes:
    at = rng.randrange(len(text) + 1)
    new = rng.choice(
        [b"", bytes([rng.randrange(256)]), rng.choice([b"\t", b"\n", b"\r\n", b"\0", b" ", b"-", b"."])]
    )
    return text[:at] + new + text[at + rng.randrange(2) :]


def cut(rng: random.Random, text: bytes) -> bytes:
    begin = rng.randrange(len(text) + 1)
    return text[:begin] + text[begin + rng.randrange(60) :]


def change_lines(rng: random.Random, text: bytes) -> bytes:
    lines = text.split(b"\n")
    at, other = rng.randrange(len(lines)), rng.randrange(len(lines))
    action = rng.randrange(4)
    if action == 0:
        del lines[at]
    elif action == 1:
        lines.insert(at, lines[other])
    elif action == 2:
        lines[at], lines[other] = lines[other], lines[at]
    else:
        lines.insert(at, rng.choice([b"", b"#", b"# x = y", b"\t" * 9, b"1\t_", b" "]))
    return b"\n".join(lines)


def change_column(rng: random.Random, text: bytes) -> bytes:
    lines = text.split(b"\n")
    at = rng.randrange(len(lines))
    columns = lines[at].split(b"\t")
    place = rng.randrange(len(columns))
    values = [
        b"",
        b"_",
        b"0",
        b"1",
        b"-1",
        b"01",
        b"99",
        b"2-3",
        b"3-2",
        b"1.1",
        b"0.0",
        b"9" * 12,
        "²".encode(),
        b"#",
    ]
    action = rng.randrange(3)
    if action == 0:
        columns[place] = rng.choice(values)
    elif action == 1:
        del columns[place]
    else:
        columns.insert(place, rng.choice(values))
    lines[at] = b"\t".join(columns)
    return b"\n".join(lines)


EDITS = [change_byte, cut, change_lines, change_column]


def answer(data: bytes, name: str) -> str:
    """What reading a mutant gives: "error" with file and line, or "sentences" from which no line is lost."""
    stream = io.BytesIO(data)
    stream.name = name
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", CommentsDropped)
            sentences = list(read_conllu(stream))
    except (FileFormatError, CommentsDropped) as error:
        found = error
    else:
        check_nothing_is_lost(data, sentences)
        return "sentences"
    assert re.match(rf"{re.escape(name)}(:\d+: |: the file has no sentence)", str(found))
    return "error" if isinstance(found, FileFormatError) else "warning"


def check_nothing_is_lost(data: bytes, sentences: list[Sentence]) -> None:
    """Every line that is not blank is written again, and each word was read where it says."""
    lines = [line.removesuffix(b"\r") for line in data.removeprefix(b"\xef\xbb\xbf").split(b"\n")]
    expected = [line for line in lines if line.strip(b" \t")]
    assert [line for line in written(sentences).split(b"\n") if line] == expected
    for sentence in sentences:
        for number, word in enumerate(sentence.words, 1):
            line = int(sentence.place(number).rpartition(":")[2])
            assert lines[line - 1].decode().split("\t")[1] == word.form


def run_mutants(text: bytes, n: int, seed: int) -> dict[str, int]:
    rng = random.Random(seed)
    counts = {"error": 0, "warning": 0, "sentences": 0}
    for _ in range(n):
        counts[answer(mutant(rng, text), "mutant.conllu")] += 1
    return counts


def test_300_mutants() -> None:
    counts = run_mutants(SAMPLE.encode(), 300, 1)
    assert min(counts["error"], counts["sentences"]) > 50  # both kinds of answers were checked


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
def test_10000_mutants(seed: int) -> None:
    counts = run_mutants(SAMPLE.encode(), 1000, 100 + seed)
    assert min(counts["error"], counts["sentences"]) > 100
