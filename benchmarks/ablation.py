"""`python -m benchmarks.ablation`: what each group of a preset's lines, and each of its settings, is worth.

A variant is a list of edits of a preset: ``~near`` leaves a group of lines out, ``+shape`` adds one, ``suffix?10`` keeps one
for words that occur less than 10 times, ``stripped>lower`` puts
one function in the place of another, ``l2=0.5`` changes a setting, ``optimizer__rate=0.2`` one of the optimizer,
``dictionary__ending_count=60`` one of the tag dictionary, and ``order=2`` gives weights to three labels in a row that occur
three times; "" is the preset as it is. Each is trained on a part of a training file and tested on held-out blocks of it, or
on a dev file, never on a test file; ``--folds 3`` is cross-validation on a sample of the training file. One thread, CPU
seconds. What was measured before is kept in a file of results and not measured again. ``--quick`` is a smoke test.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.corpora import corpus_path
from benchmarks.measure import PROJECT, Outcome
from crfkit import (
    CRF,
    LBFGS,
    SGD,
    AdaGrad,
    AveragedPerceptron,
    Chain,
    Ngrams,
    Patterns,
    StopReason,
    TagDictionary,
)
from crfkit.data import Sentence, read_columns, read_conllu
from crfkit.evaluation import accuracy, span_report
from crfkit.features import PRESETS, Template

RESULTS = PROJECT / "benchmarks" / "results"
BLOCK, HELD_OUT = 20, 8  # sentences that stay together, and every how many such blocks is held out
QUICK = 60  # sentences
DICTIONARY = "dictionary__"
PROPER_NOUNS = "propn"
OPTIMIZERS = {"sgd": SGD, "adagrad": AdaGrad, "lbfgs": LBFGS, "perceptron": AveragedPerceptron}

Sentences = list[list[Any]]


class Data(NamedTuple):
    """What a model learns from, and what it is tested on."""

    X: Sentences
    y: Sentences
    held_out: Sentences
    right: Sentences  # labels of what is held out


class Split(NamedTuple):
    """Which blocks of a file are held out, and which are learned from."""

    step: int = HELD_OUT  # every so many blocks one is held out
    first: int = 0
    learned: int | None = None  # every so many blocks one is learned from; None: all that are not held out
    run: int = 1  # this many blocks in a row count as one: they are learned from, or held out, together

    def is_out(self, block: int) -> bool:
        """Whether a block is held out."""
        return block // self.run % self.step == self.first

    def is_learned(self, block: int) -> bool:
        """Whether a block is learned from."""
        return not self.is_out(block) if self.learned is None else block // self.run % self.learned == 0


class Corpus(NamedTuple):
    """A training file, how many of its blocks are used, and what is held out."""

    preset: str
    folder: str
    train: str
    tag: str  # what is predicted: columns of CoNLL-U, or "spans" in column files, "propn"
    part: int = 1  # every so many blocks
    dev: str | None = None  # a dev file; None: blocks are held out
    dev_part: int = 1
    split: Split = Split()
    sentences: tuple[int, int | None] = (0, None)  # of the training file that are used
    sample: int = 1  # every so many blocks of these are in its sample
    sampled: bool = False  # whether the sample alone is used

    def folds(self, n: int) -> list[Corpus]:
        """The sample of the training file, of which one block of n is held out, once each."""
        return [
            self._replace(part=1, dev=None, dev_part=1, split=Split(n, k), sampled=True) for k in range(n)
        ]


def _piece(folder: str, train: str, tag: str, sentences: tuple[int, int], quarter: int = 3) -> Corpus:
    """A part of a file, of which one quarter, in one piece, is held out."""
    begin, end = sentences
    split = Split(4, quarter, run=-(-(end - begin) // BLOCK // 4))
    return Corpus("morphology", folder, train, tag, split=split, sentences=sentences)


CORPORA = {
    "la-xpos": Corpus("morphology", "ud_latin_perseus", "la_perseus-ud-train.conllu", "xpos"),
    "la-feats": Corpus("morphology", "ud_latin_perseus", "la_perseus-ud-train.conllu", "feats"),
    "pl-xpos": Corpus("morphology", "ud_polish", "pl_mixed-train.conllu", "xpos", 2),
    "pl-joint": Corpus("morphology", "ud_polish", "pl_mixed-train.conllu", "upos+feats", 2),
    "de-joint": Corpus("morphology", "ud_german", "de_mixed-train.conllu", "upos+feats", 2),
    "grc-xpos": Corpus(
        "morphology", "ancient_greek_perseus", "agdt-train.conllu", "xpos", 10, "grc_perseus-ud-dev.conllu", 2
    ),
    "grc-full": Corpus(
        "morphology", "ancient_greek_perseus", "agdt-train.conllu", "xpos", 1, "grc_perseus-ud-dev.conllu"
    ),
    # Small treebanks of one kind of text each: of Polish PDB, of German PUD; Greek is a mixture.
    "la-small": Corpus(
        "morphology", "ud_latin_perseus", "la_perseus-ud-train.conllu", "xpos", split=Split(4)
    ),
    "pl-small": Corpus(
        "morphology", "ud_polish", "pl_mixed-train.conllu", "xpos", split=Split(3), sentences=(0, 2200)
    ),
    "de-small": Corpus(
        "morphology",
        "ud_german",
        "de_mixed-train.conllu",
        "upos+feats",
        split=Split(4),
        sentences=(1920, 2910),
    ),
    "grc-small": Corpus(
        "morphology", "ancient_greek_perseus", "agdt-train.conllu", "xpos", split=Split(40, 10, 20)
    ),
    "en-small": Corpus(
        "morphology", "ud_english_ewt", "en_ewt-ud-train.conllu", "upos+xpos+feats", split=Split(20, 5, 10)
    ),
    # One kind of text each, of which a part in one piece is held out: the last quarter (of Latin other works).
    "la-last": _piece("ud_latin_perseus", "la_perseus-ud-train.conllu", "xpos", (0, 1320)),
    "la-first": _piece("ud_latin_perseus", "la_perseus-ud-train.conllu", "xpos", (0, 1320), 0),
    "herodotus": _piece("ancient_greek_perseus", "agdt-train.conllu", "xpos", (4244, 5794)),
    "sophocles": _piece("ancient_greek_perseus", "agdt-train.conllu", "xpos", (0, 1920)),
    "homer": _piece("ancient_greek_perseus", "agdt-train.conllu", "xpos", (13821, 15421)),
    "de-lit": _piece("ud_german", "de_mixed-train.conllu", "upos+feats", (757, 1917)),
    "de-pud": _piece("ud_german", "de_mixed-train.conllu", "upos+feats", (1920, 2920)),
    "pl-pdb": _piece("ud_polish", "pl_mixed-train.conllu", "xpos", (0, 2200)),
    "pl-lfg": _piece("ud_polish", "pl_mixed-train.conllu", "xpos", (2211, 4731)),
    "en-email": _piece("ud_english_ewt", "en_ewt-ud-train.conllu", "upos+xpos+feats", (1585, 3585)),
    "de-mixed": Corpus("morphology", "ud_german", "de_mixed-train.conllu", "xpos", 2),
    "en-xpos": Corpus(
        "pos", "ud_english_ewt", "en_ewt-ud-train.conllu", "xpos", 4, "en_ewt-ud-dev.conllu", sample=5
    ),
    "en-full": Corpus("pos", "ud_english_ewt", "en_ewt-ud-train.conllu", "xpos", 1, "en_ewt-ud-dev.conllu"),
    "en-upos": Corpus(
        "pos", "ud_english_ewt", "en_ewt-ud-train.conllu", "upos", 4, "en_ewt-ud-dev.conllu", sample=5
    ),
    "la-upos": Corpus("pos", "ud_latin_perseus", "la_perseus-ud-train.conllu", "upos"),
    "pl-upos": Corpus("pos", "ud_polish", "pl_mixed-train.conllu", "upos", 2, sample=2),
    "de-xpos": Corpus("pos", "ud_german", "de_mixed-train.conllu", "xpos", 2),
    "de-upos": Corpus("pos", "ud_german", "de_mixed-train.conllu", "upos", 2, sample=2),
    "conll2000": Corpus("chunks", "conll2000", "train.txt", "spans", 3, sample=4),
    "conll2000-full": Corpus("chunks", "conll2000", "train.txt", "spans"),
    "es": Corpus("names", "conll2002", "esp.train", "spans", 3, "esp.testa"),
    "nl": Corpus("names", "conll2002", "ned.train", "spans", 5, "ned.testa"),
    "es-small": Corpus("names", "conll2002", "esp.train", "spans", 6, "esp.testa"),
    "nl-small": Corpus("names", "conll2002", "ned.train", "spans", 11, "ned.testa"),
    "es-full": Corpus("names", "conll2002", "esp.train", "spans", 1, "esp.testa"),
    "nl-full": Corpus("names", "conll2002", "ned.train", "spans", 1, "ned.testa"),
    "zh": Corpus("names", "msra", "msra_train.txt", "spans", 12),
    # The first 4,000 sentences of the file and the last 2,658, of other articles.
    "zh-far": Corpus("names", "msra", "msra_train.txt", "spans", split=Split(13, 12, 13, run=200)),
    # Proper nouns of treebanks, as names of one kind.
    "en-nouns": Corpus(
        "names", "ud_english_ewt", "en_ewt-ud-train.conllu", "propn", 3, "en_ewt-ud-dev.conllu"
    ),
    "de-nouns": Corpus("names", "ud_german", "de_mixed-train.conllu", "propn"),
    "chunk-names": Corpus("names", "conll2000", "train.txt", "spans", 3),
}


def _blocks(items: Sequence[Any], chosen: Callable[[int], bool]) -> list[Any]:
    """The items of the blocks whose numbers are chosen."""
    return [item for n, item in enumerate(items) if chosen(n // BLOCK)]


@cache
def _read(corpus: Corpus, file: str) -> list[tuple[list[Any], list[str]]]:
    """The sentences of a file: input, labels."""
    path = corpus_path(corpus.folder, file)
    if corpus.tag == "spans":
        rows = [list(zip(*sentence.rows, strict=True)) for sentence in read_columns(path)]
        return [(list(zip(*columns[:-1], strict=True)), list(columns[-1])) for columns in rows]
    if corpus.tag == PROPER_NOUNS:
        return [([w.form for w in s.words], proper_nouns(s)) for s in read_conllu(path)]
    tags = corpus.tag.split("+")

    def label(word: Any) -> str:
        return "|".join(getattr(word, tag) for tag in tags)

    return [([w.form for w in s.words], [label(w) for w in s.words]) for s in read_conllu(path)]


def proper_nouns(sentence: Sentence) -> list[str]:
    """Runs of proper nouns, as labels of BIO."""
    inside = [word.upos == "PROPN" for word in sentence.words]
    return [
        ("I-N" if before else "B-N") if own else "O"
        for before, own in zip([False, *inside[:-1]], inside, strict=True)
    ]


def read_data(corpus: Corpus, limit: int | None = None) -> Data:
    """The part of a corpus that is learned from, and what is held out."""
    begin, end = corpus.sentences
    sentences = list(islice(_read(corpus, corpus.train)[begin:end], limit))
    if corpus.sampled:
        sentences = _blocks(sentences, lambda n: n % corpus.sample == 0)
    if corpus.dev is None:
        training = _blocks(sentences, corpus.split.is_learned)
        held_out = _blocks(sentences, corpus.split.is_out)
    else:
        training, held_out = sentences, list(islice(_read(corpus, corpus.dev), limit))
    training = _blocks(training, lambda n: n % corpus.part == 0)
    held_out = _blocks(held_out, lambda n: n % corpus.dev_part == 0)
    columns = [list(part) for whole in (training, held_out) for part in zip(*whole, strict=True)]
    return Data(*columns)


def _affixes(macro: str, row: int, lengths: Iterable[int]) -> str:
    where = f"[{row}]" if row else ""
    return "".join(f"{macro}{n}{where}=%{macro}[{row},0,{n}]\n" for n in lengths)


def _near(distance: int) -> str:
    return "".join(f"near=%lower[{row},0]\n" for row in range(-distance, distance + 1) if row)


# Names of lines that make up a group, as regular expressions.
GROUPS = {
    "near": r"near",
    "pairs": r".*\|.*",
    "suffix_pairs": r"(.*\|)?suffix\d(\[.*\])?\|.*|.*\|suffix\d(\[.*\])?",
    "word_pairs": r"lower(\[.*\])?\|lower(\[.*\])?",
    "bare": r"bare",
    "bare_prefix": r"bare_prefix\d+",
    "bare_suffix": r"bare_suffix\d+",
    "bare_all": r"bare.*",
    "suffix": r"suffix\d+",
    "long_suffix": r"suffix([6-9]|10)",
    "long": r".*(prefix|suffix)([6-9]|10)",
    "long6": r".*(prefix|suffix)([7-9]|10)",
    "long8": r".*(prefix|suffix)(9|10)",
    "length": r"length",
    "word": r"word",
    "lower2": r"lower\[-?2\]",
    "suffix_1": r"suffix\d\[-?1\]",
    "suffix_2": r"suffix\d\[-?2\]",
    "short_shape": r"short_shape",
    "neighbour_affixes": r"(prefix|suffix)3\[-?1\]",
    "affix5": r"(prefix|suffix)5",
    "short_shapes": r"short_shapes",
    "affixes": r"(bare_)?(prefix|suffix)\d+",
    "prefix": r"prefix\d+",
    "suffix5": r"suffix5",
    "case": r"word|short_shape.*|has_upper",
    "shapes": r"short_shape.*",
    "signs": r"digits|has_(digit|hyphen)",
    "neighbours": r"lower\[-?[12]\]",
    "tags": r"pos(\[.*\])?",
    "tag_pairs": r"pos(\[[^|]*\])?\|pos(\[[^|]*\])?",
    "tag_triples": r"pos[^|]*\|pos[^|]*\|pos[^|]*",
    "around": r"stripped\[.*\]",
    "stripped_pairs": r"stripped.*\|stripped.*",
    "ends": r"(start|end).*",
    "tags_words": r"lower[^|]*\|pos[^|]*|pos[^|]*\|lower[^|]*",
}
# Lines that can be added.
EXTRAS = {
    "pos_pairs": "lower[-1]|lower=%lower[-1,0]|%lower[0,0]\nlower|lower[1]=%lower[0,0]|%lower[1,0]\n",
    "shape": "shape=%shape[0,0]\n",
    "shapes": "short_shape[-1]=%short_shape[-1,0]\nshort_shape[1]=%short_shape[1,0]\n",
    "shape_pair": "short_shape[-1]|short_shape=%short_shape[-1,0]|%short_shape[0,0]\n",
    "first": "first=%x[-1,0]|%short_shape[0,0]\n",
    "lower_prefix": _affixes("lower_prefix", 0, range(1, 7)),
    "digits": "digits=%digits[0,0]\nhas_digit=%has_digit[0,0]\nhas_hyphen=%has_hyphen[0,0]\n",
    "upper": "has_upper=%has_upper[0,0]\n",
    "lower3": "lower[-3]=%lower[-3,0]\nlower[3]=%lower[3,0]\n",
    "prefix_suffix": "prefix2|suffix2=%lower_prefix[0,0,2]|%lower_suffix[0,0,2]\n",
    "near": _near(10),
    "near5": _near(5),
    "near3": _near(3),
    "suffix_words": "lower[-1]|suffix2=%lower[-1,0]|%lower_suffix[0,0,2]\n"
    "suffix2|lower[1]=%lower_suffix[0,0,2]|%lower[1,0]\n"
    "lower[-1]|suffix3=%lower[-1,0]|%lower_suffix[0,0,3]\n"
    "suffix3|lower[1]=%lower_suffix[0,0,3]|%lower[1,0]\n",
    "lists": "list=%x[0,1]\nlist[-1]=%x[-1,1]\nlist[1]=%x[1,1]\nlist[-1]|list=%x[-1,1]|%x[0,1]\n"
    "list|list[1]=%x[0,1]|%x[1,1]\nlists=%x[0,1]|%x[0,2]\n",  # columns of benchmarks.rival_usaddress
    "suffix22": "suffix2[-1]|suffix2=%lower_suffix[-1,0,2]|%lower_suffix[0,0,2]\n"
    "suffix2|suffix2[1]=%lower_suffix[0,0,2]|%lower_suffix[1,0,2]\n",
    "suffix_1": "".join(_affixes("lower_suffix", row, (2, 3)) for row in (-1, 1)),
    "suffix_around": "suffix2[-1]|suffix2[1]=%lower_suffix[-1,0,2]|%lower_suffix[1,0,2]\n",
    "suffix_left": "suffix2[-2]|suffix2[-1]=%lower_suffix[-2,0,2]|%lower_suffix[-1,0,2]\n"
    "suffix2[1]|suffix2[2]=%lower_suffix[1,0,2]|%lower_suffix[2,0,2]\n",
}


def edit_template(text: str, edits: Iterable[str]) -> str:
    """The text of a template without groups (~near), with others (+shape), with those of rare words alone (suffix?10), with
    another function (stripped>lower).
    """
    for edit in edits:
        if edit.startswith("+"):
            text += EXTRAS[edit[1:]]
            continue
        if ">" in edit:
            old, _, new = edit.partition(">")
            text = text.replace(f"%{old}", f"%{new}")
            continue
        group, _, count = edit.removeprefix("~").partition("?")
        name = re.compile(GROUPS[group])
        instead = f"|%rare[0,0,{count}]\n" if count else None
        lines = [(line, name.fullmatch(line.partition("=")[0])) for line in text.splitlines()]
        text = "".join(
            f"{line}\n" if not found else "" if instead is None else f"{line}{instead}"
            for line, found in lines
        )
    return text


def _edits_template(word: str) -> bool:
    return word[0] in "+~" or "?" in word or ">" in word


def read_value(text: str) -> Any:
    """A setting as it is written: a number, True, False, None, or a name."""
    try:
        return json.loads({"True": "true", "False": "false", "None": "null"}.get(text, text))
    except json.JSONDecodeError:
        return text


def new_model(preset: str, edits: str, n_columns: int = 1) -> CRF[Any]:
    """The model of a variant: the preset with its recommended parameters, but for the edits."""
    words = edits.split()
    given = dict(word.split("=", 1) for word in words if not _edits_template(word))
    values = {name: read_value(value) for name, value in given.items() if not name.startswith(DICTIONARY)}
    of_optimizer = {name: values.pop(name) for name in list(values) if name.startswith("optimizer__")}
    recommended = CRF(features=preset).get_params(deep=False)
    edited = Template.parse(edit_template(PRESETS[preset], filter(_edits_template, words)))
    recommended["features"] = edited.within_columns(n_columns)
    if "optimizer" in values:
        values["optimizer"] = OPTIMIZERS[values["optimizer"]]()
    if "bigrams" in values:
        values["structure"] = Chain(bigrams=values.pop("bigrams"), unseen="soft")
    if values.pop("order", 1) == 2:
        values["structure"] = Patterns([Ngrams(3, min_count=3)], bigrams="observed", unseen="soft")
    if isinstance(recommended["l2"], Mapping):  # without the blocks of groups that are left out
        blocks = {line.partition("=")[0] for line in edited.text.splitlines()} | {"default"}
        recommended["l2"] = {name: value for name, value in recommended["l2"].items() if name in blocks}
    return CRF(**recommended | values).set_params(n_threads=1, **of_optimizer)


def measure_folds(corpus: Corpus, edits: str, n_folds: int, limit: int | None = None) -> Outcome:
    """The mean of the scores of all folds, by which samples are cut; CPU seconds are those of all."""
    found = [measure(fold, edits, limit) for fold in corpus.folds(n_folds)]
    mean = {name: sum(one[name] for one in found) / n_folds for name in ("score", "words", "tags", "weights")}
    return {**mean, "cpu": sum(one["cpu"] for one in found)}


def own_dictionary(data: Data, edits: str) -> TagDictionary | None:
    """The tag dictionary of a variant that has settings of it."""
    given = dict(word.split("=", 1) for word in edits.split() if word.startswith(DICTIONARY))
    options = {name.removeprefix(DICTIONARY): int(value) for name, value in given.items()}
    return TagDictionary.from_data(data.X, data.y, **options) if options else None


def measure(corpus: Corpus, edits: str, limit: int | None = None) -> Outcome:
    """Train a variant and test it on what is held out."""
    data = read_data(corpus, limit)
    row = data.X[0][0]
    crf = new_model(corpus.preset, edits, 1 if isinstance(row, str) else len(row))
    start = time.process_time()
    if dictionary := own_dictionary(data, edits):
        crf.set_params(tag_dictionary=dictionary)
    crf.fit(data.X, data.y)
    cpu = time.process_time() - start
    if crf.stop_reason_ is StopReason.INTERRUPTED:  # Ctrl-C or SIGTERM: half a training run says nothing
        raise KeyboardInterrupt
    predicted = crf.predict(data.held_out)
    spans = corpus.tag in ("spans", PROPER_NOUNS)
    score = span_report(data.right, predicted).overall.f1 if spans else accuracy(data.right, predicted)
    return {
        "score": 100 * score,
        "cpu": cpu,
        "words": sum(map(len, data.y)),
        "tags": len(crf.classes_),
        "weights": len(crf.weights_),
    }


def markdown(
    results: Mapping[str, Mapping[str, Outcome]], corpora: Sequence[str], variants: Sequence[str]
) -> str:
    """A row for each variant: the scores of the first one, and what the others gain or lose."""
    lines = [f"| edits | {' | '.join(corpora)} | CPU s |", f"|---|{'---:|' * (len(corpora) + 1)}"]
    first, *others = variants
    base = [results[first][name]["score"] for name in corpora]
    lines.append(_row(first or "the preset", [f"{score:.2f}" for score in base], results[first].values()))
    for edits in others:
        scores = [results[edits][name]["score"] for name in corpora]
        gains = [f"{score - before:+.2f}" for score, before in zip(scores, base, strict=True)]
        lines.append(_row(edits, gains, results[edits].values()))
    return "\n".join(lines)


def _row(title: str, cells: Sequence[str], outcomes: Iterable[Outcome]) -> str:
    return f"| {title} | {' | '.join(cells)} | {sum(outcome['cpu'] for outcome in outcomes):.0f} |"


def run(
    corpora: Sequence[str],
    variants: Sequence[str],
    path: Path | None,
    limit: int | None,
    n_folds: int | None = None,
) -> Any:
    """Measure what the file of results does not have yet, and write it there at once: {variant: {corpus: figures}}."""
    of_folds = "" if n_folds is None else f" in {n_folds} folds"
    kept = json.loads(path.read_text(encoding="utf-8")) if path is not None and path.exists() else {}
    for edits in variants:
        for name in corpora:
            corpus = CORPORA[name]
            key = f"{corpus.preset} {edits}".strip() + of_folds
            if name not in kept.setdefault(key, {}):
                kept[key][name] = (
                    measure(corpus, edits, limit)
                    if n_folds is None
                    else measure_folds(corpus, edits, n_folds, limit)
                )
                print(f"{name} {edits}: {kept[key][name]['score']:.2f}", file=sys.stderr, flush=True)
                if path is not None:
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
    return {
        edits: {name: kept[f"{CORPORA[name].preset} {edits}".strip() + of_folds][name] for name in corpora}
        for edits in variants
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure variants on corpora of one preset, print the table and keep all figures."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.ablation", description="what parts of a preset are worth"
    )
    parser.add_argument(
        "--corpus", action="append", choices=list(CORPORA), help="one of them (may be repeated)"
    )
    parser.add_argument("--quick", action="store_true", help="a smoke test on a few sentences")
    parser.add_argument("--out", type=Path, help=f"folder of results (default {RESULTS}; none with --quick)")
    parser.add_argument("--folds", type=int, help="cross-validation on samples of the training files")
    parser.add_argument("variants", nargs="*", help='edits such as "~near +shape l2=0.5"')
    given = parser.parse_args(arguments)
    corpora = given.corpus or ["la-xpos", "pl-xpos", "de-joint", "grc-xpos"]
    out = given.out or (None if given.quick else RESULTS)
    limit = QUICK if given.quick else None
    variants = ["", *given.variants]
    results = run(corpora, variants, None if out is None else out / "ablation.json", limit, given.folds)
    print(markdown(results, corpora, variants))


if __name__ == "__main__":
    main()
