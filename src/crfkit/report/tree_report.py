"""The report on a parser."""

from collections.abc import Callable, Sequence
from typing import Any

from crfkit.data import Sentence
from crfkit.evaluation import Counts, confusion, evaluate_trees, relation_of
from crfkit.models import Parser
from crfkit.report import model_sections
from crfkit.report.comparison import compare
from crfkit.report.learning_curve import curve_section, learning_curve, pick
from crfkit.report.options import ReportOptions
from crfkit.report.page import Figure, Page, Section
from crfkit.report.shared_sections import LEAST, confusion_section, probability_section
from crfkit.report.tree_results import TreeResults, ask_trees
from crfkit.report.tree_sections import (
    distances,
    known_attachment,
    lengths,
    relations,
    worst_trees,
    wrong_arcs,
)
from crfkit.report.words import KnownWords

Progress = Callable[[str], None]


def tree_page(
    parser: Parser, sentences: Sequence[Sentence], options: ReportOptions, progress: Progress
) -> Page:
    """All sections of the report, where there is something to say in them."""
    results = ask_trees(parser, sentences, progress)
    progress("drawing")
    found: list[Section | None] = [
        relations(results),
        _comparison(results, options, progress),
        worst_trees(results),
        wrong_arcs(parser, results, n_errors=options.n_errors, n_explanations=options.n_explanations),
        lengths(results),
        distances(results),
        confusion_section(_confusion(results), "relations"),
        _probabilities(parser, results),
        _known(results, options),
        _curve(parser, results, options, progress),
        model_sections.history(parser, "LAS"),
    ]
    report = results.report
    return Page(
        options.title or f"{options.name} on {options.test_name}",
        f"Parser with {len(parser.classes_)} relations, tested on {report.n_sentences:,} sentences with "
        f"{report.n_words:,} words.",
        [
            Figure("LAS", report.las, "head and relation right"),
            Figure("UAS", report.uas, "head right"),
            Figure("label accuracy", report.label_accuracy, "relation right"),
            Figure("CLAS", report.clas, "LAS of content words"),
            Figure(
                "sentences without an error",
                report.n_trees / report.n_sentences,
                f"of {report.n_sentences:,}",
            ),
        ],
        _facts(parser, results, options),
        [section for section in found if section is not None],
        options.notes,
    )


def _confusion(results: TreeResults) -> Any:
    pairs = [(relation_of(word.gold), relation_of(word.predicted)) for word in results.all_words()]
    return confusion([[gold for gold, _ in pairs]], [[found for _, found in pairs]])


def _probabilities(parser: Parser, results: TreeResults) -> Section:
    """Of arcs without their relations."""
    gold = [[(word.number, word.gold.head or 0, "") for word in words] for words in results.words]
    n_words = results.report.n_words
    return probability_section(
        gold,
        results.likely_arcs,
        "arcs",
        decoded=("parsed trees", Counts(results.report.n_heads, n_words, n_words)),
        beyond=f"all arcs from a probability of {LEAST} on are counted, without their relations",
        exact=not (parser.structure_ == "spanning" and parser.order == 2),
    )


def _known(results: TreeResults, options: ReportOptions) -> Section | None:
    if options.train is None:
        return None
    forms = ([word.form for word in sentence.words] for sentence in options.train)
    return known_attachment(results, KnownWords.of_training_set(forms))


def _comparison(results: TreeResults, options: ReportOptions, progress: Progress) -> Section | None:
    if options.against is None:
        return None
    progress(f"comparing with {options.against_name}")
    other = options.predictions_of_other(results.gold)
    theirs = evaluate_trees(results.gold, other).relations
    return compare(
        results.gold,
        results.predicted,
        other,
        ("las", "uas", "clas"),
        name=options.name,
        other_name=options.against_name,
        is_right=lambda gold, found: evaluate_trees([gold], [found]).n_trees == 1,
        by_type=[(name, c, theirs[name]) for name, c in results.report.relations.items() if name in theirs],
        n_samples=options.n_samples,
        seed=options.seed,
    )


def _curve(
    parser: Parser, results: TreeResults, options: ReportOptions, progress: Progress
) -> Section | None:
    if options.learning_curve is None:
        return None
    sentences = list(options.learning_curve)

    def fit_and_score(fresh: Parser, numbers: Sequence[int]) -> float:
        return fresh.fit(pick(sentences, numbers)).score(results.gold)

    return curve_section(
        learning_curve(parser, len(sentences), fit_and_score, progress, seed=options.seed), "LAS"
    )


def _facts(parser: Parser, results: TreeResults, options: ReportOptions) -> list[tuple[str, str]]:
    report = results.report
    return [
        ("model", options.name),
        ("test data", f"{options.test_name}: {report.n_sentences:,} sentences, {report.n_words:,} words"),
        ("trees", f"{parser.structure_}, order {parser.order}; {parser.structure_reason_}"),
        ("decoding", parser.decode),
        ("relations", f"{len(parser.classes_)}: {' '.join(parser.classes_)}"),
        ("weights", f"{len(parser.weights_):,}"),
        ("penalties", f"l1 = {parser.l1}, l2 = {parser.l2}"),
        ("training", f"{parser.n_iter_} iterations; {parser.stop_message_}"),
    ]
