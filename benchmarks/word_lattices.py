"""Word segmentation and tagging on the Japanese data of `ja_gsd`, beside `mecab-cost-train` on the same sources.

    python -m benchmarks.word_lattices sources FOLDER   the sources of a dictionary without costs, for both
    python -m benchmarks.word_lattices train FOLDER     seconds an iteration and the objective of both
    python -m benchmarks.word_lattices folds FOLDER     word F1 by cross-validation on train, for several C
    python -m benchmarks.word_lattices test FOLDER C    word F1 and word + POS F1 on test: asked once

MeCab's tools come with Debian's packages mecab, mecab-utils and libmecab-dev.
"""

from __future__ import annotations

import dataclasses
import lzma
import os
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from crfkit import LBFGS
from crfkit.compat import read_mecab, write_mecab
from crfkit.evaluation import path_counts
from crfkit.features import split_fields
from crfkit.models import WordSegmenter

DATA = Path(os.environ.get("CRFKIT_DATA", "data")) / "ja_gsd"
TOOLS = Path("/usr/lib/mecab")
N_FIELDS = 4  # parts of a part of speech
N_THREADS = int(os.environ.get("THREADS", "2"))
N_FOLDS = 5
Sentence = list[tuple[str, tuple[str, ...]]]

CHARACTERS = """\
DEFAULT 0 1 0
SPACE 0 1 0
KANJI 0 0 2
SYMBOL 1 1 0
NUMERIC 1 1 0
ALPHA 1 1 0
HIRAGANA 0 1 2
KATAKANA 1 1 2
KANJINUMERIC 1 1 0
0x0020 SPACE
0x0021..0x002F SYMBOL
0x0030..0x0039 NUMERIC
0x003A..0x0040 SYMBOL
0x0041..0x005A ALPHA
0x005B..0x0060 SYMBOL
0x0061..0x007A ALPHA
0x007B..0x007E SYMBOL
0x00A1..0x00BF SYMBOL
0x00C0..0x02AF ALPHA
0x2000..0x206F SYMBOL
0x2190..0x27BF SYMBOL
0x3000..0x303F SYMBOL
0x3005 KANJI
0x3041..0x309F HIRAGANA
0x30A1..0x30FF KATAKANA
0x30FC KATAKANA HIRAGANA
0x4E00..0x9FFF KANJI
0xFF01..0xFF0F SYMBOL
0xFF10..0xFF19 NUMERIC
0xFF21..0xFF3A ALPHA
0xFF41..0xFF5A ALPHA
0x4E00 KANJINUMERIC KANJI
0x4E8C KANJINUMERIC KANJI
0x4E09 KANJINUMERIC KANJI
"""
UNKNOWN = {
    "DEFAULT": ["補助記号-一般", "名詞-固有名詞-一般"],
    "SPACE": ["補助記号-一般"],
    "KANJI": [
        "名詞-普通名詞-一般",
        "名詞-固有名詞-人名-一般",
        "名詞-固有名詞-地名-一般",
        "名詞-普通名詞-サ変可能",
    ],
    "SYMBOL": ["補助記号-一般"],
    "NUMERIC": ["名詞-数詞"],
    "ALPHA": ["名詞-普通名詞-一般", "名詞-固有名詞-一般"],
    "HIRAGANA": ["名詞-普通名詞-一般", "副詞", "動詞-一般-五段-ラ行"],
    "KATAKANA": [
        "名詞-普通名詞-一般",
        "名詞-固有名詞-一般",
        "名詞-固有名詞-人名-一般",
        "名詞-固有名詞-地名-一般",
    ],
    "KANJINUMERIC": ["名詞-数詞"],
}
TEMPLATES = """\
UNIGRAM U0:%F[0]
UNIGRAM U1:%F[0],%F?[1]
UNIGRAM U2:%F[0],%F[1],%F?[2]
UNIGRAM U3:%F[0],%F[1],%F[2],%F?[3]
UNIGRAM U4:%F[0],%F[1],%F[2],%F[3],%F?[4]
UNIGRAM U5:%F?[4]
UNIGRAM U6:%F[0],%F[1],%t
UNIGRAM U7:%F[0],%F[1],%F?[5]
UNIGRAM U8:%F[0],%F[1],%F?[6]
UNIGRAM U9:%F[0],%F[1],%F[2],%F?[5],%F?[6]
BIGRAM B0:%L[0]/%R[0]
BIGRAM B1:%L[0],%L?[1]/%R[0]
BIGRAM B2:%L[0]/%R[0],%R?[1]
BIGRAM B3:%L[0],%L[1]/%R[0],%R[1]
BIGRAM B4:%L[0],%L[1],%L[2],%L[3]/%R[0],%R[1],%R[2],%R[3]
BIGRAM B5:%L[0],%L[1],%L[2],%L[3],%L?[4]/%R[0],%R[1]
BIGRAM B6:%L[0],%L[1]/%R[0],%R[1],%R[2],%R[3],%R?[4]
BIGRAM B7:%L[0],%L[1],%L[2],%L[3],%L?[4]/%R[0],%R[1],%R[2],%R[3],%R?[4]
"""
REWRITING = """\
[unigram rewrite]
*,*,*,*,*,*,*\t$1,$2,$3,$4,$5,$6,$7
[left rewrite]
(助詞|助動詞),*,*,*,*\t$1,$2,$3,$4,$5
*,*,*,*,*\t$1,$2,$3,$4,*
[right rewrite]
(助詞|助動詞),*,*,*,*\t$1,$2,$3,$4,$5
*,*,*,*,*\t$1,$2,$3,$4,*
"""


def fields_of(form: str, part_of_speech: str) -> tuple[str, ...]:
    """The parts of a part of speech, the form, its length, and the kinds of its characters; `*`: of unknown words."""
    parts = part_of_speech.split("-", N_FIELDS - 1)
    if form == "*":
        shape = ["*", "*", "*"]
    else:
        shape = [form, str(min(len(form), 5)), re.sub(r"(.)\1+", r"\1", "".join(map(kind_of, form)))]
    return (*parts, *["*"] * (N_FIELDS - len(parts)), *shape)


def kind_of(character: str) -> str:
    """A letter for the script of a character."""
    for kind, first, last in (
        ("h", "ぁ", "ゟ"),
        ("k", "ァ", "ヿ"),
        ("c", "一", "鿿"),
        ("a", "A", "z"),
        ("n", "0", "9"),
    ):
        if first <= character <= last:
            return kind
    return "s"


def read_sentences(name: str) -> list[Sentence]:
    """The sentences of train or test."""
    sentences: list[Sentence] = [[]]
    with lzma.open(DATA / f"{name}.txt.xz", "rt", encoding="utf-8") as lines:
        for line in lines:
            if line.strip():
                form, _, part_of_speech = line.rstrip("\n").split("\t")
                sentences[-1].append((form, fields_of(form, part_of_speech)))
            elif sentences[-1]:
                sentences.append([])
    return [sentence for sentence in sentences if sentence]


def quoted(field: str) -> str:
    return f'"{field.replace(chr(34), chr(34) * 2)}"' if {*field} & {",", '"'} else field


def csv_line(form: str, fields: Sequence[str]) -> str:
    return ",".join([quoted(form), "0", "0", "0", *map(quoted, fields)]) + "\n"


def write_sources(folder: Path) -> None:
    """The sources of a dictionary without costs, and the training sentences as `mecab-cost-train` reads them."""
    folder.mkdir(parents=True, exist_ok=True)
    with lzma.open(DATA / "lexicon.tsv.xz", "rt", encoding="utf-8") as lines:
        entries = [line.rstrip("\n").split("\t") for line in lines]
    (folder / "lex.csv").write_text("".join(csv_line(form, fields_of(form, pos)) for form, pos in entries))
    unknown = [(name, fields_of("*", pos)) for name, several in UNKNOWN.items() for pos in several]
    (folder / "unk.def").write_text("".join(csv_line(name, fields) for name, fields in unknown))
    (folder / "char.def").write_text(CHARACTERS)
    (folder / "feature.def").write_text(TEMPLATES)
    (folder / "rewrite.def").write_text(REWRITING)
    (folder / "matrix.def").write_text("1 1\n0 0 0\n")
    (folder / "dicrc").write_text(
        f"cost-factor = 800\nbos-feature = BOS/EOS,*,*,*,*,*,*\neval-size = {N_FIELDS}\nunk-eval-size = {N_FIELDS}\n"
        "config-charset = UTF-8\n"
    )
    write_corpus(folder / "corpus", read_sentences("train"))
    run_tool("mecab-dict-index", "-d", folder, "-o", folder, "-f", "utf-8", "-t", "utf-8")


def write_corpus(path: Path, sentences: Sequence[Sentence]) -> None:
    words = (
        "".join(f"{form}\t{','.join(map(quoted, fields))}\n" for form, fields in one) for one in sentences
    )
    path.write_text("".join(f"{one}EOS\n" for one in words))


def run_tool(name: str, *arguments: Any) -> str:
    """What one of MeCab's tools prints."""
    return subprocess.run(
        [TOOLS / name, *map(str, arguments)], check=True, capture_output=True, text=True
    ).stdout


def untrained(folder: Path, c: float, **settings: Any) -> WordSegmenter:
    """Ours on the same sources; MeCab's objective has the penalty |w|² / 2 C."""
    dictionary = dataclasses.replace(read_mecab(folder).dictionary, costs=None)
    return WordSegmenter(dictionary, l2=1.0 / c, n_threads=N_THREADS, **settings)


class Run(NamedTuple):
    """The objective at each evaluation, and seconds between evaluations: by the clock and of all processors."""

    n_weights: int
    values: list[float]
    n_evaluations: float
    seconds: float
    cpu_seconds: float

    def __str__(self) -> str:
        n = self.n_evaluations - 1
        return (
            f"{self.n_weights:,} weights, objective {self.values[0]:.5f} at 0, {self.values[-1]:.5f} after "
            f"{self.n_evaluations:.0f} evaluations; {1000 * self.seconds / n:.1f} ms each, "
            f"{1000 * self.cpu_seconds / n:.1f} ms of the processors"
        )


def train_mecab(folder: Path, corpus: Path, c: float, eta: float) -> Run:
    """MeCab's training; the sentences are read before the first evaluation."""
    options = ["-d", folder, "-c", c, "-e", eta, "-p", N_THREADS, corpus, folder / "model"]
    command = ["stdbuf", "-oL", str(TOOLS / "mecab-cost-train"), *map(str, options)]
    values, times, n_features = [], [], 0
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, errors="replace") as process:
        assert process.stdout is not None
        for line in process.stdout:
            if found := re.search(r"target=([\d.]+)", line):
                values.append(float(found[1]))
                times.append((time.perf_counter(), *cpu_times(process.pid)))
            elif found := re.search(r"Number of features:\s+(\d+)", line):
                n_features = int(found[1])
    first, last = times[0], times[-1]
    return Run(n_features, values, len(values), last[0] - first[0], last[1] - first[1])


def cpu_times(process: int) -> tuple[float]:
    """Seconds that the processors have worked for a process; 0 when it has just ended."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except (OSError, ProcessLookupError):
        return (0.0,)
    return (sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK"),)


def train_ours(folder: Path, c: float) -> Run:
    """The same here, to the minimum."""
    times = []

    def note(_: Any) -> None:
        times.append((time.perf_counter(), time.process_time()))

    model = untrained(folder, c, optimizer=LBFGS(max_iterations=2000, tolerance=1e-8, change=0))
    history = model.fit(read_sentences("train"), callback=note).crf_.history_
    (first, first_cpu), (last, last_cpu) = times[0], times[-1]
    values = [record.objective for record in history]
    n = history[-1].passes - history[1].passes + 1
    return Run(len(model.crf_.weights_), values, n, last - first, last_cpu - first_cpu)


def train_both(folder: Path, c: float) -> None:
    """Both, one after the other."""
    print("mecab-cost-train:", train_mecab(folder, folder / "corpus", c, 1e-9), flush=True)
    print("crfkit:", train_ours(folder, c), flush=True)


Spans = list[tuple[int, int, tuple[str, ...]]]


def spans_of(words: Sequence[tuple[str, Sequence[str]]]) -> Spans:
    """Where each word stands in the text without spaces, and its part of speech."""
    spans, at = [], 0
    for form, fields in words:
        spans.append((at, at + len(form), tuple(fields[:N_FIELDS])))
        at += len(form)
    return spans


def scores(
    gold: Sequence[Sentence], found: Sequence[Sequence[tuple[str, Sequence[str]]]]
) -> tuple[float, float]:
    """F1 of words, and of words with their parts of speech."""
    pairs = [(spans_of(right), spans_of(given)) for right, given in zip(gold, found, strict=True)]
    only_words = [([s[:2] for s in right], [s[:2] for s in given]) for right, given in pairs]
    return path_f1(only_words), path_f1(pairs)


def shown(gold: Sequence[Sentence], found: Sequence[Sequence[tuple[str, Sequence[str]]]]) -> str:
    words, both = scores(gold, found)
    return f"word F1 {words:.2f}, word and part of speech {both:.2f}"


def path_f1(pairs: Sequence[tuple[Any, Any]]) -> float:
    return 100 * path_counts([gold for gold, _ in pairs], [found for _, found in pairs]).f1


def text_of(sentence: Sentence) -> str:
    return "".join(form for form, _ in sentence)


def analyse(model: WordSegmenter, sentences: Sequence[Sentence]) -> list[list[tuple[str, tuple[str, ...]]]]:
    found = model.predict([text_of(sentence) for sentence in sentences])
    return [[(word.form, word.fields) for word in words] for words in found]


def folds(folder: Path) -> None:
    """Word F1 and word + POS F1 of five folds of train, for several C."""
    sentences = read_sentences("train")
    for c in (1.0, 3.0, 10.0):
        found: list[Any] = [None] * len(sentences)
        for k in range(N_FOLDS):
            model = untrained(folder, c).fit([s for i, s in enumerate(sentences) if i % N_FOLDS != k])
            held_out = [i for i in range(len(sentences)) if i % N_FOLDS == k]
            for i, words in zip(held_out, analyse(model, [sentences[i] for i in held_out]), strict=True):
                found[i] = words
        print(f"C = {c}: {shown(sentences, found)}")


def run_mecab(folder: Path, sentences: Sequence[Sentence]) -> list[list[tuple[str, tuple[str, ...]]]]:
    """MeCab's analyses by a compiled dictionary."""
    (folder / "mecabrc").write_text("")
    command: list[Any] = ["mecab", "-r", folder / "mecabrc", "-d", folder, "-b", "1000000"]
    text = "".join(f"{text_of(sentence)}\n" for sentence in sentences)
    printed = subprocess.run(command, check=True, capture_output=True, input=text, encoding="utf-8").stdout
    found: list[Any] = [[]]
    for line in printed.splitlines():
        if line == "EOS":
            found.append([])
        else:
            form, fields = line.split("\t")
            found[-1].append((form, split_fields(fields)))
    return found[:-1]


def test(folder: Path, c: float) -> None:
    """F1 of both on test, and MeCab with a dictionary that was written here."""
    sentences = read_sentences("test")
    begin = time.perf_counter()
    model = untrained(folder, c).fit(read_sentences("train"))
    print(f"crfkit: trained in {time.perf_counter() - begin:.1f} s with reading;", end=" ")
    print(shown(sentences, analyse(model, sentences)))
    ours = folder / "crfkit"
    write_mecab(model, ours)
    run_tool("mecab-dict-index", "-d", ours, "-o", ours, "-f", "utf-8", "-t", "utf-8")
    by_mecab, by_costs = run_mecab(ours, sentences), analyse(model.with_costs(), sentences)
    same = sum(a == b for a, b in zip(by_mecab, by_costs, strict=True))
    print(
        f"MeCab with the dictionary written here: {same} of {len(sentences)} analyses are those of our costs;",
        end=" ",
    )
    print(shown(sentences, by_mecab))
    train_mecab(folder, folder / "corpus", c, 5e-5)
    theirs = folder / "mecab"
    theirs.mkdir(exist_ok=True)
    run_tool("mecab-dict-gen", "-d", folder, "-o", theirs, "-m", folder / "model")
    run_tool("mecab-dict-index", "-d", theirs, "-o", theirs, "-f", "utf-8", "-t", "utf-8")
    print("mecab-cost-train:", shown(sentences, run_mecab(theirs, sentences)))


if __name__ == "__main__":
    command, folder, *rest = sys.argv[1:]
    c = float(rest[0]) if rest else 1.0
    match command:
        case "sources":
            write_sources(Path(folder))
        case "train":
            train_both(Path(folder), c)
        case "folds":
            folds(Path(folder))
        case "test":
            test(Path(folder), c)
