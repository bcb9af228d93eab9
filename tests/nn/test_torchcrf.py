"""`crfkit.compat.torchcrf`: pytorch-crf's interface, against pytorch-crf itself where it is installed."""

from __future__ import annotations

import copy
import itertools
import pickle
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason='needs PyTorch: pip install ".[torch]"')

from crfkit import compat
from crfkit.compat.torchcrf import CRF
from tests.needs import pytorch_crf

B, T, L = 4, 6, 5
LENGTHS = [6, 1, 4, 2]


@pytest.fixture
def theirs() -> Any:
    """pytorch-crf itself."""
    module = pytorch_crf()
    assert module.CRF is not CRF
    return module


@contextmanager
def installed() -> Iterator[None]:
    """Meanwhile, `from torchcrf import CRF` gives the class here."""
    finders, kept = list(sys.meta_path), sys.modules.get("torchcrf")
    compat.install("torchcrf")
    try:
        yield
    finally:
        sys.meta_path[:] = finders
        for name in [name for name in sys.modules if name.split(".")[0] == "torchcrf"]:
            del sys.modules[name]
        if kept is not None:
            sys.modules["torchcrf"] = kept


def scores(crf: Any, emissions: Any) -> dict[tuple[int, ...], float]:
    """score(y) of all tag sequences y of one sequence [T, L]."""
    start, end, between = (
        part.tolist() for part in (crf.start_transitions, crf.end_transitions, crf.transitions)
    )
    rows = emissions.tolist()
    return {
        y: start[y[0]]
        + end[y[-1]]
        + sum(row[k] for row, k in zip(rows, y, strict=True))
        + sum(between[a][b] for a, b in itertools.pairwise(y))
        for y in itertools.product(range(crf.num_tags), repeat=len(rows))
    }


def spread(crf: Any, size: float = 2.0) -> Any:
    """The layer with parameters that matter."""
    for parameter in crf.parameters():
        torch.nn.init.normal_(parameter, std=size)
    return crf


def padding(dtype: Any = torch.bool) -> Any:
    """The mask [T, B] of sequences padded at the end."""
    return (torch.arange(T)[:, None] < torch.tensor(LENGTHS)).to(dtype)


@pytest.mark.parametrize("batch_first", [False, True])
def test_against_brute_force(batch_first: bool) -> None:
    torch.manual_seed(0)
    crf = spread(CRF(3, batch_first=batch_first).double())
    emissions, tags, mask = torch.randn(T, B, 3).double(), torch.randint(0, 3, (T, B)), padding(torch.uint8)
    given = [part.transpose(0, 1) if batch_first else part for part in (emissions, tags, mask)]
    values, best = crf(*given, "none"), crf.decode(given[0], given[2])
    for b, n in enumerate(LENGTHS):
        by_sequence = scores(crf, emissions[:n, b])
        log_z = torch.tensor(list(by_sequence.values()), dtype=torch.float64).logsumexp(0)
        torch.testing.assert_close(
            values[b], by_sequence[tuple(tags[:n, b].tolist())] - log_z, rtol=0, atol=1e-10
        )
        assert tuple(best[b]) == max(by_sequence, key=by_sequence.__getitem__)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("reduction", ["none", "sum", "mean", "token_mean"])
@pytest.mark.parametrize("mask", [None, torch.bool, torch.uint8])
@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.filterwarnings("ignore:where received a uint8 condition:UserWarning")
def test_values_and_gradients_are_those_of_pytorch_crf(
    theirs: Any, dtype: Any, reduction: str, mask: Any, batch_first: bool
) -> None:
    torch.manual_seed(1)
    here, there = CRF(L, batch_first), spread(theirs.CRF(L, batch_first).to(dtype))
    here = here.to(dtype)
    here.load_state_dict(there.state_dict())
    tolerance = {"rtol": 1e-5, "atol": 1e-5} if dtype == torch.float32 else {"rtol": 1e-10, "atol": 1e-10}
    for _ in range(2):
        emissions, tags = 3 * torch.randn(T, B, L, dtype=dtype), torch.randint(0, L, (T, B))
        on = None if mask is None else padding(mask)
        if batch_first:
            emissions, tags = emissions.transpose(0, 1), tags.T
            on = None if on is None else on.T
        pair = []
        for crf in (here, there):
            given = emissions.clone().requires_grad_()
            crf.zero_grad()
            value = crf(given, tags, on, reduction)
            (value * torch.arange(1, value.numel() + 1)).sum().backward()
            pair.append((value, given.grad, *(parameter.grad for parameter in crf.parameters())))
            assert value.dtype == dtype
        for found, expected in zip(*pair, strict=True):
            torch.testing.assert_close(found, expected, **tolerance)
        assert here.decode(emissions, on) == there.decode(emissions, on)


def test_ties_are_broken_as_pytorch_crf_does(theirs: Any) -> None:
    torch.manual_seed(2)
    for _ in range(10):
        here, there = CRF(3), theirs.CRF(3)
        for parameter in there.parameters():
            parameter.data = torch.randint(0, 2, parameter.shape).float()
        here.load_state_dict(there.state_dict())
        emissions, mask = torch.randint(0, 2, (T, B, 3)).float(), padding()
        assert here.decode(emissions, mask) == there.decode(emissions, mask)


def test_parameters() -> None:
    """Names, order, shapes, and the uniform distribution on [−0.1, 0.1]."""
    crf = CRF(num_tags=L)
    assert crf.num_tags == L
    assert crf.batch_first is False
    assert CRF(L, batch_first=True).batch_first is True
    shapes = [(name, tuple(part.shape)) for name, part in crf.named_parameters()]
    assert shapes == [("start_transitions", (L,)), ("end_transitions", (L,)), ("transitions", (L, L))]
    assert list(crf.state_dict()) == [name for name, _ in shapes]
    before = copy.deepcopy(crf.state_dict())
    crf.reset_parameters()
    assert all(not torch.equal(part, before[name]) for name, part in crf.state_dict().items())
    drawn = CRF(100).transitions
    assert 0.09 < drawn.abs().max() <= 0.1
    assert drawn.mean().abs() < 0.01
    assert repr(crf) == "CRF(num_tags=5)"


def test_one_seed_gives_the_parameters_of_pytorch_crf(theirs: Any) -> None:
    made = []
    for kind in (CRF, theirs.CRF):
        torch.manual_seed(3)
        made.append(kind(L))
    for found, expected in zip(*(crf.parameters() for crf in made), strict=True):
        assert torch.equal(found, expected)


@pytest.mark.parametrize("n", [0, -1])
def test_there_is_at_least_one_tag(n: int) -> None:
    with pytest.raises(ValueError, match=f"invalid number of tags: {n}"):
        CRF(n)


DIFFER = r"the first two dimensions of emissions and {} must match, got \(1, 2\) and \(2, 2\)"
ERRORS = [  # shapes of emissions, tags and mask
    ((1, 2), (2, 2), None, "emissions must have dimension of 3, got 2"),
    ((1, 2, 3), (1, 2), None, "expected last dimension of emissions is 5, got 3"),
    ((1, 2, 5), (2, 2), None, DIFFER.format("tags")),
    ((1, 2, 5), (1, 2), (2, 2), DIFFER.format("mask")),
]


@pytest.mark.parametrize("original", [False, True])
@pytest.mark.parametrize(("emissions", "tags", "mask", "message"), ERRORS)
def test_errors(emissions: Any, tags: Any, mask: Any, message: str, original: bool) -> None:
    scores, labels = torch.zeros(emissions), torch.zeros(tags, dtype=torch.int64)
    on = None if mask is None else torch.ones(mask, dtype=torch.uint8)
    crf = (pytorch_crf().CRF if original else CRF)(L)
    with pytest.raises(ValueError, match=f"^{message}$"):
        crf(scores, labels, on)
    if "tags" not in message:
        with pytest.raises(ValueError, match=f"^{message}$"):
            crf.decode(scores, on)


@pytest.mark.parametrize("batch_first", [False, True])
def test_the_first_position_must_be_on(batch_first: bool) -> None:
    crf = CRF(L, batch_first)
    mask = padding(torch.uint8)
    mask[0, 1] = 0
    emissions, tags = torch.zeros(T, B, L), torch.zeros(T, B, dtype=torch.int64)
    if batch_first:
        emissions, tags, mask = emissions.transpose(0, 1), tags.T, mask.T
    with pytest.raises(ValueError, match=r"^mask of the first timestep must all be on$"):
        crf(emissions, tags, mask)
    with pytest.raises(ValueError, match=r"^mask of the first timestep must all be on$"):
        crf.decode(emissions, mask)


def test_reductions_are_checked() -> None:
    with pytest.raises(ValueError, match=r"^invalid reduction: foo$"):
        CRF(L)(torch.zeros(T, B, L), torch.zeros(T, B, dtype=torch.int64), reduction="foo")


@pytest.mark.parametrize("tag", [L, -1, -100])
def test_tags_that_do_not_exist(tag: int) -> None:
    """Are errors, but at positions that are off."""
    crf, emissions, tags = CRF(L), torch.zeros(T, B, L), torch.zeros(T, B, dtype=torch.int64)
    expected = crf(emissions, tags, padding())
    tags[2, 1] = tag  # beyond its one position
    assert crf(emissions, tags, padding()) == expected
    with pytest.raises(IndexError, match="tags"):
        crf(emissions, tags)
    with pytest.raises(IndexError, match="tags"):
        crf(emissions, tags.float())


def test_lists_of_ints() -> None:
    torch.manual_seed(4)
    crf, emissions = CRF(L), torch.randn(T, B, L)
    for mask, lengths in ((None, [T] * B), (padding(), LENGTHS), (padding(torch.uint8), LENGTHS)):
        found = crf.decode(emissions, mask=mask)
        assert isinstance(found, list)
        assert [len(tags) for tags in found] == lengths
        assert all(type(tag) is int for tags in found for tag in tags)
    assert crf.decode(emissions[:, :0]) == []


def test_masks_with_holes_remove_positions() -> None:
    torch.manual_seed(5)
    crf, emissions, tags = spread(CRF(L)), torch.randn(T, B, L), torch.randint(0, L, (T, B))
    mask = torch.rand(T, B) < 0.5
    mask[0] = True
    values, best = crf(emissions, tags, mask, reduction="none"), crf.decode(emissions, mask)
    for b in range(B):
        kept = mask[:, b]
        alone = emissions[kept, b][:, None], tags[kept, b][:, None]
        torch.testing.assert_close(values[b], crf(*alone))
        assert best[b] == crf.decode(alone[0])[0]


@pytest.mark.parametrize("value", [float("nan"), float("-inf")])
def test_scores_without_a_best_sequence_give_tags_all_the_same(value: float) -> None:
    emissions = torch.zeros(T, B, L)
    emissions[1, 0] = value
    found = CRF(L).decode(emissions, padding())
    assert [len(tags) for tags in found] == LENGTHS
    assert all(0 <= tag < L for tags in found for tag in tags)


@pytest.mark.parametrize(
    "emissions", [torch.int64, torch.float16, torch.bfloat16, torch.float32, torch.float64]
)
@pytest.mark.parametrize("parameters", [torch.float32, torch.float64])
def test_precision_is_that_of_both_together(theirs: Any, emissions: Any, parameters: Any) -> None:
    torch.manual_seed(6)
    there = theirs.CRF(L).to(parameters)
    here = CRF(L).to(parameters)
    here.load_state_dict(there.state_dict())
    given, tags = torch.randint(-3, 4, (T, B, L)).to(emissions), torch.randint(0, L, (T, B))
    mask = torch.ones(T, B, dtype=torch.bool)
    torch.testing.assert_close(here(given, tags, mask), there(given, tags, mask))  # and their types
    assert here.decode(given) == there.decode(given, mask)


def test_state_dicts_optimizers_and_pickles_of_pytorch_crf(theirs: Any) -> None:
    there = theirs.CRF(L, batch_first=True)
    adam = torch.optim.Adam(there.parameters())
    emissions, tags = torch.randn(B, T, L), torch.randint(0, L, (B, T))
    mask = torch.ones(B, T, dtype=torch.bool)
    (-there(emissions, tags, mask)).backward()
    adam.step()
    here = CRF(L, batch_first=True)
    here.load_state_dict(there.state_dict())
    resumed = torch.optim.Adam(here.parameters())
    resumed.load_state_dict(adam.state_dict())
    for ours, original in zip(here.parameters(), there.parameters(), strict=True):
        assert torch.equal(resumed.state[ours]["exp_avg"], adam.state[original]["exp_avg"])
    data = pickle.dumps(there)
    with installed():
        opened = pickle.loads(data)
    assert type(opened) is CRF
    torch.testing.assert_close(opened(emissions, tags), there(emissions, tags, mask))
    assert opened.decode(emissions) == there.decode(emissions, mask)


def test_copies_and_pickles() -> None:
    crf, emissions = CRF(L), torch.randn(T, B, L)
    for other in (copy.deepcopy(crf), pickle.loads(pickle.dumps(crf))):
        assert other.decode(emissions) == crf.decode(emissions)


def test_install_stands_in_for_pytorch_crf() -> None:
    with installed():
        import torchcrf

        assert torchcrf.CRF is CRF
        assert torchcrf.__version__ == "0.7.2"
        with pytest.raises(ImportError, match="cannot import name 'Crf'"):
            from torchcrf import Crf  # noqa: F401


def test_pytorch_is_imported_with_the_layer_alone() -> None:
    program = """
import sys
import crfkit.compat
crfkit.compat.install()
assert "torch" not in sys.modules
sys.modules["torch"] = None  # not installed
try:
    from torchcrf import CRF
except ModuleNotFoundError as error:
    print(error.name)
"""
    finished = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert finished.stdout == "torch\n"


def test_compiled_programs() -> None:
    """The loss is one graph."""
    crf, emissions, tags = CRF(L), torch.randn(T, B, L, requires_grad=True), torch.zeros(T, B).long()
    compiled = torch.compile(crf, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(
        compiled(emissions, tags, padding(), "token_mean"), crf(emissions, tags, padding(), "token_mean")
    )


def test_a_program_trains() -> None:
    """Tags alternate; only the first can be read from its own position."""
    torch.manual_seed(7)
    first = torch.randint(0, 2, (1, 32))
    tags = (first + torch.arange(6)[:, None]) % 2
    given = torch.zeros(6, 32, 2)
    given[0] = torch.nn.functional.one_hot(first[0], 2).float()
    crf, linear = CRF(2), torch.nn.Linear(2, 2)
    optimizer = torch.optim.Adam([*linear.parameters(), *crf.parameters()], lr=0.1)
    for _ in range(40):
        optimizer.zero_grad()
        (-crf(linear(given), tags, reduction="mean")).backward()
        optimizer.step()
    assert crf.decode(linear(given)) == tags.T.tolist()
