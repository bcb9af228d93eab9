"""The report on a model of labels: `CRF`, or a tagger of treebanks."""

from collections.abc import Mapping, Sequence
from typing import Any

from crfkit.evaluation import Counts, evaluate, metric_for
from crfkit.models import CRF
from crfkit.report import model_sections
from crfkit.report.comparison import compare
from crfkit.report.error_section import errors
from crfkit.report.label_results import LabelResults, Progress, ask_labels
from crfkit.report.label_sections import (
    confusions,
    known_words,
    label_counts,
    matches,
    names_of,
    probabilities,
    scores,
)
from crfkit.report.learning_curve import curve_section, learning_curve, pick
from crfkit.report.options import ReportOptions
from crfkit.report.page import Figure, Page, Section
from crfkit.report.words import KnownWords, words_of


def label_page(
    model: CRF[Any],
    X: Sequence[Any],
    y: Sequence[Any],
    options: ReportOptions,
    progress: Progress,
    known: KnownWords | None = None,
) -> Page:
    """All sections of the report, where there is something to say in them."""
    results = ask_labels(
        model,
        X,
        y,
        words=options.words,
        allowed=options.allowed,
        allow_unknown=options.allow_unknown,
        progress=progress,
    )
    progress("drawing")
    known = known or _known_words(model, options)
    names = names_of(results)
    found: list[Section | None] = [
        scores(results),
        _comparison(results, options, progress),
        errors(model, results, n_errors=options.n_errors, n_explanations=options.n_explanations),
        confusions(results),
        matches(results) if results.has_spans else None,
        probabilities(results),
        None if known is None else known_words(results, known),
        _curve(model, results, y, options, progress),
        model_sections.history(model, metric_for(map(str, model.classes_)).title),
        model_sections.features(model, _labels(results)),
        model_sections.transitions(model, names if not results.has_spans else _labels(results)),
    ]
    return Page(
        options.title or f"{options.name} on {options.test_name}",
        f"{type(model).__name__} with {len(model.classes_)} labels, tested on {len(results.gold):,} sentences with "
        f"{results.n_positions:,} words.",
        _figures(results),
        _facts(model, results, options),
        [section for section in found if section is not None],
        options.notes,
    )


def _known_words(model: CRF[Any], options: ReportOptions) -> KnownWords | None:
    if options.train is not None:
        return KnownWords.of_training_set(words_of(options.train[0]))
    return KnownWords.of_model(model)


def _labels(results: LabelResults) -> list[str]:
    """Labels, the most frequent first."""
    return list(label_counts(results.evaluation.confusion))


def _figures(results: LabelResults) -> list[Figure]:
    evaluation = results.evaluation
    found = []
    if evaluation.spans is not None:
        overall = evaluation.spans.overall
        found = [
            Figure("F1 of spans", overall.f1, f"{overall.correct:,} of {overall.gold:,} found"),
            Figure("precision", overall.precision, f"of {overall.predicted:,} predicted"),
            Figure("recall", overall.recall, f"of {overall.gold:,} in gold"),
        ]
    found.append(Figure("accuracy of labels", evaluation.accuracy, f"of {evaluation.n_positions:,} words"))
    whole = evaluation.sequence_accuracy
    found.append(Figure("sentences without an error", whole, f"of {evaluation.n_sequences:,}"))
    return found


def _facts(model: CRF[Any], results: LabelResults, options: ReportOptions) -> list[tuple[str, str]]:
    return [
        ("model", options.name),
        ("test data", f"{options.test_name}: {len(results.gold):,} sentences, {results.n_positions:,} words"),
        ("structure", str(model.structure_)[:200]),
        ("labels", f"{len(model.classes_)}: {' '.join(map(str, model.classes_[:40]))}"),
        ("features", f"{model.n_features_:,}"),
        ("weights", f"{len(model.weights_):,}"),
        ("penalties", f"l1 = {model.l1}, l2 = {model.l2}"),
        ("training", f"{model.n_iter_} iterations; {model.stop_message_}"),
    ]


def _comparison(results: LabelResults, options: ReportOptions, progress: Progress) -> Section | None:
    if options.against is None:
        return None
    progress(f"comparing with {options.against_name}")
    other = options.predictions_of_other(results.X)
    labels = [[str(label) for label in one] for one in other]
    beside = evaluate(results.gold, labels)
    if results.evaluation.spans is not None and beside.spans is not None:
        metrics: tuple[str, ...] = ("f1", "precision", "recall", "accuracy", "sequence_accuracy")
        ours: Mapping[str, Counts] = results.evaluation.spans.types
        theirs: Mapping[str, Counts] = beside.spans.types
    else:
        metrics = ("accuracy", "sequence_accuracy")
        ours, theirs = label_counts(results.evaluation.confusion), label_counts(beside.confusion)
    return compare(
        results.gold,
        results.predicted,
        labels,
        metrics,
        name=options.name,
        other_name=options.against_name,
        is_right=lambda gold, found: gold == found,
        by_type=[(name, ours[name], theirs[name]) for name in names_of(results) if name in theirs][:50],
        n_samples=options.n_samples,
        seed=options.seed,
    )


def _curve(
    model: CRF[Any], results: LabelResults, y: Sequence[Any], options: ReportOptions, progress: Progress
) -> Section | None:
    if options.learning_curve is None:
        return None
    train_X, train_y = options.learning_curve[:2]
    gold = [[str(label) for label in labels] for labels in results.gold]
    metric = metric_for(map(str, model.classes_), gold)

    def fit_and_score(fresh: CRF[Any], numbers: Sequence[int]) -> float:
        fresh.fit(pick(train_X, numbers), pick(train_y, numbers))
        predicted = fresh.predict(results.X, allowed=options.allowed)
        return metric(gold, [[str(label) for label in labels] for labels in predicted])

    points = learning_curve(model, len(train_X), fit_and_score, progress, seed=options.seed)
    return curve_section(points, metric.title)
