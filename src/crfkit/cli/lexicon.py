"""`crfkit lexicon`: a file of lists of entries that models map into memory."""

from pathlib import Path

import click

from crfkit.cli.streams import check_output, complain, open_input
from crfkit.data import check_writable
from crfkit.errors import InputError


@click.command("lexicon", short_help="Make a lexicon of text files, for features.")
@click.argument("files", nargs=-1, required=True, metavar="[LIST=]FILE…")
@click.option("--out", required=True, type=click.Path(path_type=Path), help="Where the lexicon goes.")
@click.option("--fold-case", is_flag=True, help="Compare without regard to case.")
@click.option("--characters", is_flag=True, help="Entries are sequences of characters, not of words.")
def command(files: tuple[str, ...], out: Path, fold_case: bool, characters: bool) -> None:
    """Make a lexicon of text files, one entry a line, such as New York.

    LIST names the list that a file is: city=cities.txt. In a line with a tab, what stands behind it is the name of the
    entry's list. One FILE may be -, standard input. The lexicon is for crfkit train --resource NAME=OUT, and for
    crfkit.Lexicon.load.
    """
    from crfkit.features import Lexicon

    paths: dict[str, str] = {}
    for text in files:
        name, equals, path = text.partition("=") if not Path(text).exists() else ("", "", text)
        path = path if equals or not name else name
        name = name if equals else ""
        if name in paths:
            raise InputError(f"{path}: there are two files of the list {name!r}, expected LIST=FILE for each")
        paths[name] = path
    check_output(out, paths.values(), "the lexicon")
    check_writable(out)
    if sum(path == "-" for path in paths.values()) > 1:
        raise InputError("- was given twice, but standard input can be read once")
    sources = {name: open_input(path) for name, path in paths.items()}
    lexicon = Lexicon.read(sources, fold_case=fold_case, split=list if characters else str.split)
    lexicon.save(out)  # which may be a pipe
    lists = ", ".join(filter(None, lexicon.lists))
    complain(f"{out}: {len(lexicon):,} entries{f' in the lists {lists}' if lists else ''}")
