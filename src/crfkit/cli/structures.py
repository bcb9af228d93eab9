"""Which structure a command trains: its options, and a line in a table for each value of `--structure`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from crfkit.cli.options import add_options
from crfkit.errors import InputError

if TYPE_CHECKING:
    from crfkit.structures import Chain, Patterns, Segments, SequenceStructure

MAX_ORDER = 20  # labels before one that it may depend on


class Choice(NamedTuple):
    """A value of `--structure`."""

    make: Callable[[dict[str, Any]], SequenceStructure | None]  # from the options of the command
    about: str  # what its own options are about
    options: dict[str, Any]  # these, and their defaults


def structure_of(options: dict[str, Any]) -> SequenceStructure | None:
    """The structure that the options ask for; None where they ask for none. An option of another one is refused."""
    for name, choice in STRUCTURES.items():
        for option, default in choice.options.items():
            if name != options["structure"] and options[option] != default:
                raise InputError(
                    f"--{option.replace('_', '-')} is about {choice.about}: expected --structure {name}"
                )
    return STRUCTURES[options["structure"]].make(options)


def _make_chain(options: dict[str, Any]) -> Chain | Patterns | None:
    from crfkit.structures import Chain, Growth, Ngrams, Patterns

    if options["bigrams"] is None and all(
        options[name] == usual for name, usual in STRUCTURES["chain"].options.items()
    ):
        return None
    chain = (options["start"], options["end"], options["bigrams"], options["unseen"])
    order, min_count = options["order"], options["ngram_count"]
    if order == "auto":
        return Patterns([], *chain, grow=Growth(min_count=min_count))
    if not order.isdecimal() or not 1 <= int(order) <= MAX_ORDER:
        raise InputError(f"--order {order}: expected a number from 1 to {MAX_ORDER}, or auto")
    if int(order) == 1:
        return Chain(*chain)
    return Patterns([Ngrams(range(3, int(order) + 2), min_count=min_count)], *chain)


def _make_segments(options: dict[str, Any]) -> Segments:
    """With the template and the dictionaries of files."""
    from crfkit.data import read_text
    from crfkit.features import SegmentTemplate
    from crfkit.structures import Segments

    if options["bigrams"] not in (None, "observed"):
        raise InputError("--bigrams with --structure segments is about types of segments: expected observed")
    dictionaries = {}
    for text in options["dictionary"]:
        name, _, path = text.partition("=")
        if not name or not path:
            raise InputError(f"--dictionary {text}: expected name=file, such as cities=cities.txt")
        dictionaries[name] = [line for line in read_text(path).splitlines() if line.strip()]
    template = options["segment_template"]
    return Segments(
        options["max_length"],
        options["scheme"],
        segment_features=[] if template is None else SegmentTemplate.read(template),
        dictionaries=dictionaries,
        bigrams=options["bigrams"],
    )


STRUCTURES = {
    "chain": Choice(_make_chain, "chains", {"unseen": "error", "order": "1", "start": True, "end": True}),
    "segments": Choice(
        _make_segments,
        "segments",
        {"max_length": None, "scheme": None, "segment_template": None, "dictionary": ()},
    ),
}

structure_options = add_options(
    click.option(
        "--start/--no-start", default=True, help="Weights of the arc into the first label.  [default: start]"
    ),
    click.option(
        "--end/--no-end", default=True, help="Weights of the arc out of the last label.  [default: end]"
    ),
    click.option(
        "--bigrams",
        metavar="NAME",
        help="Pairs of labels, or of types of segments, that exist: observed, or for labels a scheme such as bio or iobes.",
    ),
    click.option(
        "--unseen",
        default="error",
        show_default=True,
        metavar="WHAT",
        help="Sequences outside the bigrams: error, extend, skip or soft.",
    ),
    click.option(
        "--structure",
        default="chain",
        show_default=True,
        type=click.Choice([*STRUCTURES]),
        help="Labels in a chain, or whole segments (semi-Markov).",
    ),
    click.option(
        "--max-length",
        type=click.IntRange(min=1),
        metavar="N",
        help="With --structure segments: words of a segment at most.  [default: no limit]",
    ),
    click.option(
        "--scheme",
        metavar="NAME",
        help="With --structure segments: what labels mean: bio, iob1, iobes, bilou, bmes or plain.  [default: as they look]",
    ),
    click.option(
        "--segment-template",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="With --structure segments: a template of features of whole segments.",
    ),
    click.option(
        "--dictionary",
        multiple=True,
        metavar="NAME=FILE",
        help="With --structure segments: a feature of segments that are a line of FILE; repeatable.",
    ),
    click.option(
        "--order",
        default="1",
        show_default=True,
        metavar="N",
        help="Labels before one that it depends on; auto: find the patterns that pay.",
    ),
    click.option(
        "--ngram-count",
        default=3,
        show_default=True,
        type=click.IntRange(min=1),
        help="With --order: leave out runs of labels seen less often.",
    ),
)
