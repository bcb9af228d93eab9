"""What the demonstration shows: tags, names and a tree, each learnt there and then, on sentences that were held out."""

from __future__ import annotations

from dataclasses import replace
from time import perf_counter
from typing import TYPE_CHECKING

from crfkit.cli.demonstration.sample import Labelled
from crfkit.cli.demonstration.screen import CHANGED, PALE, RIGHT, WRONG, Piece, Screen
from crfkit.data import Sentence

if TYPE_CHECKING:
    from crfkit.models import CRF, Parser

SENTENCE = "So I started a small mailing list and added their addresses to it ."  # of the test part
WITH_NAMES = "Emma Novak saw Lincoln City ."  # whose names the training sentences do not have
FIXED = {"I-LOC"}  # what the user knows about "City"
UNSURE = 0.05  # labels that are at least so probable are shown beside the best one


def train_tagger(screen: Screen, train: Labelled, test: Labelled) -> CRF:
    """A part-of-speech tagger, and its accuracy."""
    from crfkit.evaluation import accuracy
    from crfkit.models import CRF

    screen.code('crf = crfkit.CRF(features="pos").fit(X, y)')
    began = perf_counter()
    with screen.training("a tagger") as show:
        crf = CRF(features="pos").fit(train.words, train.labels, callback=show)
    screen.say(
        f"{len(train.words):,} sentences, {train.n_words:,} words: {crf.n_features_:,} features, "
        f"{len(crf.weights_):,} weights, {perf_counter() - began:.1f} s"
    )
    right = accuracy(test.labels, crf.predict(test.words))
    screen.say(f"accuracy on {len(test.words)} other sentences: {100 * right:.2f} %")
    return crf


def show_tags(screen: Screen, crf: CRF, sentence: Sentence) -> int:
    """Gold beside predicted, with the probability and the runner-up; how many words are wrong."""
    words = [word.form for word in sentence.words]
    [labels], [marginals] = crf.predict([words]), crf.predict_marginals([words])
    rows: list[list[Piece]] = [[(name, PALE) for name in ("word", "gold", "predicted", "p", "or")]]
    for word, label, row in zip(sentence.words, labels, marginals, strict=True):
        others = sorted(
            ((p, name) for p, name in zip(row.tolist(), crf.classes_, strict=True) if name != label),
            reverse=True,
        )
        also = "  ".join(f"{name} {p:.2f}" for p, name in others if p >= UNSURE)
        best = row[crf.classes_.index(label)]
        style = RIGHT if label == word.upos else WRONG
        rows.append([word.form, word.upos, (label, style), f"{best:.2f}", (also, PALE)])
    screen.table(rows)
    n_wrong = sum(label != word.upos for word, label in zip(sentence.words, labels, strict=True))
    screen.say((f"{len(words) - n_wrong} of {len(words)} tags right", PALE))
    return n_wrong


def train_names(screen: Screen, train: Labelled, test: Labelled) -> CRF:
    """A tagger of names that knows BIO, and its F1."""
    from crfkit.evaluation import span_report
    from crfkit.models import CRF
    from crfkit.structures import Chain

    screen.code('crf = crfkit.CRF(crfkit.Chain(bigrams="bio"), features="names").fit(X, y)')
    with screen.training("a tagger of names") as show:
        crf = CRF(Chain(bigrams="bio"), features="names").fit(train.words, train.labels, callback=show)
    f1 = span_report(test.labels, crf.predict(test.words)).overall.f1
    screen.say(
        f"{len(train.words):,} made-up sentences; F1 on {len(test.words)} with other names and in other words: "
        f"{100 * f1:.1f} %"
    )
    screen.say("I-ORG exists only after B-ORG or I-ORG, in training and in every answer: no half names.")
    return crf


def show_names(screen: Screen, crf: CRF) -> tuple[list[list[str]], list[str]]:
    """The two best answers, and the answer once the user has fixed a label."""
    words = WITH_NAMES.split()
    allowed = [FIXED if word == "City" else None for word in words]
    nbest, [fixed] = crf.predict_nbest([words], 2)[0], crf.predict([words], allowed=[allowed])

    screen.say("The two best answers, with their probabilities:")
    screen.code("crf.predict_nbest([words], 2)")
    header: list[Piece] = ["", *((word, "bold") for word in words)]
    screen.table([header, *([f"{p:.2f}", *labels] for p, labels in nbest)])
    screen.say()
    screen.say("You know that a town is meant. Fix one label, and its neighbour changes with it:")
    screen.code(f"crf.predict([words], allowed=[{allowed}])")
    changed: list[Piece] = [
        (label, CHANGED) if label != before else label
        for label, before in zip(fixed, nbest[0][1], strict=True)
    ]
    screen.table([header, [" " * 4, *changed]])
    return [labels for _, labels in nbest], fixed


def train_parser(screen: Screen, train: list[Sentence], test: list[Sentence], n_passes: int) -> Parser:
    """A dependency parser, and how many arcs it gets right."""
    from crfkit.evaluation import evaluate_trees
    from crfkit.models import Parser
    from crfkit.optimizers import AdaGrad

    screen.code(f"parser = crfkit.Parser(crfkit.AdaGrad(max_iterations={n_passes})).fit(sentences)")
    began = perf_counter()
    with screen.training("a parser, some seconds") as show:
        parser = Parser(AdaGrad(max_iterations=n_passes)).fit(train, callback=show)
    seconds = perf_counter() - began
    report = evaluate_trees(test, parser.predict(test))
    screen.say(
        f"{len(train):,} sentences, {seconds:.1f} s; on {len(test)} others {100 * report.uas:.1f} % of the heads are right, "
        f"and with relations {100 * report.las:.1f} %"
    )
    return parser


def parse_new(parser: Parser, tagger: CRF, sentence: Sentence) -> Sentence:
    """A sentence of which only the words are used: the tagger gives the tags, the parser the tree."""
    [tags] = tagger.predict([[word.form for word in sentence.words]])
    bare = [
        word._replace(upos=tag, head=None, deprel="_") for word, tag in zip(sentence.words, tags, strict=True)
    ]
    [parsed] = parser.predict([replace(sentence, words=bare)])
    return parsed


def show_tree(screen: Screen, parsed: Sentence, gold: Sentence) -> int:
    """The tree as text; how many words have another head or relation than in the treebank."""
    from crfkit.report import arc_lines

    rows: list[list[Piece]] = []
    n_wrong = 0
    for lines, word, known in zip(arc_lines(parsed), parsed.words, gold.words, strict=True):
        right = (word.head, word.deprel) == (known.head, known.deprel)
        n_wrong += not right
        rows.append(
            [(lines, "cyan"), (word.form, "bold"), word.upos, (word.deprel, RIGHT if right else WRONG)]
        )
    screen.table(rows)
    screen.say((f"{len(rows) - n_wrong} of {len(rows)} heads and relations as in the treebank", PALE))
    return n_wrong
