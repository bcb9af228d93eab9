"""`python -m benchmarks.chinese_names`: persons, places and organisations of MSRA, with words and lists of packages.

A chain over characters that reads, beside characters and pairs of them: the most probable cut into words by jieba's
dictionary (place in the word, part of speech, the word and its neighbours), Brown clusters of these words and of the
characters, learnt from the training sentences, the gazetteers of places and organisations, surnames (Faker), and the names
of training sentences far away. Labels are written as IOBES. A second chain reads, beside all that, what the first one
finds: its labels and how sure it is of them, the names that it finds in sentences nearby, and the probabilities of names
around pairs of characters there; for training, each third of the training sentences is labelled by a chain that learnt
from the others. There are two second chains, which see the sentences in different orders; spans get the mean of their
probabilities. `--held-out` tests on every tenth block of the training sentences, whose
text has about as many pairs and triples of characters in common with the rest as the test file has; uses of the test file
are logged.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Sequence

from benchmarks.chinese_words import WordCutter, character_rows, surnames
from benchmarks.gazetteers import read_list
from benchmarks.known_names import FoundNames, KnownNames
from benchmarks.machine import machine
from benchmarks.memory import peak_mb
from benchmarks.msra import TEST, Corpus
from benchmarks.name_types import without_marks
from benchmarks.nearby_names import (
    LEAST,
    Found,
    TypesNearby,
    choose_spans,
    mean_spans,
    pairs_in_names,
    sure_labels,
)
from benchmarks.use_log import log_test
from crfkit import CRF, AdaGrad, Lexicon, Span
from crfkit.evaluation import SpanReport, span_report
from crfkit.evaluation import spans as read_spans
from crfkit.features import Resource, learn_clusters

ITERATIONS = 5  # passes over the training sentences
CLASSES = 500
CHARACTER_CLASSES = 200
BLOCK = 500  # neighbouring sentences that are held out, or labelled by one chain, together
FOLDS = 3  # of the training sentences, for the second chain
NEAR = 60  # sentences on each side in which pairs of characters are looked for
QUICK = 2_000
SEEDS = (0, 1)  # of the second chains, whose mean probabilities count
WAYS = {"likely spans": "spans", "highest expected F1": "f1"}
L2 = {"default": 2.0, "character": 0.3}

Rows = list[list[tuple[str, ...]]]


def _characters() -> Iterator[str]:
    for at in range(-2, 3):
        yield f"character=[{at}]%x[{at},0]"
    for at in range(-2, 2):
        yield f"character=[{at},{at + 1}]%x[{at},0]|%x[{at + 1},0]"


def _words() -> Iterator[str]:
    """Lines for places in words, parts of speech, words and surnames."""
    for at in range(-2, 3):
        yield f"place[{at}]=%x[{at},1]"
        yield f"tag[{at}]=%x[{at},2]"
        yield f"surname[{at}]=%x[{at},6]"
    for name, column in (("place", 1), ("tag", 2)):
        yield f"{name}[-1,0]=%x[-1,{column}]|%x[0,{column}]"
        yield f"{name}[0,1]=%x[0,{column}]|%x[1,{column}]"
        yield f"{name}[-1,1]=%x[-1,{column}]|%x[0,{column}]|%x[1,{column}]"
    yield "places=%x[-2,1]|%x[-1,1]|%x[0,1]|%x[1,1]|%x[2,1]"
    yield "character|place=%x[0,0]|%x[0,1]"
    for at in range(-2, 1):
        yield f"surname[{at}]|place=%x[{at},6]|%x[{at},1]|%x[0,1]|%x[1,1]"
    for name, column in (("word", 3), ("before", 4), ("after", 5)):
        yield f"{name}=%x[0,{column}]|%x[0,1]"
    yield "before|tag=%x[0,4]|%x[0,2]"
    yield "after|tag=%x[0,5]|%x[0,2]"


def _clusters(name: str) -> Iterator[str]:
    """Lines for clusters of the word, and of those before and after it."""
    for length in (4, 6, 10, 20):
        for column in (3, 4, 5):
            yield f"{name}{length}[{column - 3}]=%cluster[0,{column},{name},{length}]|%x[0,1]"
    yield f"{name}|{name}=%cluster[0,4,{name},10]|%cluster[0,5,{name},10]|%x[0,1]"


def _lists(lexicon: Lexicon) -> Iterator[str]:
    for one in lexicon.lists:
        for at in range(-1, 2):
            yield f"{one}[{at}]=%in[{at},0,lists,{one}]"
        yield f"{one}|place=%in[0,0,lists,{one}]|%x[0,1]"


def _character_clusters(name: str) -> Iterator[str]:
    """Lines for clusters of the characters around."""
    for length in (4, 7, 20):
        one = {at: f"%cluster[{at},0,{name},{length}]" for at in range(-2, 3)}
        for first, last in (*((at, at) for at in one), (-1, 0), (0, 1), (-1, 1)):
            part = "|".join(one[at] for at in range(first, last + 1))
            yield f"{name}{length}[{first},{last}]={part}"


def _names(name: str, column: int) -> Iterator[str]:
    """Lines for a column of names known from elsewhere."""
    for at in range(-1, 2):
        yield f"{name}[{at}]=%x[{at},{column}]"
    yield f"{name}[-1,0]=%x[-1,{column}]|%x[0,{column}]"
    yield f"{name}[0,1]=%x[0,{column}]|%x[1,{column}]"
    yield f"{name}|place=%x[0,{column}]|%x[0,1]"
    yield f"{name}|character=%x[0,{column}]|%x[0,0]"


def _found() -> Iterator[str]:
    """Lines for what the first chain found."""
    yield from _names("near", 8)
    yield "near|known=%x[0,8]|%x[0,7]"
    for at in range(-1, 2):
        yield f"nearest[{at}]=%x[{at},9]"
        yield f"same[{at}]=%x[{at},10]"
    yield "same|place=%x[0,10]|%x[0,1]|%x[1,1]"
    yield "same|character[1]=%x[0,10]|%x[1,0]"
    for at in range(-2, 3):
        yield f"label[{at}]=%x[{at},11]"
    yield "label[-1,1]=%x[-1,11]|%x[0,11]|%x[1,11]"
    yield "label|character=%x[0,11]|%x[0,0]"
    yield from _probabilities()


def _probabilities() -> Iterator[str]:
    """Lines for how sure the first chain is of a label, and for names around pairs of characters nearby."""
    for at in range(-2, 3):
        yield f"sure[{at}]=%x[{at},12]"
    yield "sure[-1,1]=%x[-1,12]|%x[0,12]|%x[1,12]"
    yield "sure|character=%x[0,12]|%x[0,0]"
    yield "sure|place=%x[0,12]|%x[0,1]"
    for at in range(-2, 2):
        yield f"pair[{at}]=%x[{at},13]"
    yield "pair[-1,0]=%x[-1,13]|%x[0,13]"
    yield "pair[-1,1]=%x[-1,13]|%x[0,13]|%x[1,13]"
    yield "pair|label=%x[-1,13]|%x[0,13]|%x[0,11]"


def template(lexicon: Lexicon, *, second: bool) -> str:
    """All lines; those of the second chain read more columns."""
    lines = [*_characters(), *_words(), *_clusters("brown"), *_character_clusters("letters")]
    lines += [*_lists(lexicon), *_names("known", 7)]
    return "\n".join([*lines, *(_found() if second else ()), "B"])


def gazetteer() -> Lexicon:
    """Places, organisations and how both end."""
    files = {
        "place": ("THUOCL_diming.txt", "jieba_ns.txt"),
        "organisation": ("jieba_nt.txt",),
        "place_end": ("suffix_ns.tsv",),
        "organisation_end": ("suffix_nt.tsv",),
    }
    lists = {name: set().union(*map(read_list, some)) for name, some in files.items()}
    return Lexicon.build(lists, split=list)


def learned_clusters(rows: Rows) -> dict[str, Resource]:
    """Of the words and of the characters of the training sentences."""
    words = [[row[3] for row in x if row[1][0] in "BS"] for x in rows]
    characters = [[row[0] for row in x] for x in rows]
    return {
        "brown": learn_clusters(words, CLASSES, min_count=3),
        "letters": learn_clusters(characters, CHARACTER_CLASSES, min_count=5),
    }


class Tagger:
    """The first chain, and the second ones."""

    def __init__(self, train: Corpus, l2: dict[str, float], iterations: int) -> None:
        """Train them."""
        self._l2, self._iterations = l2, iterations
        self._cutter, self._surnames = WordCutter.read(), surnames()
        self._lists = gazetteer()
        labels = [without_marks(some) for some in train.types]
        self._known = KnownNames(train.texts, labels)
        X = self._rows(train.texts, train=True)
        self._resources: dict[str, Resource] = {"lists": self._lists, **learned_clusters(X)}
        spans: list[list[Span]] = [[] for _ in X]
        for fold in range(FOLDS):
            inside = [n for n in range(len(X)) if n // BLOCK % FOLDS == fold]
            outside = [n for n in range(len(X)) if n // BLOCK % FOLDS != fold]
            chain = self._train([X[n] for n in outside], [train.types[n] for n in outside])
            for n, some in zip(inside, found_by(chain, [X[n] for n in inside]), strict=True):
                spans[n] = some
        self.first = self._train(X, train.types)
        X = with_found(X, train.texts, spans)
        self.second = [self._train(X, train.types, second=True, seed=seed) for seed in SEEDS]

    def _rows(self, texts: Sequence[str], *, train: bool) -> Rows:
        rows = []
        for n, text in enumerate(texts):
            known = self._known.column(text, n if train else None)
            words = character_rows(text, self._cutter.cut(text), self._surnames)
            rows.append([(*row, name) for row, name in zip(words, known, strict=True)])
        return rows

    def _train(self, X: Rows, y: list[list[str]], *, second: bool = False, seed: int = 0) -> CRF:
        began = time.process_time()
        crf = CRF(
            features=template(self._lists, second=second),
            optimizer=AdaGrad(max_iterations=self._iterations, rate=0.1, random_state=seed),
            l2=self._l2,
            min_count=2,
            resources=self._resources,
            n_threads=1,
        ).fit(X, y)
        print(f"trained: {time.process_time() - began:.0f} CPU s", file=sys.stderr, flush=True)
        return crf

    def predict(self, texts: Sequence[str]) -> Iterator[tuple[str, list[list[Span]]]]:
        """The names of the sentences of a file, in several ways: what it is called, and the names."""
        X = self._rows(texts, train=False)
        found = found_by(self.first, X)
        yield "first chain, likely spans", choose_spans(found, "spans")
        X = with_found(X, texts, found)
        each = [found_by(chain, X) for chain in self.second]
        yield "one second chain, likely spans", choose_spans(each[0], "spans")
        for name, decode in WAYS.items():
            yield name, choose_spans(mean_spans(each), decode)


def with_found(X: Rows, texts: Sequence[str], found: Found) -> Rows:
    """Rows with columns for the names that the first chain found, with their probabilities."""
    labels = [sure_labels(len(x), some) for x, some in zip(X, found, strict=True)]
    names = FoundNames(texts, [[label for label, _ in some] for some in labels])
    pairs = TypesNearby(pairs_in_names(texts, found), found, length=2)
    rows = []
    for n, x in enumerate(X):
        columns = zip(x, names.columns(n), labels[n], pairs.column(n, NEAR), strict=True)
        rows.append([(*row, *near, *label, pair) for row, near, label, pair in columns])
    return rows


def found_by(chain: CRF, X: Rows) -> list[list[Span]]:
    """All spans with their probabilities, without the marks between names."""
    return [[span for span in some if "+" not in str(span.label)] for some in chain.predict_spans(X, LEAST)]


def row(name: str, report: SpanReport) -> str:
    """Of a table: precision, recall and F1 of all names, and the F1 of each type."""
    overall = report.overall
    figures = (
        overall.precision,
        overall.recall,
        overall.f1,
        *(report.types[kind].f1 for kind in ("PER", "LOC", "ORG")),
    )
    return f"| {name} | {' | '.join(f'{100 * figure:.2f}' for figure in figures)} |"


def measure(train: Corpus, test: Corpus, l2: dict[str, float], iterations: int, asked: str | None) -> None:
    """Train and test, and print a row for each way to decode."""
    began = time.process_time()
    tagger = Tagger(train, l2, iterations)
    print(f"all chains: {time.process_time() - began:.0f} CPU s", file=sys.stderr, flush=True)
    gold = [read_spans(without_marks(labels), "IOBES") for labels in test.types]
    print("| | precision, % | recall, % | F1, % | persons | places | organisations |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    for name, found in tagger.predict(test.texts):
        report = span_report(gold, found)
        print(row(name, report), flush=True)
        if asked is not None:
            log_test(asked, f"chinese_names, {name}", report.overall.f1)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.chinese_names", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--quick", action="store_true", help="a smoke test on a part of the data")
    parser.add_argument("--held-out", action="store_true", help="test on every tenth block of training data")
    parser.add_argument("--l2", type=float, default=L2["default"], help="penalty of all but characters")
    parser.add_argument("--character-l2", type=float, default=L2["character"], help="penalty of characters")
    parser.add_argument("--iterations", type=int, default=ITERATIONS)
    given = parser.parse_args(arguments)
    train = Corpus.read("msra_train.txt", QUICK if given.quick else None)
    if given.held_out or given.quick:
        block = QUICK // 20 if given.quick else BLOCK
        held = [n // block % 10 == 9 for n in range(len(train.texts))]
        test = train.part([n for n, out in enumerate(held) if out])
        train = train.part([n for n, out in enumerate(held) if not out])
    else:
        test = Corpus.read("msra_test.txt", None)
    print(" ".join(f"{key} {value}" for key, value in machine().items()))
    print(f"{len(train.texts):,} sentences to learn from, {len(test.texts):,} to test on")
    asked = None if given.held_out or given.quick else TEST
    measure(train, test, {"default": given.l2, "character": given.character_l2}, given.iterations, asked)
    print(f"most memory: {peak_mb():,.0f} MB")


if __name__ == "__main__":
    main()
