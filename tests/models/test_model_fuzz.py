"""Hostile model files: whatever the bytes, loading gives a model or an InputError, and a loaded model answers.

Half of the mutants are damaged files. The other half keep a valid safetensors header: their arrays, settings and
vocabularies are changed one by one and written again, so that the checks behind the container are reached.
"""

from __future__ import annotations

import json
import random
import re
import zlib
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from crfkit import CRF, LBFGS, Chain, FeatureFunction, FeatureFunctions, InputError, Segments, TagDictionary
from crfkit.models.files.loading import from_bytes
from crfkit.models.files.model_file import ModelFile, decode, encode
from crfkit.optimizers import History

ROWS = [[("the", "D"), ("dög", "N"), ("runs", "V")], [("a", "D"), ("cat", "N")]]
LABELS = [["x", "y", "z"], ["x", "y"]]
TEMPLATE = "U00:%x[0,0]\nU01:%x[-1,0]/%x[0,1]\nB\nB00:%x[0,1]\n"
NUMBERS = [np.array([[0.5, 1.0], [2.0, -1.0]]), np.array([[1.0, 1.0]])]
DICTS = [[{"w": "a", "row": row, "n": 2.0} for row in matrix] for matrix in NUMBERS]

Question = tuple[bytes, list[Any]]  # a model file and input that its model understands


def word_and_label(x: Any, label: Any, i: int) -> dict[str, float]:
    return {f"{x[i]} {label}": 1.0}


def neighbours(x: Any, before: Any, label: Any, i: int) -> list[float]:
    return [float(before == label), 0.5 * i]


FUNCTIONS: list[Any] = [word_and_label, FeatureFunction(neighbours, 2, end=True)]


@pytest.fixture(scope="module")
def originals() -> list[Question]:
    few = LBFGS(max_iterations=5)
    models: list[tuple[CRF, list[Any]]] = [
        (CRF(features=TEMPLATE, optimizer=few).fit(ROWS, LABELS), ROWS),
        (CRF(optimizer=few, all_possible_states=True).fit(DICTS, [[1, 2], [1]]), DICTS),
        (CRF(Chain(bigrams="observed"), features=TEMPLATE, optimizer=few).fit(ROWS, LABELS), ROWS),
        (CRF(features=FeatureFunctions(FUNCTIONS), optimizer=few).fit(ROWS, LABELS), ROWS),
        (
            CRF(
                Chain(bigrams="observed", unseen="soft"),
                "U00:%x[0,0]/%x[0,1]\nB\n",
                few,
                facets={"x": {"a": "1"}, "y": {"a": "2", "b": "1"}, "z": {"b": "1"}},
                tag_dictionary=TagDictionary.from_data(ROWS, LABELS, min_count=1, ending_count=1),
            ).fit(ROWS, LABELS),
            ROWS,
        ),
        (
            CRF(
                Segments({"z": 2}, segment_features=[0], dictionaries={"pets": ["dög runs", "cat"]}),
                TEMPLATE,
                few,
            ).fit(ROWS, LABELS),
            ROWS,
        ),
        (CRF(optimizer=few, l2={"w": 0.5}).fit([[["w:a"], ["w:b"]]], [["x", "y"]]), [[["w:a"], ["other"]]]),
    ]
    for model, _ in models:
        model.history_ = History(
            record._replace(seconds=0.0) for record in model.history_
        )  # the same bytes every time
    return [(model.__getstate__()["model"], X) for model, X in models]


def ask(data: bytes, X: list[Any]) -> str:
    """What became of a file: `refused`, or `answered` by a model that was made of it."""
    try:
        functions = FUNCTIONS if b"word_and_label" in data else None
        model = from_bytes(data, "mutant", functions)
    except InputError as error:
        return "refused" if re.fullmatch("mutant: .+", str(error)) else f"refused with {error!r}"
    try:
        model.set_params(n_threads=1)
        assert [len(labels) for labels in model.predict(X)] == [len(x) for x in X]
        for marginals in model.predict_marginals(X):
            assert marginals.shape[1] == len(model.classes_)
        model.predict_nbest(X, 2)
        from_bytes(model.__getstate__()["model"], "again", functions)
    except InputError:
        return "refused later"  # the settings ask for another form of input
    return "answered"


# ---- damaged files


def flip_bits(data: bytes, r: random.Random) -> bytes:
    out = bytearray(data)
    for _ in range(r.choice([1, 1, 2, 8])):
        out[r.randrange(len(out))] ^= 1 << r.randrange(8)
    return bytes(out)


def truncate(data: bytes, r: random.Random) -> bytes:
    return data[: r.randrange(len(data))]


def cut_out(data: bytes, r: random.Random) -> bytes:
    at = r.randrange(len(data))
    return data[:at] + data[at + r.randrange(1, 50) :]


def put_in(data: bytes, r: random.Random) -> bytes:
    at = r.randrange(len(data))
    return data[:at] + r.randbytes(r.randrange(1, 20)) + data[at:]


def overwrite(data: bytes, r: random.Random) -> bytes:
    at = r.randrange(len(data))
    piece = r.choice([bytes(8), b"\xff" * 8, r.randbytes(8), (2**31).to_bytes(8, "little"), b"9" * 8])
    return data[:at] + piece + data[at + len(piece) :]


def edit_header(data: bytes, r: random.Random) -> bytes:
    n_header = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + n_header])
    entry = header[r.choice([name for name in header if name != "__metadata__"])]
    key = r.choice(list(entry))
    entry[key] = r.choice(
        [None, [], [0], [2**62, 4], [-1], [0, 2**63], [1, 0], "F64", "U8", "I64", "F16", 0.5, {}, "x"]
    )
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data[8 + n_header :]


# ---- consistent files with other contents

NUMBERS_FOR_ARRAYS = [0, 1, 2, 3, 7, 127, 128, 255, 65535, 2**31 - 1, 2**31, 2**32 - 1]
VALUES_FOR_SETTINGS: list[Any] = [
    None, True, -1, 0, 1, 2, 3, 9, 2**31, 2**63, 10**400, -0.5, 1e308, "", "x", "U", "U00:%x[9,9]", "U%", "pos",
    "observed", "listed", "soft",
    [], [1], ["x", "x"], [[[]]], ["x", None], [["row", 2]], [["row", -1]], {}, {"start": True}, {"x": 1}, [0] * 9000,
]  # fmt: skip


def change_numbers(file: ModelFile, r: random.Random) -> None:
    name = r.choice([name for name, array in file.arrays.items() if array.size])
    array = file.arrays[name].copy()
    for _ in range(r.choice([1, 1, 3])):
        if array.dtype.kind == "f":
            value = r.choice([np.nan, np.inf, -np.inf, 1e308, -1e308, 1e-320, 0.0, 1e4, -3.5])
        else:
            value = r.choice(NUMBERS_FOR_ARRAYS) % (int(np.iinfo(array.dtype).max) + 1)
        array.flat[r.randrange(array.size)] = value
    file.arrays[name] = array


def change_type(file: ModelFile, r: random.Random) -> None:
    name = r.choice(list(file.arrays))
    kind = r.choice(["<f8", "<f4", "<i8", "<i4", "<u4", "<u2", "u1"])
    with np.errstate(all="ignore"):
        file.arrays[name] = file.arrays[name].astype(kind)


def change_shape(file: ModelFile, r: random.Random) -> None:
    name = r.choice(list(file.arrays))
    array = file.arrays[name].ravel()
    file.arrays[name] = r.choice(
        [
            array[:-1],
            array[:0],
            np.append(array, array[:1]),
            array[None],
            array[::-1].copy(),
            array.reshape(-1, 1),
        ]
    )


def change_names(file: ModelFile, r: random.Random) -> None:
    """Remove, add, exchange or add to arrays as a whole."""
    name, other = r.choice(list(file.arrays)), r.choice(list(file.arrays))
    match r.randrange(3):
        case 0:
            del file.arrays[name]
        case 1:
            file.arrays["extra"] = file.arrays[name]
        case _:
            file.arrays[name], file.arrays[other] = file.arrays[other], file.arrays[name]


def change_setting(file: ModelFile, r: random.Random) -> None:
    """Replace a value somewhere in the settings."""
    where: Any = file.settings
    while True:
        key = r.choice(list(where)) if isinstance(where, dict) else r.randrange(len(where))
        if isinstance(where[key], dict | list) and where[key] and r.random() < 0.6:
            where = where[key]
        elif isinstance(where, dict) and r.random() < 0.2:
            del where[key]
            return
        else:
            where[key] = r.choice(VALUES_FOR_SETTINGS)
            return


def change_vocabulary(file: ModelFile, r: random.Random) -> None:
    """Other names, with sizes and compression that agree with them, or a declared size that does not."""
    what = r.choice(["state_features", "arc_features"])
    names = bytearray(zlib.decompress(file.arrays[f"{what}.names"].tobytes()))
    match r.randrange(4):
        case 0 if names:
            names[r.randrange(len(names))] = r.choice([0, 0x0A, 0x80, 0xC3, 0xFF])
        case 1:
            names += bytes(r.choice([1, 10**6]))
            file.settings["bytes"][what] = len(names)
        case 2:
            file.settings["bytes"][what] = r.choice([0, -1, 1, 2**40, 10**30, len(names) + 1])
        case _ if len(file.arrays[f"{what}.lengths"]) > 1:
            lengths = file.arrays[f"{what}.lengths"].copy()
            lengths[0], lengths[1] = lengths[0] + lengths[1], 0
            file.arrays[f"{what}.lengths"] = lengths
    file.arrays[f"{what}.names"] = np.frombuffer(zlib.compress(bytes(names)), np.uint8)


def many_labels(file: ModelFile, r: random.Random) -> None:
    file.settings["labels"] = [f"label {k}" for k in range(r.choice([4, 100, 8193]))]


DAMAGE: list[Callable[[bytes, random.Random], bytes]] = [
    flip_bits,
    truncate,
    cut_out,
    put_in,
    overwrite,
    edit_header,
]
CHANGES: list[Callable[[ModelFile, random.Random], None]] = [
    change_vocabulary, change_numbers, change_numbers, change_type, change_shape, change_names, change_setting,
    change_setting, many_labels,
]  # fmt: skip


def mutant(data: bytes, r: random.Random, *, consistent: bool) -> bytes:
    if not consistent:
        return r.choice(DAMAGE)(data, r)
    file = decode(data)
    changes = r.sample(CHANGES, r.choice([1, 1, 1, 2]))
    for change in sorted(changes, key=CHANGES.index):
        change(file, r)
    return encode(file)


def fuzz(originals: list[Question], seed: int, n: int) -> Counter[str]:
    r = random.Random(seed)
    outcomes: Counter[str] = Counter()
    for i in range(n):
        data, X = originals[i // 2 % len(originals)]
        consistent = i % 2 == 1
        outcomes[
            f"{'consistent' if consistent else 'damaged'}: {ask(mutant(data, r, consistent=consistent), X)}"
        ] += 1
    return outcomes


@pytest.mark.filterwarnings("error", "ignore:the iteration limit ended")
def test_any_bytes_give_a_model_or_a_complaint(originals: list[Question]) -> None:
    for data, X in originals:
        assert ask(data, X) == "answered"
    outcomes = fuzz(originals, seed=0, n=4000)
    assert outcomes.total() == 4000
    assert not [outcome for outcome in outcomes if "with" in outcome]
    for kind in ("damaged: refused", "damaged: answered", "consistent: refused", "consistent: answered"):
        assert outcomes[kind] > 50, outcomes


@pytest.mark.slow
def test_any_bytes_give_a_model_or_a_complaint_for_longer(originals: list[Question]) -> None:
    for seed in range(1, 21):
        assert fuzz(originals, seed, 5000).total() == 5000


def test_a_file_cut_at_any_byte_is_refused(originals: list[Question]) -> None:
    data, X = originals[0]
    for end in range(0, len(data), 7):
        assert ask(data[:end], X) == "refused"


def test_a_file_without_any_one_of_its_settings_gives_a_model_or_a_complaint(
    originals: list[Question],
) -> None:
    for data, X in originals:
        for name in decode(data).settings:
            file = decode(data)
            del file.settings[name]
            assert ask(encode(file), X) in ("refused", "answered"), name
        for name in decode(data).settings["parameters"]:
            file = decode(data)
            del file.settings["parameters"][name]
            assert ask(encode(file), X) in ("refused", "answered"), name


def test_a_model_with_bigrams_that_is_normalised_at_each_position_is_refused(
    originals: list[Question],
) -> None:
    data, X = originals[2]
    file = decode(data)
    assert "bigrams.before" in file.arrays
    file.settings["local"] = True
    assert ask(encode(file), X) == "refused"
