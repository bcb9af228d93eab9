"""Whether the heads of a sentence form a tree."""

from crfkit.data.conllu import Sentence
from crfkit.errors import TreeError


def check_tree(sentence: Sentence, single_root: bool = True, *, partial: bool = False) -> None:
    """Refuse a sentence whose heads form no tree, with the place and the words that are wrong.

    Every word must reach the root, number 0, from head to head; `single_root` allows one word alone whose head that is.
    Where `partial`, words may have no head (None): the others must then fit into some tree.

    >>> from crfkit.data import Sentence, Word
    >>> words = [Word("dogs", "_", "_", "_", "_", 2, "_", "_", "_"), Word("bark", "_", "_", "_", "_", 1, "_", "_", "_")]
    >>> check_tree(Sentence(words))
    Traceback (most recent call last):
    crfkit.errors.TreeError: <stream>:1: the heads form a cycle, 1 'dogs' → 2 'bark' → 1 'dogs', expected a tree
    """
    words = sentence.words
    if not words:
        raise TreeError(f"{sentence.source}:{sentence.line}: the sentence has no word, expected one at least")
    heads = [word.head for word in words]
    for number, head in enumerate(heads, 1):
        if head is None:
            if not partial:
                what = f"{_describe_word(sentence, number)} has no HEAD, expected the number of a word or 0"
                _refuse(sentence, number, what)
        elif not 0 <= head <= len(words):
            _refuse(sentence, number, f"the HEAD is {head}, but the sentence has {len(words)} words")
        elif head == number:
            what = f"{_describe_word(sentence, number)} is its own head, expected another word or 0"
            _refuse(sentence, number, what)
    roots = [number for number, head in enumerate(heads, 1) if head == 0]
    if single_root and len(roots) > 1:
        first, second = (_describe_word(sentence, number) for number in roots[:2])
        listed = f"{first}, {second}{', …' * (len(roots) > 2)}"
        _refuse(sentence, roots[1], f"there are {len(roots)} roots ({listed}), expected one")
    cycle = _cycle(heads)
    if cycle:
        path = " → ".join(_describe_word(sentence, number) for number in (*cycle, cycle[0]))
        _refuse(sentence, cycle[0], f"the heads form a cycle, {path}, expected a tree")


def _cycle(heads: list[int | None]) -> list[int]:
    """The numbers of words that are each other's heads, from the first of them on; none if there are none."""
    seen = [0] * (len(heads) + 1)  # [T + 1] the word from which the walk came by; 0: none did
    for start in range(1, len(heads) + 1):
        number: int | None = start
        while number and not seen[number]:
            seen[number] = start
            number = heads[number - 1]
        if number and seen[number] == start:
            cycle = [number]
            while (following := heads[cycle[-1] - 1]) != number:
                assert following is not None
                cycle.append(following)
            first = cycle.index(min(cycle))
            return cycle[first:] + cycle[:first]
    return []


def _describe_word(sentence: Sentence, number: int) -> str:
    return f"{number} {sentence.words[number - 1].form[:40]!r}"


def _refuse(sentence: Sentence, number: int, what: str) -> None:
    raise TreeError(f"{sentence.place(number)}: {what}")
