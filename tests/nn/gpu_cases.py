"""Chains and trees on a GPU against the same questions in memory, in double precision.

`python -m tests.nn.gpu_cases` asks them all, where neither pytest nor the native core need be.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from typing import Any

import torch

from crfkit.nn import ChainCRF, ChainDistribution, TreeDistribution
from crfkit.nn.problem.constraints import bigram_table

SIZES = [(3, 1, 2), (4, 9, 9), (5, 13, 17), (3, 40, 64), (2, 7, 100), (3, 6, 200), (2, 20, 520)]  # B, T, L
DOUBLE_SIZES = [(4, 9, 9), (2, 7, 100), (3, 6, 200)]  # in double precision as well
MASKS = ("none", "ends", "any")
FORMS = ("plain", "no ends", "own transitions", "by position", "allowed", "bigrams", "few bigrams", "never")
CASES = list(itertools.product(SIZES, MASKS, FORMS))
PROCESSES = 14
Case = tuple[Callable[..., None], tuple[Any, ...]]  # a check and what it is given
TOLERANCE = {torch.float32: 2e-4, torch.float64: 1e-9}  # of sums over a sequence, and of probabilities


def arguments(size: tuple[int, int, int], mask: str, form: str, seed: int = 0) -> dict[str, Any]:
    """The arguments of a distribution, in memory and in double precision."""
    B, T, L = size
    rng = torch.Generator().manual_seed(seed)

    def normal(*shape: int) -> torch.Tensor:
        return 2 * torch.randn(*shape, generator=rng, dtype=torch.float64)

    given: dict[str, Any] = {
        "emissions": normal(B, T, L),
        "transitions": normal(*{"own transitions": (B,), "by position": (B, T - 1)}.get(form, ()), L, L),
        "start": None if form == "no ends" else normal(L),
        "end": None if form == "no ends" else normal(L),
    }
    lengths = torch.randint(1, T + 1, (B,), generator=rng)
    if mask == "ends":
        given["mask"] = torch.arange(T) < lengths[:, None]
    elif mask == "any":
        given["mask"] = torch.rand(B, T, generator=rng) < 0.6
    if form == "allowed":
        allowed = torch.rand(B, T, L, generator=rng) < 0.5
        allowed[..., 0] = True
        given["allowed"] = allowed
    elif form in ("bigrams", "few bigrams"):
        table = torch.rand(L, L, generator=rng) < (0.5 if form == "bigrams" else 0.05)
        table[0] = table[:, 0] = True
        given |= {"bigrams": table} if form == "bigrams" else {"table": bigram_table(table, L, None)}
    elif form == "never":
        given["transitions"][torch.rand(L, L, generator=rng) < 0.3] = -torch.inf
        given["transitions"][:, 0] = given["transitions"][0, :] = 0.0
    return given


def distribution_of(given: dict[str, Any]) -> ChainDistribution:
    """With a table of the bigrams that stays, where there is one, as a layer has it."""
    scores = {name: value for name, value in given.items() if name not in ("table", "bigrams")}
    found = ChainDistribution(**scores, bigrams=given.get("table", given.get("bigrams")))
    found._lists = "table" in given
    return found


def answers(given: dict[str, Any], tags: torch.Tensor) -> dict[str, torch.Tensor]:
    """What is compared: sums, their gradients, probabilities, and the score of the best label sequence."""
    leaves = {
        name: value.detach().requires_grad_()
        for name, value in given.items()
        if value is not None and value.is_floating_point()
    }
    distribution = distribution_of({**given, **leaves})
    log_z, log_p = distribution.log_partition(), distribution.log_prob(tags)
    together = log_z.sum() + 0.5 * log_p.sum()
    gradients, again = (
        torch.autograd.grad(together, list(leaves.values()), retain_graph=True) for _ in range(2)
    )
    loss = 0.5 * distribution.log_prob(tags, total=True)  # by backends that have them, with its gradient
    of_total = torch.autograd.grad(loss, list(leaves.values()))
    value, direct = distribution.value_and_gradient(tags, share=-2)
    best = distribution.argmax()
    found = {
        "loss": loss,
        "value": value,
        "log Z": log_z,
        "log p": log_p,
        "marginals": distribution.marginals(),
    }
    found["best"] = distribution.log_prob(best.where(best >= 0, -100), complete=False)
    with torch.no_grad():
        found["marginals by kernels"] = distribution.marginals()
    found |= {f"gradient of {name}": g for name, g in zip(leaves, gradients, strict=True)}
    found |= {f"gradient of {name}, once more": g for name, g in zip(leaves, again, strict=True)}
    found |= {f"gradient of the loss by {name}": g for name, g in zip(leaves, of_total, strict=True)}
    present = [part for part in direct if part is not None]
    found |= {f"{name}, directly": g for name, g in zip(leaves, present, strict=True)}
    return {name: value.detach().double().cpu() for name, value in found.items()}


def check_chain(size: tuple[int, int, int], mask: str, form: str, dtype: torch.dtype = torch.float32) -> None:
    """One batch on both sides."""
    given = arguments(size, mask, form)
    tags = distribution_of(given).sample(1)[0]
    tags = tags.where(tags >= 0, -100)
    expected = answers(given, tags)
    there = {
        name: value if value is None else value.to("cuda", dtype if value.is_floating_point() else None)
        for name, value in given.items()
    }
    found = answers(there, tags.to("cuda"))
    for name, value in expected.items():
        largest = (
            float(value.nan_to_num(0, 0, 0).abs().max()) if value.numel() else 0.0
        )  # one token has no transitions
        scale = TOLERANCE[dtype] * max(1.0, largest)
        torch.testing.assert_close(found[name], value, atol=scale, rtol=0, msg=lambda m, n=name: f"{n}: {m}")


SPAN_SIZES = [(3, 1, 3), (4, 9, 9), (3, 20, 49), (2, 12, 201)]  # B, T, L
SPAN_FORMS = ("plain", "own transitions", "by position", "allowed", "bigrams", "bio")
SPAN_CASES = list(itertools.product(SPAN_SIZES, MASKS, SPAN_FORMS))


def check_spans(size: tuple[int, int, int], mask: str, form: str, dtype: torch.dtype = torch.float32) -> None:
    """Probabilities of spans of a batch on both sides: all above a threshold, and of given spans, with a gradient."""
    given, L = arguments(size, mask, form), size[2]
    labels = ["O", *(f"{letter}-{kind}" for kind in range(L // 2) for letter in "BI")]
    given["emissions"][..., 2::2] += 2.0  # spans of more than one position
    if form == "bio":
        given["bigrams"] = bigram_table("bio", L, labels)
    expected, exact = distribution_of(given).spans(labels, 0.01)
    there = {
        name: value if value is None else value.to("cuda", dtype if value.is_floating_point() else None)
        for name, value in given.items()
    }
    tolerance = TOLERANCE[dtype]
    found, probabilities = distribution_of(there).spans(labels, 0.1)
    likely = {tuple(span): p for span, p in zip(expected.tolist(), exact.tolist(), strict=True)}
    for span, p in zip(found.tolist(), probabilities.tolist(), strict=True):
        assert abs(likely.pop(tuple(span)) - p) <= tolerance, f"{span}: {p}"
    assert all(p < 0.1 + tolerance for p in likely.values()), "a span was not found"
    weights = torch.linspace(1.0, 2.0, len(expected), dtype=torch.float64)

    def gradient(arguments: dict[str, Any]) -> torch.Tensor:
        leaf = arguments["emissions"].requires_grad_()
        asked, factors = expected.to(leaf.device), weights.to(leaf.device)
        by_span = distribution_of(arguments).span_probabilities(asked, labels)
        torch.testing.assert_close(by_span.detach().double().cpu(), exact, atol=tolerance, rtol=0)
        return torch.autograd.grad((by_span * factors).sum(), leaf)[0].double().cpu()

    if L < 100:  # a graph in float64 keeps B · T · S² numbers
        torch.testing.assert_close(gradient(there), gradient(given), atol=10 * tolerance, rtol=0)


TREES = [
    # sentences, words, spread of the scores, share of arcs that do not exist
    (2, 1, 3.0, 0.0),
    (6, 6, 3.0, 0.4),
    (3, 9, 200.0, 0.3),
    (3, 12, 60.0, 0.0),
    (3, 9, 1000.0, 0.3),
    (16, 40, 3.0, 0.0),
    (8, 100, 3.0, 0.0),
    (4, 100, 3.0, 0.9),
    (2, 150, 3.0, 0.0),
]
MOST_FORCED = 12  # words up to which every arc is forced in turn
TREE_TOLERANCE = {torch.float32: 2e-6, torch.float64: 1e-8}  # relative to numbers above 1
COLD = 1e6  # Z of scores so many times larger is almost that of the best tree alone


def log_sums(scores: torch.Tensor, lengths: torch.Tensor, single_root: bool) -> torch.Tensor:
    """log Z [B] by taking out word after word in log space, for scores [B, n + 1, n + 1] of any spread."""
    a = scores.clone()
    a[:, :, 0] = -torch.inf
    a.diagonal(dim1=1, dim2=2).fill_(-torch.inf)
    total, many = scores.new_zeros(len(a)), torch.full((len(a),), not single_root)
    for k in range(a.shape[1] - 1, 0, -1):
        there = k <= lengths
        d = a[:, 1:k, k].logsumexp(1) if k > 1 else a[:, 0, k]
        d = torch.where(many & (k > 1), torch.logaddexp(d, a[:, 0, k]), d)
        forced = ~many & (d == -torch.inf)  # only the root can be its head
        total += torch.where(there, torch.where(forced, a[:, 0, k], d), 0.0)
        q = torch.where(forced[:, None], -torch.inf, a[:, :k, k] - d[:, None]).nan_to_num(
            -torch.inf, neginf=-torch.inf
        )
        q[:, 0] = torch.where(forced, 0.0, q[:, 0])
        a[:, 0] = torch.where((there & forced)[:, None], -torch.inf, a[:, 0])
        new = torch.logaddexp(a[:, :k, :k], q[:, :, None] + a[:, k, None, :k])
        a[:, :k, :k] = torch.where(there[:, None, None], new, a[:, :k, :k])
        many |= there & forced
    return total


def arc_probabilities(scores: torch.Tensor, lengths: torch.Tensor, single_root: bool) -> torch.Tensor:
    """The probability of every arc [B, n + 1, n + 1]: what is left of Z with this arc into its word alone."""
    size = scores.shape[1]
    log_z, found = log_sums(scores, lengths, single_root), torch.zeros_like(scores)
    for head, word in itertools.permutations(range(size), 2):
        if word > 0:
            forced = scores.clone()
            forced[:, torch.arange(size) != head, word] = -torch.inf
            share = (log_sums(forced, lengths, single_root) - log_z).exp().nan_to_num(0.0)
            found[:, head, word] = torch.where((word <= lengths) & (head <= lengths), share, 0.0)
    return found


def check_trees(B: int, n: int, spread: float, holes: float, single_root: bool, dtype: torch.dtype) -> None:
    """A batch of graphs on a GPU: sums, gradients, probabilities, best trees, samples."""
    rng = torch.Generator().manual_seed(n)
    scores = spread * torch.randn(B, n + 1, n + 1, generator=rng)
    scores[torch.rand(scores.shape, generator=rng) < holes] = -torch.inf
    lengths = torch.randint(0, n + 1, (B,), generator=rng)
    lengths[0] = n
    here = TreeDistribution(scores.double(), lengths=lengths, single_root=single_root)
    log_z, inside = log_sums(scores.double(), lengths, single_root), torch.arange(n) < lengths[:, None]
    small = n <= MOST_FORCED
    marginals = arc_probabilities(scores.double(), lengths, single_root) if small else here.marginals()
    best, possible = log_sums(COLD * scores.double(), lengths, single_root) / COLD, torch.isfinite(log_z)
    leaf = scores.to("cuda", dtype).requires_grad_()
    there = TreeDistribution(leaf, lengths=lengths.to("cuda"), single_root=single_root)
    value = there.log_partition()
    [gradient] = torch.autograd.grad(value[possible.to("cuda")].sum(), [leaf])
    with torch.no_grad():
        alone, apart, heads = there.log_partition(), there.marginals(), there.argmax().cpu()
        drawn = there.sample(1)[0].cpu() if small else heads
    for name, found, exact in (
        ("log Z", value, log_z),
        ("log Z alone", alone, log_z),
        ("P", gradient, marginals),
        ("P alone", apart, marginals),
    ):
        difference = (found.detach().cpu().double() - exact)[possible].abs() / exact[
            possible
        ].abs().clamp_min(1.0)
        assert bool((difference <= TREE_TOLERANCE[dtype]).all()), (
            f"{name}: off by {difference.max()}, {dtype}"
        )
    assert bool((value[~possible.to("cuda")] == -torch.inf).all()), "log Z where there is no tree"
    for name, y in (("best", heads), ("sample", drawn)):
        assert bool(((y >= 0) == (inside & possible[:, None])).all()), name
        chosen = scores.double()[:, :, 1:].gather(1, y.clamp_min(0)[:, None])[:, 0]
        total = chosen.masked_fill(~inside, 0.0).sum(1)[possible]
        forced = scores.double().clone()
        allowed = torch.arange(n + 1)[:, None] == y[:, None]
        forced[:, :, 1:].masked_fill_(~allowed & inside[:, None], -torch.inf)
        whole = log_sums(forced, lengths, single_root)[possible]  # −inf if it is no tree
        torch.testing.assert_close(whole, total, atol=1e-9, rtol=1e-9, msg=f"{name}: no tree")
        if name == "best":
            assert bool(((total - best[possible]).abs() < 2e-3).all()), "best: another is better"


STREAMS = [((32, 64, 512), 1.0), ((16, 40, 600), 0.02)]  # B, T, L, and the share of the bigrams that exist


def check_streams(size: tuple[int, int, int], share: float) -> None:
    """Losses whose programs wait for each other, on two streams at once, and as CUDA graphs: the bits of one alone."""
    L = size[2]
    rng = torch.Generator().manual_seed(0)
    table = (torch.rand(L, L, generator=rng) < share) | torch.eye(L, dtype=torch.bool)
    layer = ChainCRF(L, bigrams=None if share == 1.0 else table, device="cuda")
    emissions = [torch.randn(size, generator=rng).to("cuda").requires_grad_() for _ in range(2)]
    tags = torch.zeros(size[:2], dtype=torch.int64, device="cuda")

    def gradient(i: int) -> list[torch.Tensor]:
        loss = layer(emissions[i], tags, complete=True)
        by_scores = torch.autograd.grad(loss, [emissions[i], *layer.parameters()])
        return [
            loss.detach(),
            *by_scores,
        ]  # a graph that lives on would tie the stream of a later one to its own

    expected, streams = [gradient(i) for i in range(2)], [torch.cuda.Stream() for _ in range(2)]
    torch.cuda.synchronize()
    found: list[Any] = [None, None]
    for i in 200 * [0, 1]:
        with torch.cuda.stream(streams[i]):
            found[i] = gradient(i)
    torch.cuda.synchronize()
    graphs, captured = [torch.cuda.CUDAGraph() for _ in range(2)], []
    for graph, stream, i in zip(graphs, streams, range(2), strict=True):
        with torch.cuda.graph(graph, stream=stream):
            captured.append(gradient(i))
    for i in 200 * [0, 1]:
        with torch.cuda.stream(streams[i]):
            graphs[i].replay()
    torch.cuda.synchronize()
    for i in range(2):
        for mine, graphed, alone in zip(found[i], captured[i], expected[i], strict=True):
            assert torch.equal(mine, alone), "two streams: other bits"
            assert torch.equal(graphed, alone), "two graphs: other bits"


def failures(cases: list[Case]) -> list[str]:
    """A description of what goes wrong in these cases."""
    wrong = []
    for check, given in cases:
        try:
            check(*given)
        except Exception as error:  # all of them are to be seen
            wrong.append(f"{given} {type(error).__name__} {str(error)[:300]}".replace("\n", " "))
    return wrong


def shares() -> list[list[Case]]:
    """All cases, those that need the same kernels together, the longest to compile first."""
    trees: dict[Any, list[Case]] = {}
    for tree, single_root, dtype in itertools.product(reversed(TREES), (True, False), TREE_TOLERANCE):
        kernels = max(16, tree[1]).bit_length(), dtype
        trees.setdefault(kernels, []).append((check_trees, (*tree, single_root, dtype)))
    kinds = [(size, torch.float32) for size in SIZES] + [(size, torch.float64) for size in DOUBLE_SIZES]
    chains = [
        [(check_chain, (size, mask, form, dtype)) for form in FORMS]
        for (size, dtype), mask in itertools.product(kinds, MASKS)
    ]
    spans: list[list[Case]] = [
        [(check_spans, (size, mask, form, dtype)) for mask, form in itertools.product(MASKS, SPAN_FORMS)]
        for size, dtype in itertools.product(SPAN_SIZES, TOLERANCE)
    ]
    return [*trees.values(), *([(check_streams, case)] for case in STREAMS), *chains, *spans]


def main() -> None:
    """Ask all, in several processes as compiling takes most of the time, and count what went wrong."""
    parts, wrong = shares(), 0
    with ProcessPoolExecutor(
        PROCESSES, mp_context=get_context("spawn"), initializer=torch.set_num_threads, initargs=(1,)
    ) as pool:
        for done, answer in enumerate(as_completed([pool.submit(failures, part) for part in parts]), 1):
            wrong += len(answer.result())
            print(*answer.result(), f"{done} of {len(parts)} groups are done", sep="\n", flush=True)
    count = sum(map(len, parts))
    print(f"{count - wrong} of {count} cases are the same on both sides")


if __name__ == "__main__":
    main()
