"""What the CRF of a tagger sees of words: their forms, or rows that begin with them.

Column 0 is the form, 1 the white space around the token (`s` some, `n` none, before and after; `?` where nothing is known of
it), 2 to 4 what a list of words says of the form.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from crfkit.data import Sentence
from crfkit.features import Template
from crfkit.models import CRF
from crfkit.pipeline.word_list import N_COLUMNS as N_OF_WORDS
from crfkit.pipeline.word_list import WordList
from crfkit.pipeline.written_text import tokens_of

N_COLUMNS = 2 + N_OF_WORDS


def reads_rows(crf: CRF[Any]) -> bool:
    """Whether the template of an untrained CRF reads more than the forms of words."""
    features: Any = crf.features
    if isinstance(features, str):
        if "\n" not in features:  # a preset
            return False
        features = Template.parse(features)
    return isinstance(features, Template) and features.n_columns > 1


def read_positions(
    sentences: Iterable[Sentence], words: WordList | None, *, rows: bool
) -> list[Sequence[Any]]:
    """The positions of sentences: forms, or rows, whose last three columns are `-` without a list of words."""
    if not rows:
        return [[word.form for word in sentence.words] for sentence in sentences]
    if words is None:
        nothing = ("-",) * N_OF_WORDS
        return [
            [(word.form, space, *nothing) for word, space in zip(one.words, white_space(one), strict=True)]
            for one in sentences
        ]
    return [
        [
            (word.form, space, *words.columns(word.form))
            for word, space in zip(one.words, white_space(one), strict=True)
        ]
        for one in sentences
    ]


def white_space(sentence: Sentence) -> list[str]:
    """Whether there is white space before and after each word: `ss`, `sn`, `ns`, `nn`; `?` where no token has SpaceAfter=No.

    >>> from crfkit.data import Word
    >>> white_space(Sentence([Word("Go", misc="SpaceAfter=No"), Word("!")]))
    ['sn', 'ns']
    """
    after = []
    for token in tokens_of(sentence):
        after += ["n"] * (token.last - token.first) + ["s" if token.spaces_after else "n"]
    if "n" not in after[:-1]:
        return ["?"] * len(after)
    return [before + behind for before, behind in zip(["s", *after], after, strict=False)]
