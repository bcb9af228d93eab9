"""The sections of a report on a parser: relations, lengths and distances of arcs, trees, wrong arcs."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from crfkit.evaluation import Counts, Share, relation_of
from crfkit.models import Parser
from crfkit.report.page import Section
from crfkit.report.plots import Bars, draw_bars
from crfkit.report.shared_sections import describe_explanation
from crfkit.report.tree_picture import draw_tree
from crfkit.report.tree_results import ParsedWord, TreeResults
from crfkit.report.words import KnownWords

LENGTHS = ((1, 10), (11, 20), (21, 30), (31, 40), (41, None))
DISTANCES = ((1, 1), (2, 2), (3, 5), (6, 10), (11, 20), (21, None))
N_TREES = 15
LONGEST, SHORTEST = 35, 4  # words of a sentence whose tree is drawn
CONTEXT = 12  # words shown before and after
KINDS = {"head": "wrong head", "relation": "wrong relation", "both": "wrong head and relation"}


def relations(results: TreeResults) -> Section:
    """Precision, recall and F1 of labelled arcs by relation."""
    report = results.report
    overall = Counts(report.n_arcs, report.n_words, report.n_words)
    return Section(
        "relations", "Attachment by relation", {"rows": list(report.relations.items()), "overall": overall}
    )


class _Attachment(NamedTuple):
    """Words of one group."""

    name: str
    n_sentences: int
    heads: Share
    arcs: Share


def lengths(results: TreeResults) -> Section:
    """UAS and LAS by the number of words of a sentence."""
    rows = []
    for bounds in LENGTHS:
        some = [words for words in results.words if _within(len(words), bounds)]
        if some:
            rows.append(_attachment(_name(bounds), [word for words in some for word in words], len(some)))
    plot = draw_bars(
        "lengths",
        [row.name for row in rows],
        [Bars("UAS", [row.heads.accuracy for row in rows]), Bars("LAS", [row.arcs.accuracy for row in rows])],
        along="words of the sentence",
    )
    return Section("lengths", "Sentence length", {"rows": rows, "plot": plot})


def distances(results: TreeResults) -> Section:
    """Precision and recall of labelled arcs by the distance between head and dependent."""
    groups: list[tuple[str, Callable[[int, int], bool]]] = [("root", lambda head, _: head == 0)]
    groups += [(_name(bounds), _at_distance(bounds)) for bounds in DISTANCES]
    rows = []
    for name, fits in groups:
        gold = [word for word in results.all_words() if fits(word.gold.head or 0, word.number)]
        predicted = [word for word in results.all_words() if fits(word.predicted.head or 0, word.number)]
        if gold or predicted:
            rows.append((name, Counts(sum(word.is_right for word in gold), len(predicted), len(gold))))
    plot = draw_bars(
        "distances",
        [name for name, _ in rows],
        [Bars("precision", [c.precision for _, c in rows]), Bars("recall", [c.recall for _, c in rows])],
        along="words from head to dependent",
    )
    return Section("distances", "Distance of arcs", {"rows": rows, "plot": plot})


def _within(n: int, bounds: tuple[int, int | None]) -> bool:
    return bounds[0] <= n and (bounds[1] is None or n <= bounds[1])


def _at_distance(bounds: tuple[int, int | None]) -> Callable[[int, int], bool]:
    return lambda head, number: head != 0 and _within(abs(head - number), bounds)


def _name(bounds: tuple[int, int | None]) -> str:
    low, high = bounds
    return f"{low}+" if high is None else str(low) if low == high else f"{low}–{high}"


def _attachment(name: str, words: Sequence[ParsedWord], n_sentences: int = 0) -> _Attachment:
    heads = Share(sum(word.head_is_right for word in words), len(words))
    return _Attachment(name, n_sentences, heads, Share(sum(word.is_right for word in words), len(words)))


def known_attachment(results: TreeResults, known: KnownWords) -> Section:
    """UAS and LAS of words that were in the training set, and of others."""
    rows = [
        _attachment(title, [word for word in results.all_words() if known.knows(word.gold.form) is wanted])
        for title, wanted in (("known words", True), ("unknown words", False))
    ]
    return Section(
        "words",
        "Known and unknown words",
        {"source": known.source, "rows": rows, "n_words": results.report.n_words},
        "known_attachment",
    )


def worst_trees(results: TreeResults) -> Section | None:
    """Pictures of the sentences with the lowest share of right arcs."""
    rated = []
    for n, words in enumerate(results.words):
        n_wrong = sum(not word.is_right for word in words)
        if n_wrong and SHORTEST <= len(words) <= LONGEST:
            rated.append((-n_wrong / len(words), -n_wrong, n))
    if not rated:
        return None
    shown = []
    for _, n_wrong, n in sorted(rated)[:N_TREES]:
        picture = draw_tree(results.predicted[n], results.gold[n]).svg
        shown.append({"number": n + 1, "n_wrong": -n_wrong, "svg": picture, "n_words": len(results.words[n])})
    return Section("trees", "Worst trees", {"trees": shown, "longest": LONGEST, "shortest": SHORTEST})


def wrong_arcs(parser: Parser, results: TreeResults, *, n_errors: int, n_explanations: int) -> Section:
    """Wrong arcs, those that the parser was surest of first; the first wrong heads of these are explained."""
    found = sorted(
        (word for word in results.all_words() if not word.is_right),
        key=lambda word: (-word.probability, word.sentence, word.number),
    )
    shown = found[:n_errors]
    explained = [word for word in shown if not word.head_is_right][:n_explanations]
    items = [
        {
            **_item(results, word),
            "explanation": _explain(parser, results, word) if word in explained else None,
        }
        for word in shown
    ]
    kinds = {_kind(word) for word in found}
    return Section(
        "errors",
        "Wrong arcs",
        {
            "n_all": len(found),
            "items": items,
            "kinds": {kind: title for kind, title in KINDS.items() if kind in kinds},
            "types": _distinct(name for item in items for name in item["types"]),
        },
        "arcs",
    )


def _distinct(names: Iterable[str]) -> list[str]:
    return sorted(set(names))


def _kind(word: ParsedWord) -> str:
    if word.head_is_right:
        return "relation"
    return "head" if word.relation_is_right else "both"


def _item(results: TreeResults, word: ParsedWord) -> dict[str, Any]:
    """What the template shows of a wrong arc."""
    gold, predicted = relation_of(word.gold), relation_of(word.predicted)
    return {
        "kind": _kind(word),
        "types": list(dict.fromkeys((predicted, gold))),
        "sure": word.probability,
        "number": word.sentence + 1,
        "form": word.gold.form,
        "predicted": {"head": _head(results, word, word.predicted.head), "relation": predicted},
        "gold": {"head": _head(results, word, word.gold.head), "relation": gold, "p": word.gold_probability},
        "pieces": _pieces(results, word),
    }


def _explain(parser: Parser, results: TreeResults, word: ParsedWord) -> dict[str, Any]:
    """Why the predicted head and not the gold one."""
    why = parser.explain_arc(results.gold[word.sentence], word.number, word.predicted.head, word.gold.head)
    names = (_head(results, word, head) or "root" for head in (word.predicted.head, word.gold.head))
    return describe_explanation(why, word.gold.form, *(f"head “{name}”" for name in names))


def _head(results: TreeResults, word: ParsedWord, head: int | None) -> str | None:
    """The form of a head; None: the root."""
    return results.gold[word.sentence].words[head - 1].form if head else None


def _pieces(results: TreeResults, word: ParsedWord) -> list[tuple[str, str, str, str]]:
    """Words around the dependent and its heads: text, classes, relation above (gold), relation below (predicted)."""
    forms = [one.form for one in results.gold[word.sentence].words]
    places = [place for place in (word.number, word.gold.head, word.predicted.head) if place]
    first, last = max(1, min(places) - CONTEXT), min(len(forms), max(places) + CONTEXT)
    pieces: list[tuple[str, str, str, str]] = []
    plain: list[str] = ["…"] if first > 1 else []
    for place in range(first, last + 1):
        above = relation_of(word.gold) if place == word.gold.head else ""
        below = relation_of(word.predicted) if place == word.predicted.head else ""
        if place not in places:
            plain.append(forms[place - 1])
            continue
        if plain:
            pieces.append((" ".join(plain), "", "", ""))
            plain = []
        classes = (
            "focus"
            if place == word.number
            else " ".join(c for c, on in (("g t0", above), ("q u1", below)) if on)
        )
        pieces.append((forms[place - 1], classes, above, below))
    if last < len(forms):
        plain.append("…")
    if plain:
        pieces.append((" ".join(plain), "", "", ""))
    return pieces
