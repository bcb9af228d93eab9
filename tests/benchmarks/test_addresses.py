"""Labelled addresses and names of source distributions: reading, splits, and the comparison itself."""

import io
import tarfile
from pathlib import Path
from types import ModuleType

import pytest
from benchmarks.labelled_strings import FILES, FOLDER_VARIABLE, LabelledString, leave_out, parse_strings
from benchmarks.rival_usaddress import list_columns

from benchmarks import addresses, labelled_strings

ADDRESS = (
    "  <AddressString><AddressNumber>{}</AddressNumber> <Recipient>Mill</Recipient> "
    "<StateName>Rd,</StateName> <PlaceName>York</PlaceName></AddressString>\n"
)
NAME = "  <Name><GivenName>Ann{}</GivenName> <Surname>Smith</Surname>\n  </Name>\n"


def test_strings_are_words_with_labels() -> None:
    text = f"<AddressCollection>\n{ADDRESS.format(7)}<AddressString>, <PlaceName>Y&amp;</PlaceName>, </AddressString>"
    assert parse_strings(f"{text}</AddressCollection>") == [
        LabelledString(
            ("7", "Mill", "Rd,", "York"), ("AddressNumber", "Recipient", "StateName", "PlaceName")
        ),
        LabelledString(("Y&",), ("PlaceName",)),
    ]
    names = f"<NameCollection>{NAME.format(1)}<Name/><Name><Surname> </Surname></Name></NameCollection>"
    assert parse_strings(names) == [LabelledString(("Ann1", "Smith"), ("GivenName", "Surname"))]


def test_strings_that_are_not_well_formed_are_left_out() -> None:
    broken = ADDRESS.format(8).replace(" <Recipient>", " <<Recipient>")
    text = f"<AddressCollection>{ADDRESS.format(7)}{broken}{ADDRESS.format(9)}</AddressCollection>"
    assert [string.words[0] for string in parse_strings(text)] == ["7", "9"]


def test_equal_strings_count_once() -> None:
    one, other = LabelledString(("Mill", "Rd"), ("A", "B")), LabelledString(("MILL", "rd"), ("A", "A"))
    new = LabelledString(("Mill", "Rd,"), ("A", "B"))
    assert leave_out([one, other, new], []) == [one, new]
    assert leave_out([one, new], [other]) == [new]


def pack(folder: Path) -> None:
    """Source distributions with the files of the benchmark, of a few strings."""
    for package in {package for package, _ in FILES.values()}:
        string = ADDRESS if package == "usaddress" else NAME
        with tarfile.open(folder / f"{package}-1.0.tar.gz", "w:gz") as archive:
            for file, (owner, path) in FILES.items():
                if owner == package:
                    first = (
                        14 if file == "messiest" else 1000 * list(FILES).index(file)
                    )  # one string of "addresses"
                    text = "<All>" + "".join(string.format(first + k) for k in range(15)) + "</All>"
                    entry = tarfile.TarInfo(f"{package}-1.0/{path}")
                    entry.size = len(text)
                    archive.addfile(entry, io.BytesIO(text.encode()))


def test_it_reads_source_distributions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path))
    labelled_strings.read_strings.cache_clear()
    addresses.main(["--quick"])
    assert "no source distribution" in capsys.readouterr().err
    pack(tmp_path)
    strings = addresses.development("addresses")
    assert [string.words[0] for string in strings] == [str(k) for k in range(11)]
    assert [string.words[0] for string in addresses.held_back("addresses")] == ["11", "12", "13"]
    assert len(addresses.development("persons+companies")) == 24
    for options in ([], ["--add", "states:3"], ["--parts"], ["--speed"], ["--test"]):
        addresses.main([*options, "--quick", "--corpus", "addresses", "names", "addresses l2=0.5"])
        found = capsys.readouterr().out
        assert "| names |" in found or "| names | addresses l2=0.5 |" in found
    with pytest.raises(SystemExit):
        addresses.main(["--add", "nothing"])
    assert "expected one of addresses, messiest" in capsys.readouterr().err
    labelled_strings.read_strings.cache_clear()


def test_lists_are_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    of_addresses = ModuleType("usaddress")
    vars(of_addresses).update(DIRECTIONS={"ne"}, STREET_NAMES={"rd"})
    assert list_columns(of_addresses, ["N.E.", "Mill", "Rd,"]) == [
        ("N.E.", "direction", "-"),
        ("Mill", "-", "-"),
        ("Rd,", "-", "kind"),
    ]
    of_names = ModuleType("probablepeople")
    vars(of_names).update(ratios={"ANN": 0.96, "SMITH": 0}, gender_names={"ann": 1.0})
    assert list_columns(of_names, ["Ann", "Smith,", "X"]) == [
        ("Ann", "1.0", "1.0"),
        ("Smith,", "0.0", "-"),
        ("X", "-", "-"),
    ]
    monkeypatch.setattr(addresses, "find_rival", lambda package: of_names)
    model = addresses.make_model("addresses +lists", "persons")
    assert model is not None
    strings = [
        LabelledString(words, ("GivenName", "Surname"))
        for words in (("Ann", "X"), ("Y", "Smith"), ("Ann", "Smith"))
    ]
    single = [LabelledString(("Ann",), ("GivenName",)), LabelledString(("Smith",), ("Surname",))]
    assert addresses.answer(addresses.train(model, strings), single).cells() == ["100.00", "100.00"]
    monkeypatch.setattr(addresses, "find_rival", lambda package: None)
    assert addresses.make_model("addresses +lists", "persons") is None
    assert addresses.make_model("rival", "persons") is None


def test_every_string_is_answered_by_a_model_that_has_not_seen_it() -> None:
    seen: list[list[str]] = []

    class Recorder:
        def fit(self, X: list[list[str]], y: list[list[str]]) -> None:
            self.known = [" ".join(words) for words in X]

        def predict(self, X: list[list[str]]) -> list[list[str]]:
            assert not {" ".join(words) for words in X} & set(self.known)
            assert "x more" in self.known
            seen.extend(X)
            return [["A", "A"] for _ in X]

    strings = [LabelledString(("w", str(k)), ("A", "B")) for k in range(13)]
    added = [LabelledString(("x", "more"), ("A", "B")), strings[3]]
    found = addresses.cross_validate(Recorder, strings[:3] + strings[4:], added)
    assert len(found.gold) == len(seen) == 12
    assert found.cells() == ["50.00", "0.00"]
    addresses.cross_validate(Recorder, strings, added)
