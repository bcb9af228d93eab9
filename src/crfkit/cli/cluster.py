"""`crfkit cluster`: Brown clusters of a text."""

from collections.abc import Iterator
from pathlib import Path

import click

from crfkit.cli.options import quiet_option
from crfkit.cli.progress import Display
from crfkit.cli.streams import ArrivingLines, check_output, open_input
from crfkit.data import check_writable, number_lines, source_name
from crfkit.errors import InputError


def read_sentences(source: Path | ArrivingLines, column: int | None) -> Iterator[list[str]]:
    """The sentences of a text, one a line, or of a column file, where a blank line ends one."""
    if column is None:
        for _, line in number_lines(source):
            yield line.split()
        return
    path = source_name(source)
    words: list[str] = []
    for number, line in number_lines(source):
        cells = line.split("\t") if "\t" in line else line.split()
        if not line.strip():
            yield words
            words = []
        elif column >= len(cells):
            raise InputError(f"{path}:{number}: expected more than {column} columns, found {len(cells)}")
        elif not cells[column]:
            raise InputError(f"{path}:{number}: column {column} is empty, expected a word")
        else:
            words.append(cells[column])
    yield words


@click.command("cluster", short_help="Learn Brown clusters of words from text.")
@click.argument("text", type=str)
@click.option("--classes", default=1000, show_default=True, type=click.IntRange(min=1), help="How many.")
@click.option(
    "--out", required=True, type=click.Path(path_type=Path), help="Where lines of path, word and count go."
)
@click.option(
    "--min-count",
    default=1,
    show_default=True,
    type=click.IntRange(min=1),
    help="Leave out words that occur less often.",
)
@click.option("--fold-case", is_flag=True, help="Words in lower case.")
@click.option(
    "--column", type=click.IntRange(min=0), metavar="N", help="TEXT is a column file with words in column N."
)
@quiet_option
def command(
    text: str, classes: int, out: Path, min_count: int, fold_case: bool, column: int | None, quiet: bool
) -> None:
    """Learn Brown clusters (Brown et al. 1992) of the words of TEXT, one sentence a line, words between blanks.

    TEXT may be -, standard input, or a pipe. OUT gets a line for each word: the path of its class in a binary tree, the word
    and its count, between tabs. The file is for crfkit train --resource NAME=OUT, for crfkit.Clusters.read, and for other
    tools that read such paths.
    """
    from crfkit.features import learn_clusters

    check_output(out, (text,), "the clusters")
    check_writable(out)
    with Display(quiet=quiet) as display:
        display.stage(f"reading {text}", "sentences")
        sentences = list(display.count(read_sentences(open_input(text), column)))
        if not any(sentences):
            raise InputError(f"{text}: there is no word, expected sentences")
        display.stage("merging classes", "merges")
        n_done = 0

        def count(done: int, _: int) -> None:
            nonlocal n_done
            for _ in display.count(range(done - n_done)):
                pass
            n_done = done

        clusters = learn_clusters(
            sentences, classes, min_count=min_count, fold_case=fold_case, callback=count
        )
        clusters.write(out)
        display.say(f"{out}: {len(clusters):,} words in {len(clusters.paths):,} classes")
