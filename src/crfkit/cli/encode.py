"""`crfkit encode`: column files as an encoded data set, for training on more than memory holds."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click

from crfkit.cli.columns import check_rows
from crfkit.cli.options import MinCount, hash_option, quiet_option, threads_option
from crfkit.cli.progress import Display
from crfkit.cli.resources import open_resources, resource_option
from crfkit.cli.streams import KeptStream, open_input
from crfkit.data import find_separator
from crfkit.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from crfkit.features import ColumnRows, PairSource, Template


@click.command("encode", short_help="Encode column files as a data set of any size for training.")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--out", required=True, type=click.Path(path_type=Path), help="The folder to write.")
@click.option("--features", metavar="PRESET", help="Ready-made features: names, pos, chunks or morphology.")
@click.option(
    "--template", type=click.Path(path_type=Path), help="Feature template, in the language of CRF++."
)
@click.option(
    "--wapiti-patterns", type=click.Path(path_type=Path), help="Feature patterns, in the language of Wapiti."
)
@click.option(
    "--min-count",
    type=MinCount(),
    help="Leave out features seen at fewer positions; auto: 1, and 2 for 100,000 words or more.  "
    "[default: the preset's, else 1]",
)
@click.option(
    "--word-column",
    type=int,
    help="Keep the words of this column, for a tag dictionary.  [default: 0 for morphology, else none]",
)
@hash_option
@click.option(
    "--shard-size",
    type=click.IntRange(min=1),
    help="Words that a shard has at most.  [default: 262144]",
)
@click.option(
    "--label-column", default=-1, show_default=True, help="Column of the label, from 0; -1 is the last."
)
@click.option(
    "--separator", help="What stands between columns.  [default: tabs where there are, else blanks]"
)
@click.option("--plain-columns", is_flag=True, help="Read what looks like CoNLL-U as columns like any other.")
@resource_option
@threads_option
@quiet_option
def command(files: tuple[Path, ...], out: Path, quiet: bool, **options: Any) -> None:
    """Encode FILES, features and labels as numbers, into the folder OUT, on which crfkit train trains.

    FILES have one word a line, as for crfkit train. They are read once, in bounded memory. A run that was killed goes on
    when the same command is given again; shards that it has written are kept. A file that was wrong may be mended first, or
    left out: files before it are not read again. One of FILES may be -, standard input, or a pipe: it is kept in a
    temporary file until the data set is complete.
    """
    from crfkit.features import ENCODED_SHARD_SIZE, EncodingSettings, encode_sources

    features = _features(options)
    reading = {"label_column": options["label_column"], "separator": options["separator"]}
    conllu = options["plain_columns"] or not isinstance(features, str)
    inputs = _inputs(files)
    sources = [_source(given, partial(_shards, given, conllu=conllu, **reading)) for given in inputs]
    if reading["separator"] is None:  # what a model of this data is to read files with
        reading = {**reading, "separator": find_separator(_readable(inputs[0]))}
    resources = open_resources(options["resources"])
    size = options["shard_size"] or ENCODED_SHARD_SIZE
    settings = EncodingSettings(features, 1, size, reading, options["hash_bits"], resources)
    with Display(quiet=quiet) as display:
        dataset = encode_sources(
            sources,
            out,
            settings.complete(options["min_count"], options["word_column"]),
            stage=lambda text: display.stage(text, "sequences" if text.startswith("encoding") else None),
            counted=display.count,
            n_threads=options["threads"],
        )
        display.say(repr(dataset).strip("<>").removeprefix("EncodedDataset "))


def _inputs(files: tuple[Path, ...]) -> list[Path | KeptStream]:
    """The files; what standard input or a pipe brings is kept, as it is read more than once."""
    if sum(str(file) == "-" for file in files) > 1:
        raise InputError("- was given twice, but standard input can be read once")
    opened = [open_input(str(file)) for file in files]
    return [given if isinstance(given, Path) else KeptStream(given) for given in opened]


def _source(given: Path | KeptStream, shards: Callable[[int, int], Iterator[ColumnRows]]) -> PairSource:
    """Where sequences come from, and what tells whether it is the same when a killed run goes on."""
    from crfkit.features import PairSource, file_source

    if isinstance(given, Path):
        return file_source(given, shards)
    return PairSource(given.name, identity=[given.size, given.digest], rows=shards)


def _readable(given: Path | KeptStream) -> Path | IO[bytes]:
    return given if isinstance(given, Path) else given.rewound()


def _shards(
    given: Path | KeptStream, shard_size: int, n_threads: int, **reading: Any
) -> Iterator[ColumnRows]:
    """The shards of a file."""
    from crfkit.features import ColumnRows

    separator, source = reading["separator"], _readable(given)
    for rows in ColumnRows.read_shards(source, shard_size, separator=separator, n_threads=n_threads):
        yield check_rows(rows, **reading)


def _features(options: dict[str, Any]) -> Template | str:
    """The preset or the template."""
    from crfkit.features import Template, WapitiPatterns, preset

    given = [name for name in ("features", "template", "wapiti_patterns") if options[name] is not None]
    if len(given) != 1:
        raise InputError("expected one of --features, --template and --wapiti-patterns")
    if given == ["features"]:
        name: str = options["features"]
        preset(name)  # a name that there is not is refused before any work
        return name
    kind = {"template": Template, "wapiti_patterns": WapitiPatterns}[given[0]]
    return kind.read(options[given[0]])
