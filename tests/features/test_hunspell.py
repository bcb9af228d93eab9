"""Dictionaries of hunspell, against a slow recogniser: it tries for every text every choice of affixes to take off."""

from __future__ import annotations

import random
from contextlib import suppress
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from crfkit import CRF, Lexicon, TagDictionary
from crfkit.errors import ArgumentError, EmptyDataError, FileFormatError, MissingFileError
from crfkit.features import HunspellForm, hunspell_forms


class Rule(NamedTuple):
    side: str  # SFX or PFX
    flag: str
    crosses: str  # Y or N
    strip: str
    text: str
    condition: list[tuple[bool, str]]  # of each character: whether the set is inverted, and the set; "": any
    flags: str
    fields: str


NEED, CIRCUM, COMPOUND, FORBIDDEN = "NCOX"


def _holds(rule: Rule, word: str) -> bool:
    n = len(rule.condition)
    part = word[-n:] if rule.side == "SFX" else word[:n]
    if n == 0:
        return True
    return len(part) == n and all(
        not some or (c in some) != inverted for c, (inverted, some) in zip(part, rule.condition, strict=True)
    )


def _take_off(rule: Rule, text: str) -> str | None:
    """The word that a rule makes this text of."""
    if rule.side == "SFX":
        rest = text[: len(text) - len(rule.text)]
        word = rest + rule.strip
        fits = text.endswith(rule.text)
    else:
        rest = text[len(rule.text) :]
        word = rule.strip + rest
        fits = text.startswith(rule.text)
    return word if fits and rest and _holds(rule, word) else None


def recognise(text: str, word: str, flags: str, rules: list[Rule]) -> set[tuple[str, ...]]:
    """The flags of the affixes, suffixes first, by which a text is a form of a word."""
    found: set[tuple[str, ...]] = set()
    suffixes: list[Rule | None] = [None, *(rule for rule in rules if rule.side == "SFX")]
    prefixes: list[Rule | None] = [None, *(rule for rule in rules if rule.side == "PFX")]
    for prefix, first, second in product(prefixes, suffixes, suffixes):
        if second is not None and (first is None or second.flag not in first.flags):
            continue
        rest: str | None = text
        for rule in (prefix, second, first):
            rest = rest if rule is None or rest is None else _take_off(rule, rest)
        used = [rule for rule in (first, second, prefix) if rule is not None]
        if rest != word or any(COMPOUND in rule.flags for rule in used):
            continue
        if not used:
            if NEED not in flags and COMPOUND not in flags:
                found.add(())
            continue
        behind = [rule for rule in (first, second) if rule is not None]
        of_word_first = first is None or first.flag in flags
        of_word_prefix = prefix is None or prefix.flag in flags
        if not of_word_first and not (prefix is not None and of_word_prefix and first.flag in prefix.flags):  # type: ignore[union-attr]
            continue
        if not of_word_prefix and not (of_word_first and any(prefix.flag in rule.flags for rule in behind)):  # type: ignore[union-attr]
            continue
        if prefix is not None and behind and any(rule.crosses == "N" for rule in used):
            continue
        if any(CIRCUM in rule.flags for rule in behind) != (prefix is not None and CIRCUM in prefix.flags):
            continue
        outer = [*behind[-1:], *([] if prefix is None else [prefix])]
        if all(NEED in rule.flags for rule in outer):
            continue
        found.add(tuple(rule.flag for rule in used))
    return found


def _write(folder: Path, words: list[tuple[str, str]], rules: list[Rule], form: str) -> Path:
    """The two files, with flags in one of the forms."""
    numbers = {flag: str(ord(flag)) for flag in "ABSTNCOX"}

    def flags(text: str) -> str:
        if form == "num":
            return ",".join(numbers[flag] for flag in text)
        return "".join(f"{flag}{flag.lower()}" for flag in text) if form == "long" else text

    aliases = sorted({rule.flags for rule in rules if rule.flags} | {some for _, some in words if some})

    def named(text: str) -> str:
        return str(aliases.index(text) + 1) if form == "alias" else flags(text)

    lines = ["SET UTF-8", *(["FLAG " + form] if form in ("long", "num") else []), "# a comment", ""]
    for name, flag in zip(("NEEDAFFIX", "CIRCUMFIX", "ONLYINCOMPOUND", "FORBIDDENWORD"), "NCOX", strict=True):
        lines.append(f"{name} {flags(flag)}")
    if form == "alias":
        lines += [f"AF {len(aliases)}", *(f"AF {flags(some)} # {n}" for n, some in enumerate(aliases, 1))]
    for side, flag in dict.fromkeys((rule.side, rule.flag) for rule in rules):
        some = [rule for rule in rules if (rule.side, rule.flag) == (side, flag)]
        lines.append(f"{side} {flags(flag)} {some[0].crosses} {len(some)}")
        for rule in some:
            condition = "".join(
                "." if not s else s if len(s) == 1 and not inv else f"[{'^' * inv}{s}]"
                for inv, s in rule.condition
            )
            more = f"/{named(rule.flags)}" if rule.flags else ""
            cells = [
                side,
                flags(flag),
                rule.strip or "0",
                (rule.text or "0") + more,
                condition or ".",
                rule.fields,
            ]
            lines.append("   ".join(filter(None, cells)))
    folder.mkdir(exist_ok=True)
    (folder / "d.aff").write_text("\n".join(lines) + "\n", encoding="utf-8")
    listed = [f"{word}/{named(some)}" if some else word for word, some in words]
    (folder / "d.dic").write_text("\n".join([str(len(words)), *listed]) + "\n", encoding="utf-8")
    return folder / "d.dic"


@pytest.mark.parametrize("seed", range(40))
def test_forms_are_those_that_are_recognised(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)

    def text(least: int, most: int) -> str:
        return "".join(rng.choice("abß") for _ in range(rng.randint(least, most)))

    def some(flags: str, share: float) -> str:
        return "".join(flag for flag in flags if rng.random() < share)

    rules = []
    for side, flag in (("SFX", "S"), ("SFX", "T"), ("PFX", "A"), ("PFX", "B")):
        crosses = rng.choice("YYN")
        for _ in range(rng.randint(1, 2)):
            strip = text(0, 1)
            condition = [
                (rng.random() < 0.4, rng.choice(["", "a", "b", "ab", "bß"])) for _ in range(rng.randint(0, 2))
            ]
            more = some("STAB", 0.25) + some("NCO", 0.12)
            rules.append(
                Rule(side, flag, crosses, strip, text(0, 2), condition, more, rng.choice(["", "is:x"]))
            )
    words = [*{text(1, 3): some("STAB", 0.5) + some("NOX", 0.15) for _ in range(4)}.items()]
    path = _write(tmp_path, words, rules, rng.choice(["short", "long", "num", "alias"]))
    found: dict[tuple[str, str], set[tuple[str, ...]]] = {}
    back = {**{str(ord(f)): f for f in "ABSTNCOX"}, **{f + f.lower(): f for f in "ABSTNCOX"}}
    for form in hunspell_forms(path):
        used = tuple(back.get(flag, flag) for flag in form.affixes)
        found.setdefault((form.form, form.word), set()).add(used)
    forbidden = {word for word, flags in words if FORBIDDEN in flags}
    expected: dict[tuple[str, str], set[tuple[str, ...]]] = {}
    candidates = ["".join(letters) for n in range(8) for letters in product("abß", repeat=n)]
    for word, flags in words:
        if FORBIDDEN in flags:
            continue
        for candidate in candidates:
            choices = recognise(candidate, word, flags, rules)
            if choices and candidate not in forbidden:
                expected[candidate, word] = choices
    assert {key: choices for key, choices in found.items() if len(key[0]) < 8} == expected


AFF = """\
SET ISO8859-15
AM 2
AM po:noun
AM po:verb
SFX S Y 2
SFX S 0 s [^y] is:plural
SFX S y ies y is:plural
SFX D N 2
SFX D 0 ed [^e]  is:past
SFX D 0 d e  is:past
PFX R Y 1
PFX R 0 re .  dp:re
"""
DIC = """\
4
city/S\t1
caf\u00e9/S po:noun st:cafe
bake/DR\tpo:verb
New York po:noun
and\\/or
"""


@pytest.fixture
def dictionary(tmp_path: Path) -> Path:
    (tmp_path / "en.aff").write_bytes(AFF.encode("iso8859-15"))
    path = tmp_path / "en.dic"
    path.write_bytes(DIC.replace("\n", "\r\n").encode("iso8859-15"))
    return path


def test_fields_and_encodings(dictionary: Path) -> None:
    found = [(form.form, form.tag) for form in hunspell_forms(dictionary)]
    assert found == [
        ("city", "po:noun"),
        ("cities", "po:noun is:plural"),
        ("café", "po:noun"),
        ("cafés", "po:noun is:plural"),
        ("bake", "po:verb"),
        ("rebake", "po:verb dp:re"),
        ("baked", "po:verb is:past"),
        ("New York", "po:noun"),
        ("and/or", ""),
    ]
    assert next(iter(hunspell_forms(dictionary))) == HunspellForm(
        "city", "city", frozenset("S"), (), ("po:noun",)
    )


@pytest.mark.filterwarnings("ignore::crfkit.models.UnusedEntries")
def test_tag_dictionaries(dictionary: Path) -> None:
    mapping = {"po:noun": "N", "po:noun is:plural": "NS", "po:verb is:past": ["VD", "VN"], "po:verb": "V"}
    tags = TagDictionary.from_hunspell(dictionary, mapping)
    assert tags.allowed_labels("Cities") == ("NS",)
    assert tags.allowed_labels("baked") == ("VD", "VN")
    assert "york" not in tags
    by_flags = TagDictionary.from_hunspell(dictionary, lambda form: "V" if "D" in form.flags else None)
    assert by_flags.allowed_labels("rebake") == ("V",)
    assert "city" not in by_flags
    X, y = [["the", "baked", "city"]], [["D", "VN", "N"]]
    joined = TagDictionary.from_data(X, y).join(tags)
    assert CRF(features="pos", tag_dictionary=joined).fit(X, y).predict([["the", "cafés"]])[0] != []
    with pytest.raises(EmptyDataError, match="its most frequent tags are 'po:noun', "):
        TagDictionary.from_hunspell(dictionary, {})
    with pytest.raises(ArgumentError, match=r"expected {tag: labels} or a function of a HunspellForm"):
        TagDictionary.from_hunspell(dictionary, "NOUN")  # type: ignore[arg-type]


def test_lexicons(dictionary: Path, tmp_path: Path) -> None:
    lexicon = Lexicon.from_hunspell(dictionary, tmp_path / "forms", fold_case=True)
    assert len(lexicon) == 9
    assert "CITIES" in lexicon
    assert "new york" in lexicon
    assert "citys" not in lexicon
    other = Lexicon.from_hunspell(dictionary, affixes=tmp_path / "en.aff")
    assert "cities" in other


def test_a_limit_of_forms(dictionary: Path) -> None:
    with pytest.raises(ArgumentError, match=r"en.dic:4: the words so far have more than 5 forms, the limit"):
        list(hunspell_forms(dictionary, limit=5))


@pytest.mark.parametrize(
    ("aff", "dic", "message"),
    [
        ("FLAG wide\n", "1\na\n", r"d.aff:1: expected FLAG long, FLAG num or FLAG UTF-8"),
        ("SET KLINGON\n", "1\na\n", r"d.aff: its encoding 'KLINGON' is not known"),
        ("SET UTF-8\n", "1\na\n\udcff\n", r"d.dic:3: expected text in UTF-8"),
        ("SFX A Y x\n", "1\na\n", r"d.aff:1: expected the number of the entries of SFX"),
        ("SFX A Q 1\n", "1\na\n", r"d.aff:1: expected SFX, a flag, Y or N"),
        (
            "SFX A Y 2\nSFX A 0 s .\n",
            "1\na\n",
            r"d.aff:3: the file ends, expected 1 more of the 2 entries of SFX \(line 1\)",
        ),
        (
            "SFX A Y 2\nSFX A 0 s .\nPFX B Y 0\n",
            "1\na\n",
            r"d.aff:3: expected 1 more of the 2 entries of SFX \(line 1\)",
        ),
        ("SFX A Y 1\nSFX B 0 s .\n", "1\na\n", r"d.aff:2: expected a rule of SFX A"),
        (
            "SFX A Y 1\nSFX A 0 s [ab\n",
            "1\na\n",
            r"d.aff:2: the condition \[ab has a bracket that is not closed",
        ),
        ("SFX A Y 1\nSFX A 0 s []\n", "1\na\n", r"d.aff:2: the condition \[\] has an empty set"),
        ("FLAG long\n", "1\na/ABC\n", r"d.dic:2: expected flags of 2 characters each, found 'ABC'"),
        ("FLAG num\n", "1\na/1,x\n", r"d.dic:2: expected flags that are numbers"),
        (
            "AF 1\nAF AB\n",
            "1\na/2\n",
            r"d.dic:2: expected the number of an alias of flags, from 1 to 1, found 2",
        ),
        ("AM 1\nAM po:n\n", "1\na\t3\n", r"d.dic:2: expected the number of an alias of fields"),
        ("NEEDAFFIX\n", "1\na\n", r"d.aff:1: expected flags of 1 character each"),
        ("", "a\nb\n", r"d.dic:1: expected the number of words, found 'a'"),
        ("", "1\n/A\n", r"d.dic:2: expected a word before its flags"),
    ],
)
def test_errors_name_file_and_line(tmp_path: Path, aff: str, dic: str, message: str) -> None:
    (tmp_path / "d.aff").write_text(aff)
    (tmp_path / "d.dic").write_bytes(dic.encode("utf-8", "surrogateescape"))
    with pytest.raises(FileFormatError, match=message):
        list(hunspell_forms(tmp_path / "d.dic"))


def test_missing_files(tmp_path: Path) -> None:
    with pytest.raises(MissingFileError, match=r"none.aff"):
        list(hunspell_forms(tmp_path / "none.dic"))
    (tmp_path / "none.aff").write_text("")
    with pytest.raises(MissingFileError, match=r"none.dic"):
        list(hunspell_forms(tmp_path / "none.dic"))


def test_odd_files_never_end_in_other_errors(tmp_path: Path) -> None:
    rng = random.Random(3)
    pieces: list[Any] = [AFF, DIC, "FLAG num\n", "AF 2\n", "[", "/", "\t", "\udc80", "SFX", " Y ", "0", "\n"]
    for _ in range(150):
        for name in ("d.aff", "d.dic"):
            parts = "".join(rng.choice(pieces)[: rng.randint(1, 200)] for _ in range(rng.randint(1, 6)))
            (tmp_path / name).write_bytes(parts.encode("utf-8", "surrogateescape"))
        with suppress(FileFormatError):
            list(hunspell_forms(tmp_path / "d.dic"))
