"""Edit scripts: how a lemma is made of a form.

A script is a text: one letter for the case, then what is stripped from the beginning, added there, stripped from the end
and added there, with tabs between them:

    bigger → big       l0  ""  3  ""       in lower case, without its last 3 characters
    Häuser → Haus      …                   the longest common part of both, in lower case, is kept
    was    → be        =be                 nothing in common: the lemma itself

The case is that of the lemma: l lower, k as in the form, t the first character upper, u all upper.
"""

_CASES = "lktu"


def common_part(first: str, second: str) -> tuple[int, int, int]:
    """The longest common substring: its length, where it begins in the first text, and where in the second.

    >>> common_part("gesehen", "sehen")
    (5, 2, 0)
    """
    best = (0, 0, 0)
    row = [0] * (len(second) + 1)
    for i, character in enumerate(first, 1):
        diagonal = 0
        for j, other in enumerate(second, 1):
            diagonal, row[j] = row[j], diagonal + 1 if character == other else 0
            if row[j] > best[0]:
                best = (row[j], i - row[j], j - row[j])
    return best


def find_script(form: str, lemma: str) -> str:
    """The script that makes the lemma of the form.

    >>> find_script("Dogs", "dog"), find_script("was", "be")
    ('l0\\t\\t1\\t', '=be')
    """
    low_form, low_lemma = form.lower(), lemma.lower()
    length, begin, start = common_part(low_form, low_lemma)
    if length >= min(2, len(low_lemma)):
        strip_end = len(low_form) - begin - length
        edit = f"{begin}\t{low_lemma[:start]}\t{strip_end}\t{low_lemma[start + length :]}"
        for case in _CASES:
            if apply_script(case + edit, form) == lemma:
                return case + edit
    return f"={lemma}"


def apply_script(script: str, form: str) -> str | None:
    """The lemma of a form; None where less than one character of it would be kept.

    >>> apply_script("l0\\t\\t1\\t", "Cats")
    'cat'
    """
    if script.startswith("="):
        return script[1:]
    strip_front, add_front, strip_end, add_end = script[1:].split("\t")
    kept = form if script[0] == "k" else form.lower()
    begin, end = int(strip_front), len(kept) - int(strip_end)
    if begin >= end:
        return None
    lemma = add_front + kept[begin:end] + add_end
    if script[0] == "t":
        return lemma[:1].upper() + lemma[1:]
    return lemma.upper() if script[0] == "u" else lemma


def is_script(text: str) -> bool:
    """Whether a text is a script."""
    if text.startswith("="):
        return len(text) > 1
    parts = text[1:].split("\t")
    return text[:1] in _CASES and len(parts) == 4 and parts[0].isdecimal() and parts[2].isdecimal()
