"""`python -m benchmarks.chinese_names`: persons, places and organisations of MSRA, with words and lists of packages.

A chain over characters that reads, beside characters and pairs of them: the most probable cut into words by jieba's
dictionary (place in the word, part of speech, the word and its neighbours), Brown clusters of these words, learnt from the
training sentences, the gazetteers of places and organisations, and surnames (Faker). Labels are written as IOBES. After
that, a name of several characters that is found somewhere is also found where its characters occur outside of names, in
sentences nearby ("repeated"). `--held-out` tests on the last sentences of the training data; uses of the test file are
logged.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from benchmarks.chinese_words import WordCutter, character_rows, surnames
from benchmarks.gazetteers import read_list
from benchmarks.machine import machine
from benchmarks.memory import peak_mb
from benchmarks.msra import TEST, Corpus
from benchmarks.name_types import ORGANISATION, without_marks
from benchmarks.use_log import log_test
from crfkit import CRF, AdaGrad, Clusters, Lexicon
from crfkit.evaluation import SpanReport, span_report, spans
from crfkit.features import Resource, learn_clusters
from crfkit.structures import segment_labels

ITERATIONS = 5  # passes over the training sentences
CLASSES = 500
LAST = 4_000  # sentences that are held out
NEAR = 100  # sentences on each side in which a name is looked for again
QUICK = 300
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


def template(lexicon: Lexicon) -> str:
    """All lines."""
    return "\n".join([*_characters(), *_words(), *_clusters("brown"), *_lists(lexicon), "B"])


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


def learned_clusters(rows: Rows) -> Clusters:
    """Of the words of the training sentences."""
    texts = [[row[3] for row in x if row[1][0] in "BS"] for x in rows]
    return learn_clusters(texts, CLASSES, min_count=3)


def repeated(texts: Sequence[str], labels: Sequence[Sequence[str]]) -> list[list[str]]:
    """Names found again where their characters are outside of names, in sentences nearby.

    Persons and places of three characters or more count, with the type that they have most often nearby.
    """
    places = defaultdict[str, list[tuple[int, str]]](list)
    for n, (text, found) in enumerate(zip(texts, labels, strict=True)):
        for span in spans(found, "IOBES"):
            if span.end - span.start > 2 and span.label != ORGANISATION:
                places[text[span.start : span.end]].append((n, span.label))
    longest = max(map(len, places), default=0)
    changed = []
    for n, (text, found) in enumerate(zip(texts, labels, strict=True)):
        new = list(found)
        for start in range(len(text)):
            for end in range(min(len(text), start + longest), start + 2, -1):
                if text[start:end] not in places or any(label != "O" for label in new[start:end]):
                    continue
                types = Counter(label for m, label in places[text[start:end]] if abs(m - n) <= NEAR)
                if types:
                    kind = types.most_common(1)[0][0]
                    new[start:end] = map(str, segment_labels(kind, end - start, "iobes"))
        changed.append(new)
    return changed


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
    cutter, known = WordCutter.read(), surnames()
    X, X_test = (
        [character_rows(text, cutter.cut(text), known) for text in part.texts] for part in (train, test)
    )
    lists = gazetteer()
    resources: dict[str, Resource] = {"lists": lists, "brown": learned_clusters(X)}
    print(f"features: {time.process_time() - began:.0f} CPU s", file=sys.stderr, flush=True)
    crf = CRF(
        features=template(lists),
        optimizer=AdaGrad(max_iterations=iterations, rate=0.1),
        l2=l2,
        min_count=2,
        resources=resources,
        n_threads=1,
    )
    crf.fit(X, train.types)
    print(f"trained: {time.process_time() - began:.0f} CPU s", file=sys.stderr, flush=True)
    gold = [without_marks(labels) for labels in test.types]
    print("| | precision, % | recall, % | F1, % | persons | places | organisations |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    for name, decode in (("best labels", "viterbi"), ("highest expected F1", "f1")):
        found = [without_marks(labels) for labels in crf.predict(X_test, decode=decode)]
        for what, labels in ((name, found), (f"{name}, repeated", repeated(test.texts, found))):
            report = span_report(gold, labels, "IOBES")
            print(row(what, report), flush=True)
            if asked is not None:
                log_test(asked, f"chinese_names, {what}", report.overall.f1)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.chinese_names", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--quick", action="store_true", help="a smoke test on a part of the data")
    parser.add_argument(
        "--held-out", action="store_true", help=f"test on the last {LAST:,} training sentences"
    )
    parser.add_argument("--share", type=int, help="only so many training sentences, the first ones")
    parser.add_argument("--l2", type=float, default=L2["default"], help="penalty of all but characters")
    parser.add_argument("--character-l2", type=float, default=L2["character"], help="penalty of characters")
    parser.add_argument("--iterations", type=int, default=ITERATIONS)
    given = parser.parse_args(arguments)
    share = QUICK if given.quick else given.share
    train = Corpus.read("msra_train.txt", share if given.quick else None)
    if given.held_out or given.quick:
        n = len(train.texts) - (QUICK // 3 if given.quick else LAST)
        test = train.part(range(n, len(train.texts)))
        train = train.part(range(n if share is None else min(n, share)))
    else:
        test = Corpus.read("msra_test.txt", None)
        train = train.part(range(share or len(train.texts)))
    print(" ".join(f"{key} {value}" for key, value in machine().items()))
    print(f"{len(train.texts):,} sentences to learn from, {len(test.texts):,} to test on")
    asked = None if given.held_out or given.quick else TEST
    measure(train, test, {"default": given.l2, "character": given.character_l2}, given.iterations, asked)
    print(f"most memory: {peak_mb():,.0f} MB")


if __name__ == "__main__":
    main()
