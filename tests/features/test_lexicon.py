"""Lexicons against dicts: plain matching over lists of entries, which shares nothing with the trie."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crfkit import Lexicon
from crfkit.errors import ArgumentError, FileFormatError, InputError, MissingFileError, UnwritableFileError
from crfkit.features import Encoder, Match, Template, open_resource

WORD = st.sampled_from(["a", "b", "c", "A", "ß", "SS", "New York", "", "\x1f"])
ENTRY = st.lists(WORD, min_size=1, max_size=4).map(tuple)
LISTS = st.dictionaries(st.sampled_from(["x", "y", "z"]), st.lists(ENTRY, max_size=6), min_size=1)


def plain_matches(lists: dict[str, list[tuple[str, ...]]], words: list[str], fold: bool) -> list[Match]:
    """Longest matches from left to right, list by list, by dicts of entries."""
    folded = [word.casefold() if fold else word for word in words]
    found = []
    for name, entries in lists.items():
        known = {tuple(token.casefold() if fold else token for token in entry) for entry in entries}
        i = 0
        while i < len(words):
            ends = [end for end in range(i + 1, len(words) + 1) if tuple(folded[i:end]) in known]
            if ends:
                found.append(Match(i, max(ends), name))
            i = max(ends) if ends else i + 1
    order = list(lists)
    return sorted(found, key=lambda match: (match.start, match.end, order.index(match.list)))


def plain_states(matches: list[Match], n: int, name: str) -> list[str | None]:
    states: list[str | None] = [None] * n
    for start, end, one in matches:
        if one == name:
            states[start:end] = ["S"] if end == start + 1 else ["B", *["I"] * (end - start - 2), "E"]
    return states


@given(LISTS, st.lists(WORD, max_size=12), st.booleans())
@settings(max_examples=200, deadline=None)
def test_matches_are_those_of_dicts(
    lists: dict[str, list[tuple[str, ...]]], words: list[str], fold: bool
) -> None:
    lexicon = Lexicon.build(lists, fold_case=fold)
    expected = plain_matches(lists, words, fold)
    assert lexicon.match(words) == expected
    by_list = {name: plain_states(expected, len(words), name) for name in lists}
    for name in lists:
        assert lexicon.states(words, name) == by_list[name]
    joined = [
        "+".join(f"{states[i]}-{name}" for name, states in by_list.items() if states[i]) or None
        for i in range(len(words))
    ]
    assert lexicon.states(words) == (joined if len(lists) > 1 else next(iter(by_list.values())))
    template = Template.parse(f"U:%in[0,0,here]\nV=%in[-1,0,here,{next(iter(lists))}]/%x[0,0]")
    template = template.bind({"here": lexicon})
    encoder = Encoder(template)
    dataset = encoder.fit_encode([words])
    names, ptr = encoder.vocabulary.names(), dataset.states.position_ptr
    for i in range(len(words)):
        features = [names[f] for f in dataset.states.ids[ptr[i] : ptr[i + 1]]]
        before = "_B-1" if i == 0 else by_list[next(iter(lists))][i - 1]
        state = lexicon.states(words)[i]
        assert features == [
            *([] if state is None else [f"U:{state}"]),
            *([] if before is None else [f"V={before}/{words[i]}"]),
        ]
        assert template.expand(words, i) == (features, [])
    entries = {entry for some in lists.values() for entry in some}
    for entry in [*entries, ("c", "c", "c", "c", "c")]:
        folded = tuple(token.casefold() if fold else token for token in entry)
        known = [
            name
            for name, some in lists.items()
            if folded in {tuple(token.casefold() if fold else token for token in one) for one in some}
        ]
        assert lexicon[entry] == tuple(known)
    folded_entries = {tuple(token.casefold() if fold else token for token in entry) for entry in entries}
    assert len(lexicon) == len(folded_entries)


def test_many_entries_in_a_mapped_file(tmp_path: Path) -> None:
    entries = [f"w{i % 977} v{i}" for i in range(20_000)]
    path = tmp_path / "many.lexicon"
    built = Lexicon.build({"even": entries[::2], "odd": entries[1::2]}, path)
    lexicon = Lexicon.load(path)
    assert lexicon == built
    assert lexicon.digest == built.digest
    assert len(lexicon) == 20_000
    assert all(lexicon[entry] == ("odd" if i % 2 else "even",) for i, entry in enumerate(entries))
    assert "w1 v0" not in lexicon
    assert "w0" not in lexicon
    assert open_resource(path) == lexicon


def test_digests_tell_lexicons_apart() -> None:
    digests = {
        Lexicon.build(["a"]).digest,
        Lexicon.build(["b"]).digest,
        Lexicon.build({"x": ["a"]}).digest,
        Lexicon.build(["a"], fold_case=True).digest,
    }
    assert len(digests) == 4
    assert Lexicon.build(["a"]).digest == Lexicon.build(["a"]).digest


def test_text_files(tmp_path: Path) -> None:
    places, mixed = tmp_path / "places.txt", tmp_path / "mixed.txt"
    places.write_text("New York\n\nRome\n", encoding="utf-8")
    mixed.write_text("New York\tcity\nRome\tcity\nRome\tname\n", encoding="utf-8")
    assert Lexicon.read(places).match(["New", "York"]) == [Match(0, 2, "")]
    assert Lexicon.read({"place": places}).lists == ("place",)
    assert Lexicon.read(mixed, tmp_path / "out")["Rome"] == ("city", "name")
    assert open_resource(mixed) == Lexicon.load(tmp_path / "out")
    mixed.write_text("Rome\t\n", encoding="utf-8")
    with pytest.raises(FileFormatError, match=r"mixed.txt:1: expected an entry"):
        Lexicon.read(mixed)


def test_characters_as_tokens() -> None:
    assert Lexicon.build(["北京", "北京大学"], split=list).states(list("在北京大学")) == [
        None,
        "B",
        "I",
        "I",
        "E",
    ]


def test_copies_and_pickles() -> None:
    lexicon = Lexicon.build({"x": ["a b"], "y": ["b"]}, fold_case=True)
    again = pickle.loads(pickle.dumps(lexicon))
    assert again == lexicon
    assert again.match(["A", "B"]) == lexicon.match(["A", "B"])
    assert copy.deepcopy(lexicon) is lexicon


def test_errors(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="no tokens"):
        Lexicon.build([" "])
    with pytest.raises(ArgumentError, match="expected a list of entries"):
        Lexicon.build("Rome")
    with pytest.raises(ArgumentError, match="the list 'city' of entries is the string 'Rome'"):
        Lexicon.build({"city": "Rome"})
    with pytest.raises(ArgumentError, match="expected a text or a sequence of tokens"):
        Lexicon.build([3])  # type: ignore[list-item]
    with pytest.raises(ArgumentError, match="expected a list of words"):
        Lexicon.build(["a"]).match("a")
    with pytest.raises(ArgumentError, match="no list 'z'"):
        Lexicon.build({"x": ["a"]}).states(["a"], "z")
    with pytest.raises(MissingFileError):
        Lexicon.load(tmp_path / "none")
    (tmp_path / "text").write_text("Rome")
    with pytest.raises(FileFormatError, match="not a resource of crfkit"):
        Lexicon.load(tmp_path / "text")
    with pytest.raises(UnwritableFileError):
        Lexicon.build(["a"], tmp_path / "text" / "a")


@given(st.data())
@settings(max_examples=150, deadline=None)
def test_damaged_files_are_refused_or_answer(data: st.DataObject) -> None:
    whole = bytearray(Lexicon.build({"x": ["a b c", "a"], "y": ["b", "c c"]}).to_bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(whole)) | st.just(len(whole)))
    try:
        lexicon = Lexicon.from_bytes(bytes(whole[:cut]))
        lexicon.match(["a", "b", "c", "c", "d"])
        assert isinstance(lexicon["a b c"], tuple)
    except InputError:
        pass


def test_an_encoder_keeps_its_lexicons() -> None:
    template = Template.parse("U:%in[0,0,here]").bind({"here": Lexicon.build(["a b"])})
    encoder = Encoder(template)
    encoder.fit_encode([["a", "b"]])
    assert isinstance(template.resources, dict)
    template.resources.clear()
    assert [encoder.vocabulary.names()[f] for f in encoder.encode([["a", "b"]]).states.ids] == ["U:B", "U:E"]
