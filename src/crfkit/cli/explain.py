"""`crfkit explain`: why a model gives the labels, or the heads, that it gives."""

from __future__ import annotations

import html
import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple

import click

from crfkit.cli.columns import Example
from crfkit.cli.constraints import allowed_column_option, allowed_of, name_places
from crfkit.cli.model_input import columns_option, load_tagger, read_for_tagger
from crfkit.cli.options import separator_option
from crfkit.cli.parse import is_parser, load_parser
from crfkit.cli.resources import resource_option
from crfkit.cli.streams import check_output, open_input, open_output
from crfkit.errors import InputError

if TYPE_CHECKING:
    from crfkit.data import Sentence
    from crfkit.models import CRF, Explanation, Parser


class Wanted(NamedTuple):
    """What is to be explained."""

    sentence: int | None = None  # counted from 1; None: all
    position: int | None = None  # counted from 0, words of a treebank from 1; None: all that are uncertain
    label: str | None = None  # label, or head
    against: str | None = None
    below: float = 0.9  # uncertain: the answer has a probability below


class Explained(NamedTuple):
    """An explanation and where it belongs."""

    sentence: int
    word: str
    explanation: Explanation


def explain_labels(model: CRF[Any], examples: Iterable[Example], wanted: Wanted) -> Iterator[Explained]:
    """The positions that are wanted of column files or files of attributes."""
    known = {str(label): label for label in model.classes_}
    label, against = (_known(known, name) for name in (wanted.label, wanted.against))
    for n, example in _chosen(examples, wanted):
        x, allowed = example.inputs, allowed_of([example], model.classes_)
        with name_places([example]):
            best = model.predict_marginals([x], allowed=allowed)[0].max(axis=1).tolist()
            for i in _positions(best, wanted, 0, n):
                found = model.explain(x, i, label, against, allowed=None if allowed is None else allowed[0])
                word = x[i][0] if isinstance(x[i], tuple) else ""
                yield Explained(n, word, found)


def explain_heads(parser: Parser, sentences: Iterable[Sentence], wanted: Wanted) -> Iterator[Explained]:
    """The words that are wanted of a treebank."""
    head, against = (_number(name) for name in (wanted.label, wanted.against))
    for n, sentence in _chosen(sentences, wanted):
        if len(sentence.words) < 2 and wanted.position is None:
            continue  # one tree
        best = parser.arc_probabilities([sentence])[0].max(axis=0)[1:].tolist()
        for i in _positions(best, wanted, 1, n):
            yield Explained(n, sentence.words[i - 1].form, parser.explain_arc(sentence, i, head, against))


def _chosen(given: Iterable[Any], wanted: Wanted) -> Iterator[tuple[int, Any]]:
    """Number and content of the sequences that are wanted."""
    if wanted.sentence is None:
        yield from enumerate(given, 1)
        return
    n = 0
    for n, found in enumerate(given, 1):
        if n == wanted.sentence:
            yield n, found
            return
    raise InputError(f"--sentence {wanted.sentence}: the file has {n:,} sequence{'s' * (n != 1)}")


def _positions(best: list[float], wanted: Wanted, first: int, n: int) -> Iterable[int]:
    """The position that is given, or all whose answer is uncertain."""
    if wanted.position is None:
        return [i for i, probability in enumerate(best, first) if probability < wanted.below]
    if not first <= wanted.position < len(best) + first:
        raise InputError(
            f"--position {wanted.position}: sequence {n} has the positions {first} to {len(best) + first - 1}"
        )
    return [wanted.position]


def _known(labels: dict[str, Any], name: str | None) -> Any:
    if name is not None and name not in labels:
        raise InputError(f"unknown label {name!r}; the labels are {', '.join(labels)}")
    return None if name is None else labels[name]


def _number(name: str | None) -> int | None:
    if name is not None and not name.isdecimal():
        raise InputError(f"a head is {name!r}, expected the number of a word, or 0 for the root")
    return None if name is None else int(name)


def write_text(found: Iterable[Explained], output: IO[str], limit: int) -> None:
    """A table for each, in plain text."""
    for n, word, explanation in found:
        output.write(f"sequence {n}, {word}\n{explanation.to_text(limit)}\n\n")


def write_json(found: Iterable[Explained], output: IO[str], limit: int) -> None:
    """A line for each."""
    for n, word, explanation in found:
        line = {"sequence": n, "word": word, **explanation.to_dict()}
        output.write(json.dumps(line, ensure_ascii=False, allow_nan=False) + "\n")


def write_html(found: Iterable[Explained], output: IO[str], limit: int) -> None:
    """One page."""
    output.write(
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>Explanations</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        "<style>:root { color-scheme: light dark } body { margin: 2rem; font-family: system-ui, sans-serif }"
        "</style></head>\n<body>\n"
    )
    for n, word, explanation in found:
        output.write(
            f"<h2>Sequence {n}: {html.escape(word)}</h2>\n<div style='overflow-x: auto'>{explanation.to_html(limit)}</div>\n"
        )
    output.write("</body></html>\n")


_FORMS: dict[str, Callable[[Iterable[Explained], IO[str], int], None]] = {
    "text": write_text,
    "html": write_html,
    "json": write_json,
}


@click.command("explain", short_help="Show why a model gives its labels or heads.")
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("file", type=str)
@click.option("--sentence", type=click.IntRange(min=1), metavar="N", help="Only this one, counted from 1.")
@click.option(
    "--position",
    type=click.IntRange(min=0),
    metavar="I",
    help="Only this one, counted from 0; of a treebank the number of the word.  [default: all that are uncertain]",
)
@click.option("--label", help="The label, or the head, to explain.  [default: the likeliest]")
@click.option("--against", help="What it is compared with.  [default: the likeliest other one]")
@click.option(
    "--below",
    default=0.9,
    show_default=True,
    type=click.FloatRange(0, 1),
    metavar="P",
    help="Without --position: explain where the probability is below P.",
)
@click.option(
    "--limit", default=12, show_default=True, type=click.IntRange(min=1), help="Largest parts to show."
)
@click.option("--html", "form", flag_value="html", help="Write a page of HTML.")
@click.option("--json", "form", flag_value="json", help="Write one JSON object for each, with all parts.")
@click.option("--output", type=str, help="Write here instead of to standard output.")
@separator_option
@allowed_column_option
@columns_option
@resource_option
def command(
    model: Path,
    file: str,
    form: str | None,
    limit: int,
    output: str | None,
    separator: str | None,
    allowed_column: int | None,
    columns: int | None,
    resources: tuple[str, ...] | None,
    **wanted: Any,
) -> None:
    """Show why MODEL labels words of FILE (`-`: standard input) as it does, and not otherwise.

    The log-odds of the label against the runner-up are split into parts that add up to them: the features of the word, its
    transitions, and what comes from the left and from the right. Where MODEL is a parser, FILE is CoNLL-U, and heads are
    explained.
    """
    check_output(output, (file, model), "the output")
    asked = Wanted(**wanted)
    if is_parser(model):
        from crfkit.data import read_conllu

        parser = load_parser(model, resources=resources)
        found = explain_heads(parser, read_conllu(open_input(file)), asked)
    else:
        tagger = load_tagger(model, n_columns=columns, resources=resources)
        examples = read_for_tagger(
            tagger, open_input(file), separator=separator, allowed_column=allowed_column
        )
        found = explain_labels(tagger.crf, examples, asked)
    with open_output(output) as stream:
        _FORMS[form or "text"](found, stream, limit)
