"""Files of words: one word a line, its form and its fields between tabs; a blank line, or `EOS`, after each sentence.

cats<TAB>N<TAB>plural        fields in columns
cats<TAB>N,plural            fields in one column, separated by commas, as MeCab writes them
"""

from collections.abc import Iterator

from crfkit.data.files import Source, number_lines, source_name
from crfkit.errors import FileFormatError

FileWord = tuple[str, str | tuple[str, ...]]  # form, fields

_END = "EOS"


def read_words(source: Source) -> Iterator[list[FileWord]]:
    r"""Read the sentences of a file of words; a path (also .gz, .xz, .bz2) or a stream. A lexicon is one sentence.

    >>> import io
    >>> list(read_words(io.StringIO("the\tD\ncats\tN\tplural\n\nsat\tV,past\nEOS\n")))
    [[('the', 'D'), ('cats', ('N', 'plural'))], [('sat', 'V,past')]]
    """
    words: list[FileWord] = []
    for number, line in number_lines(source):
        if line.strip(" \t") in ("", _END):
            if words:
                yield words
                words = []
            continue
        form, *columns = line.split("\t")
        if not form or not columns:
            place = f"{source_name(source)}:{number}"
            raise FileFormatError(f"{place}: {line[:80]!r}, expected a form and its fields between tabs")
        words.append((form, columns[0] if len(columns) == 1 else tuple(columns)))
    if words:
        yield words
