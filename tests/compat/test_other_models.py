"""Model files of CRF++ and Wapiti, made by hand from their layout, against enumeration by their own rules."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

import crfkit
from crfkit.compat import read_crfpp, read_wapiti
from crfkit.compat.crfpp_file import parse_crfpp
from crfkit.compat.wapiti_file import parse_wapiti
from crfkit.errors import FileFormatError

Rows = list[tuple[str, str]]
WORDS = ["the", "Dog", "runs", "Łódź", "a"]
TAGS = ["D", "N", "V"]
LABELS = ["x", "y", "z"]
TEMPLATE = ["U00:%x[-1,0]", "U01:%x[0,0]/%x[1,1]", "U02:bias", "B", "B01:%x[0,1]"]
PATTERNS = [
    "u:w=%x[0,0]",
    "u:low=%X[-1,0]",
    'u:suf=%m[0,0,".?.?$"]',
    'u:cap=%t[1,0,"^\\u"]',
    "*:first=%x[@1,1]/%x[@-1,0]",
    "b",
    "b:tag=%x[0,1]",
    "u:far=%x[-6,0]",
]


def random_rows(rng: np.random.Generator, n_positions: int) -> Rows:
    return [(str(rng.choice(WORDS)), str(rng.choice(TAGS))) for _ in range(n_positions)]


def crfpp_features(lines: Sequence[str], rows: Rows, position: int) -> list[str]:
    """What CRF++ makes of its template at a position."""

    def value(found: re.Match[str]) -> str:
        row, column = position + int(found[1]), int(found[2])
        if row < 0:
            return f"_B{row}"
        return rows[row][column] if row < len(rows) else f"_B+{row - len(rows) + 1}"

    return [re.sub(r"%x\[([-0-9]+),([0-9]+)\]", value, line) for line in lines]


def wapiti_features(lines: Sequence[str], rows: Rows, position: int) -> list[bytes]:
    """What Wapiti makes of its patterns at a position, in the bytes of UTF-8 and for the expressions used here."""

    def value(found: re.Match[str]) -> str:
        command, at, row, column, regex = found.groups()
        place = int(row)
        place = position + place if not at else place + len(rows) if place < 0 else place - 1
        if place < 0:
            text = f"_x-{-place}" if place >= -4 else "_x-#"
        elif place >= len(rows):
            text = f"_x+{place - len(rows) + 1}" if place - len(rows) < 4 else "_x+#"
        else:
            text = rows[place][int(column)]
        data = text.encode()
        if command == "m":
            data = data[-2:] if regex == ".?.?$" else data
        elif command == "t":
            data = b"true" if data[:1].isupper() else b"false"
        return (data.lower() if command.isupper() else data).decode("latin-1")

    command = re.compile(r'%([xtmXTM])\[(@?)([-0-9]+),([0-9]+)(?:,"(.*?)")?\]')
    raw = [line.encode().decode("latin-1") for line in lines]
    return [command.sub(lambda found: value(found), line).encode("latin-1") for line in raw]


class Reference:
    """Scores by the definition: the weights of the features that a label sequence has, added up."""

    def __init__(
        self,
        features: Callable[[Rows, int], Sequence[str | bytes]],
        weights: dict[tuple[str | bytes, int, int], float],
    ) -> None:
        self.features, self.weights = features, weights  # (feature, label before or −1, label) → weight

    def log_probabilities(self, rows: Rows) -> dict[tuple[str, ...], float]:
        """log p of every label sequence."""
        active = [self.features(rows, position) for position in range(len(rows))]
        scores = {}
        for label_sequence in itertools.product(range(len(LABELS)), repeat=len(rows)):
            score = 0.0
            for position, label in enumerate(label_sequence):
                for feature in active[position]:
                    score += self.weights.get((feature, -1, label), 0.0)
                    if position:
                        score += self.weights.get((feature, label_sequence[position - 1], label), 0.0)
            scores[tuple(LABELS[label] for label in label_sequence)] = score
        log_z = math.log(sum(math.exp(score) for score in scores.values()))
        return {label_sequence: score - log_z for label_sequence, score in scores.items()}


def compare(model: crfkit.CRF, reference: Reference, sequences: Sequence[Rows]) -> None:
    for rows in sequences:
        expected = reference.log_probabilities(rows)
        label_sequences = list(expected)
        found = model.log_probability([rows] * len(label_sequences), [list(y) for y in label_sequences])
        np.testing.assert_allclose(found, list(expected.values()), atol=1e-9)
        assert tuple(model.predict([rows])[0]) == max(expected, key=expected.__getitem__)
        marginals = model.predict_marginals([rows])[0]
        for position in range(len(rows)):
            for k, label in enumerate(model.classes_):
                p = sum(math.exp(v) for y, v in expected.items() if y[position] == label)
                assert marginals[position, k] == pytest.approx(p, abs=1e-9)


def crfpp_model(
    rng: np.random.Generator, cost_factor: float = 1.0, template: Sequence[str] = TEMPLATE
) -> tuple[str, Reference]:
    """The text of a random model, and what it means."""
    L = len(LABELS)
    data = [random_rows(rng, 5) for _ in range(6)]
    seen = {f for rows in data for position in range(5) for f in crfpp_features(template, rows, position)}
    entries: list[tuple[str, int]] = []
    weights: dict[tuple[str | bytes, int, int], float] = {}
    numbers: list[float] = []
    for feature in sorted(seen, key=lambda _: rng.random()):
        entries.append((feature, len(numbers)))
        size = L if feature[0] == "U" else L * L
        values = [round(float(v), 6) for v in rng.normal(size=size)]
        for k, v in enumerate(values):
            weights[feature, -1 if size == L else k // L, k % L] = v * cost_factor
        numbers += values
    text = (
        f"version: 100\ncost-factor: {cost_factor}\nmaxid: {len(numbers)}\nxsize: 2\n\n"
        + "".join(f"{label}\n" for label in LABELS)
        + "\n"
        + "".join(f"{line}\n" for line in template)
        + "\n"
        + "".join(f"{number} {feature}\n" for feature, number in sorted(entries))
        + "\n"
        + "".join(f"{v:.16f}\n" for v in numbers)
    )
    return text, Reference(lambda rows, position: crfpp_features(template, rows, position), weights)


def wapiti_model(
    rng: np.random.Generator,
    head: str = "#mdl#2#",
    patterns: Sequence[str] = PATTERNS,
    number_of: Callable[[float], str] = float.hex,
) -> tuple[bytes, Reference]:
    L = len(LABELS)
    data = [random_rows(rng, 5) for _ in range(6)]
    seen = {f for rows in data for position in range(5) for f in wapiti_features(patterns, rows, position)}
    names = sorted(seen, key=lambda _: rng.random())
    weights: dict[tuple[str | bytes, int, int], float] = {}
    lines, number = [], 0
    for name in names:
        for size in (L,) * (name[:1] in b"u*") + (L * L,) * (name[:1] in b"b*"):
            for k in range(size):
                if rng.random() < 0.7:
                    value = round(float(rng.normal()), 6)
                    lines.append(b"%d=%s\n" % (number, number_of(value).encode()))
                    weights[name, -1 if size == L else k // L, k % L] = value
                number += 1

    def texts(values: Sequence[bytes]) -> bytes:
        return b"".join(b"%d:%s,\n" % (len(value), value) for value in values)

    content = (
        f"{head}{len(lines)}\n#rdr#{len(patterns)}/1/0\n".encode()
        + texts([pattern.encode() for pattern in patterns])
        + b"#qrk#%d\n" % L
        + texts([label.encode() for label in LABELS])
        + b"#qrk#%d\n" % len(names)
        + texts(names)
        + b"".join(lines)
    )
    return content, Reference(lambda rows, position: wapiti_features(patterns, rows, position), weights)


@pytest.mark.parametrize("seed", range(5))
def test_crfpp_models_mean_what_their_layout_says(seed: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(seed)
    text, reference = crfpp_model(rng, cost_factor=[1.0, 0.5][seed % 2])
    (tmp_path / "model.txt").write_text(text, encoding="utf-8")
    model = read_crfpp(tmp_path / "model.txt")
    assert list(model.classes_) == LABELS
    assert model.n_columns_ == 2
    compare(model, reference, [random_rows(rng, n) for n in (1, 2, 4)])


@pytest.mark.parametrize("seed", range(5))
def test_wapiti_models_mean_what_their_layout_says(seed: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(seed)
    content, reference = wapiti_model(rng, ["#mdl#2#", "#mdl#", "#mdl#0#"][seed % 3])
    (tmp_path / "model.wap").write_bytes(content)
    model = read_wapiti(tmp_path / "model.wap")
    assert list(model.classes_) == LABELS
    assert model.n_columns_ == 2
    sequences = [random_rows(rng, n) for n in (1, 2, 4)]
    compare(model, reference, sequences)
    model.save(tmp_path / "model.crfkit")
    compare(crfkit.load(tmp_path / "model.crfkit"), reference, sequences)


def test_features_cut_inside_a_character_are_found() -> None:
    """`.?.?.?$` takes bytes, as in Wapiti: three of `Łódź` are half of a letter and another one."""
    half = "ód".encode()[-1:] + "ź".encode()
    pattern = b'u:%m[0,0,".?.?.?$"]'
    name = b"u:" + half
    content = b"#mdl#2#1\n#rdr#1/0/0\n%d:%s,\n#qrk#2\n1:a,\n1:b,\n#qrk#1\n%d:%s,\n1=0x1p+2\n" % (
        len(pattern),
        pattern,
        len(name),
        name,
    )
    model = parse_wapiti(content)
    assert model.predict([["Łódź"], ["Rom"]]) == [["b"], ["a"]]


def test_the_letter_that_wapiti_puts_before_features_is_taken_off() -> None:
    content = b"#mdl#0#1\n#rdr#1/0/1\n9:u:%x[0,0],\n#qrk#2\n1:a,\n1:b,\n#qrk#1\n6:uu:the,\n1=0x1p+2\n"
    assert parse_wapiti(content).predict([["the"], ["cat"]]) == [["b"], ["a"]]


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (("#rdr#8", "#rdr#0"), "expected a line that begins with #qrk#"),
        (("#rdr#8", "#rdr#9"), "expected length:text"),
        (("1:x,\n1:y", "1:y,\n1:y"), "distinct"),
        (("\n0=", "\n999999999="), "rising|fewer"),
        (("u:w=%x[0,0]", "q:w=%x[0,0]"), "must begin with u, b"),
        (("u:w=the", "q:w=the"), "a feature begins neither"),
    ],
)
def test_damaged_wapiti_models_are_refused(change: tuple[str, str], complaint: str) -> None:
    content, _ = wapiti_model(np.random.default_rng(0))
    text = content.decode("latin-1")
    changed = text.replace(*change, 1)
    assert changed != text
    with pytest.raises(FileFormatError, match=complaint):
        parse_wapiti(changed.encode("latin-1"))


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (("maxid: ", "maxid: 1"), "weights, and maxid says"),
        (("maxid:", "maximum:"), "no maxid"),
        (("xsize: 2", "xsize: 1"), "reads column 1"),
        (("xsize: 2", "xsize: two"), "xsize is 'two'"),
        (("x\ny\n", "y\ny\n"), "distinct"),
        (("U02:bias", "Q02:bias"), "must begin with U, B"),
        (("cost-factor: 1.0", "cost-factor: much"), "cost-factor is 'much'"),
        (("\n\n", "\n"), "parts"),
    ],
)
def test_damaged_crfpp_models_are_refused(change: tuple[str, str], complaint: str) -> None:
    text, _ = crfpp_model(np.random.default_rng(0))
    changed = text.replace(*change) if change[0] == "\n\n" else text.replace(*change, 1)
    assert changed != text
    with pytest.raises(FileFormatError, match=complaint):
        parse_crfpp(changed.encode())
