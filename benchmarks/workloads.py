"""`python -m benchmarks.workloads JOB`: one workload in this interpreter's build of crfkit, for `benchmarks.two_builds`.

It imports crfkit by its public names only, and where these differ between builds it takes the first one that exists
(`find`). Input comes as plain Python objects, made once for both builds (`benchmarks.build_inputs`).
"""

from __future__ import annotations

import gc
import io
import json
import math
import os
import pickle
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.memory import peak_mb, restart_peak_mb


class Done(NamedTuple):
    """What a workload found: a number that both builds must agree on, and the CPU seconds of one iteration."""

    value: float
    iteration: float | None = None


Work = Callable[[], Done]


class Workload(NamedTuple):
    """Something to time: `prepare` gets the input and gives the part that is timed."""

    title: str
    input: str  # a key of `build_inputs.INPUTS`
    prepare: Callable[[Any], Work]


def find(owner: Any, *names: str) -> Any:
    """The first of these names that this build has: new ones before old ones."""
    for name in names:
        if hasattr(owner, name):
            return getattr(owner, name)
    raise AttributeError(f"{owner.__name__} has none of {', '.join(names)}")


def crfkit() -> Any:
    """The build of this interpreter, without types: the names of another build may be other ones."""
    import crfkit

    return crfkit


def fit(model: Any, *data: Any, **options: Any) -> Done:
    """Train; the last objective, and the CPU seconds of an iteration after the first one."""
    ticks: list[float] = []

    def callback(_: Any) -> None:
        ticks.append(time.process_time())

    model.fit(*data, callback=callback, **options)
    per_iteration = (ticks[-1] - ticks[0]) / (len(ticks) - 1) if len(ticks) > 2 else None
    objective = next(record.objective for record in reversed(model.history_))
    if not math.isfinite(objective):  # learners from mistakes have none
        objective = float(np.abs(model.weights_).sum())
    return Done(objective, per_iteration)


def lbfgs(n: int, **settings: Any) -> Any:
    """L-BFGS for exactly n iterations."""
    return crfkit().LBFGS(max_iterations=n, **{"tolerance": 0.0, "change": 0.0, **settings})


def training(optimizer: Callable[[], Any], **params: Any) -> Callable[[Any], Work]:
    """Training of a CRF on sequences of the input."""

    def prepare(data: Any) -> Work:
        return lambda: fit(
            crfkit().CRF(optimizer=optimizer(), n_threads=1, **{"l2": 1.0, **params}),
            data["X"],
            data["y"],
            allowed=data.get("allowed"),
        )

    return prepare


def with_bigrams(n: int, unseen: str = "error") -> Callable[[Any], Work]:
    """Training in which only observed label pairs exist, or have weights."""

    def prepare(data: Any) -> Work:
        kit = crfkit()
        structure = kit.Chain(bigrams="observed", unseen=unseen)
        if unseen == "soft":  # half of the pairs that occur
            pairs = sorted({pair for labels in data["y"] for pair in pairwise(labels)})
            structure = kit.Chain(bigrams=kit.Bigrams(pairs[::2]), unseen=unseen)
        return training(lambda: lbfgs(n), structure=structure)(data)

    return prepare


def with_patterns(data: Any) -> Work:
    kit = crfkit()
    structure = kit.Patterns([kit.Affixes(8), kit.Ngrams(3, min_count=5)])
    return training(lambda: lbfgs(data["iterations"]), structure=structure)(data)


def with_functions(data: Any) -> Work:
    def first_letter(x: Any, label: str, i: int) -> dict[str, float]:
        return {f"{x[i][0]} {label}": 1.0, f"{len(x[i])} {label}": 0.5}

    features = crfkit().FeatureFunctions([first_letter])
    return training(lambda: lbfgs(data["iterations"]), features=features)(data)


def answering(question: str, *arguments: Any, **params: Any) -> Callable[[Any], Work]:
    """A question to a model that was trained briefly, eight times over."""

    def prepare(data: Any) -> Work:
        model = crfkit().CRF(optimizer=lbfgs(5), n_threads=1, **params)
        model.fit(data["X"], data["y"], allowed=data.get("allowed"))
        ask = getattr(model, question)

        def work() -> Done:
            for _ in range(8):
                found = ask(data["X_new"], *arguments)
            return Done(_digest(found))

        return work

    return prepare


def _digest(found: Any) -> float:
    """A number that changes with the answers."""
    if isinstance(found, np.ndarray | float | int):
        return float(np.abs(found).sum())
    if isinstance(found, str):
        return float(sum(found.encode()))
    return float(sum((i % 7 + 1) * _digest(part) for i, part in enumerate(found)))


def chains(dtype: type) -> Callable[[Any], Work]:
    """Forward–backward and Viterbi on chains of plain scores."""

    def prepare(data: Any) -> Work:
        kit = crfkit()
        batch = kit.inference.ChainBatch(data["emissions"].astype(dtype), data["transitions"].astype(dtype))

        def work() -> Done:
            for _ in range(data["times"]):
                log_z = find(batch, "expectations")()[0]
                labels = find(batch, "viterbi", "decode", "best")()
            return Done(float(np.sum(log_z)) + float(np.sum(labels)))

        return work

    return prepare


def questions(data: Any) -> Work:
    """Every question about single chains of plain scores."""
    kit = crfkit()
    ask, structure = kit.inference, kit.Chain()
    scores = [kit.ChainScores(emissions, data["transitions"]) for emissions in data["emissions"]]
    hessian_vector = find(ask, "hessian_vector", "hessian_vector_product", "tangent")
    k_best = find(ask, "k_best", "n_best")

    def work() -> Done:
        total = 0.0
        for s in scores:
            total += ask.log_partition(structure, s) + ask.entropy(structure, s)
            total += float(np.sum(hessian_vector(structure, s, s)[0]))
            total += sum(float(found.score) for found in k_best(structure, s, 5))
        return Done(total)

    return work


def treebank(data: Any) -> list[Any]:
    from crfkit.data import read_conllu

    return list(read_conllu(io.StringIO(data["conllu"])))


def parser_training(optimizer: str, n: int) -> Callable[[Any], Work]:
    def prepare(data: Any) -> Work:
        sentences = treebank(data)
        made = lbfgs(n) if optimizer == "LBFGS" else getattr(crfkit(), optimizer)(max_iterations=n)
        return lambda: fit(crfkit().Parser(optimizer=made, n_threads=1), sentences)

    return prepare


def parsing(data: Any) -> Work:
    sentences = treebank(data)
    parser = crfkit().Parser(optimizer=crfkit().AdaGrad(max_iterations=2), n_threads=1).fit(sentences)

    def work() -> Done:
        trees = parser.predict(sentences, decode="best") + parser.predict(sentences, decode="mbr")
        arcs = parser.arc_probabilities(sentences)
        heads = sum(word.head * i for tree in trees for i, word in enumerate(tree.words))
        return Done(heads + sum(float(p.sum()) for p in arcs) + float(parser.log_likelihood(sentences).sum()))

    return work


def layer(data: Any) -> Work:
    """Loss and gradient of a layer of `crfkit.nn` on the CPU."""
    import torch

    from crfkit.nn import ChainCRF

    torch.manual_seed(0)
    torch.set_num_threads(1)
    emissions = torch.from_numpy(data["emissions"])
    module = ChainCRF(emissions.shape[2], dtype=emissions.dtype)
    tags = torch.zeros(emissions.shape[:2], dtype=torch.int64)

    def work() -> Done:
        total = 0.0
        for _ in range(data["times"]):
            variable = emissions.clone().requires_grad_()
            loss = -module(variable, tags)
            loss.backward()
            total = float(loss.detach()) + float(variable.grad.abs().sum())
        return Done(total)

    return work


def stochastic(name: str, n: int, **settings: Any) -> Callable[[Any], Work]:
    """Training by an optimizer of this name."""
    return training(lambda: getattr(crfkit(), name)(max_iterations=n, **settings), l2=2.0)


WORKLOADS = {
    "chain": Workload("chain, 22 labels, L-BFGS", "chunks", training(lambda: lbfgs(20))),
    "chain-double": Workload(
        "chain, L-BFGS to convergence (double)",
        "few chunks",
        training(lambda: lbfgs(150, tolerance=1e-9), l2=5.0),
    ),
    "chain-l1": Workload("chain, OWL-QN", "chunks", training(lambda: lbfgs(15), l1=1.0)),
    "chain-tags": Workload("chain, 44 labels, L-BFGS", "tags", training(lambda: lbfgs(20))),
    "lattice": Workload("observed bigrams and allowed labels", "allowed greek", with_bigrams(10)),
    "batches": Workload("observed bigrams of many labels", "greek", with_bigrams(12)),
    "soft": Workload("soft bigrams of many labels", "greek", with_bigrams(8, "soft")),
    "facets": Workload("facets", "allowed greek", training(lambda: lbfgs(6), facets="characters")),
    "functions": Workload("feature functions", "words", with_functions),
    "patterns": Workload("patterns on letters, L-BFGS", "letters", with_patterns),
    "patterns-tron": Workload(
        "patterns on letters, TRON",
        "few letters",
        lambda data: training(
            lambda: crfkit().TRON(max_iterations=3), structure=crfkit().Patterns([crfkit().Affixes(4)])
        )(data),
    ),
    "tron": Workload("chain, TRON", "few chunks", stochastic("TRON", 5)),
    "newton": Workload("chain, Newton", "few chunks", stochastic("Newton", 5)),
    "sgd": Workload("chain, SGD", "few chunks", stochastic("SGD", 15, rate=0.1)),
    "adagrad": Workload("chain, AdaGrad", "few chunks", stochastic("AdaGrad", 12, rate=0.1)),
    "sag": Workload("chain, SAG", "few chunks", stochastic("SAG", 10)),
    "perceptron": Workload("chain, perceptron", "few chunks", stochastic("AveragedPerceptron", 40)),
    "pa": Workload("chain, passive-aggressive", "few chunks", stochastic("PassiveAggressive", 40)),
    "arow": Workload("chain, AROW", "few chunks", stochastic("AROW", 40)),
    "trees": Workload("trees, AdaGrad", "trees", parser_training("AdaGrad", 3)),
    "trees-lbfgs": Workload("trees, L-BFGS", "trees", parser_training("LBFGS", 6)),
    "parsing": Workload("parsing: best, MBR, probabilities", "trees", parsing),
    "tagging": Workload("tagging, 22 labels", "chunks", answering("predict")),
    "marginals": Workload("marginals, 22 labels", "chunks", answering("predict_marginals")),
    "n-best": Workload("10 best label sequences", "few chunks", answering("predict_nbest", 10)),
    "sampling": Workload("samples", "few chunks", answering("sample", 10, 0)),
    "tagging-lattice": Workload(
        "tagging with observed bigrams",
        "greek",
        lambda data: answering("predict", structure=crfkit().Chain(bigrams="observed"))(data),
    ),
    "tagging-patterns": Workload(
        "marginals with patterns",
        "letters",
        lambda data: answering("predict_marginals", structure=crfkit().Patterns([crfkit().Affixes(4)]))(data),
    ),
    "scores-float": Workload("forward–backward and Viterbi of scores, float", "scores", chains(np.float32)),
    "scores-double": Workload("the same, double", "scores", chains(np.float64)),
    "questions": Workload("every question on single chains", "scores", questions),
    "layer": Workload("layer of crfkit.nn, CPU", "scores", layer),
}


def _count(state: str) -> None:
    subprocess.run(["callgrind_control", "-i", state, str(os.getpid())], check=True, capture_output=True)


def few(data: dict[str, Any]) -> dict[str, Any]:
    """The first sequences of the input."""
    listed: dict[str, Any] = {key: data[key][:20] for key in ("X", "y", "X_new", "emissions") if key in data}
    trees = "".join(f"{tree}\n\n" for tree in data.get("conllu", "").split("\n\n")[:20])
    return {**data, **listed, "allowed": None, "conllu": trees}


def run(name: str, path: str, repeats: int, *, counted: bool = False) -> dict[str, Any]:
    """Do a workload so many times: the best CPU seconds, the memory beyond the input, and the value found.

    `counted`: callgrind, under which this process runs, counts from here to the end of the work.
    """
    warnings.simplefilter("ignore")
    sys.modules["sklearn"] = None  # type: ignore[assignment]  # whose import takes longer than many workloads
    with Path(path).open("rb") as stream:
        data = pickle.load(stream)
    WORKLOADS[name].prepare(few(data))()  # imports what it needs
    work = WORKLOADS[name].prepare(data)
    gc.collect()
    before = restart_peak_mb()
    if counted:
        _count("on")
    seconds, iterations, peaks, value = [], [], [], math.nan
    for _ in range(repeats):
        start = time.process_time()
        value, iteration = work()
        seconds.append(time.process_time() - start)
        iterations += [] if iteration is None else [iteration]
        peaks.append(peak_mb() - before)  # of the first run: later ones find what it left
    if counted:
        _count("off")
    return {
        "cpu": min(seconds),
        "iteration": min(iterations, default=None),
        "value": value,
        "peak_mb": peaks[0],
    }


if __name__ == "__main__":
    print(json.dumps(run(**json.loads(sys.argv[1]))))
