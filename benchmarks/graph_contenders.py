"""One exact inference by one toolkit in this process: seconds, memory, log Z and all marginals.

    python -m benchmarks.graph_contenders TOOLKIT MODEL EVIDENCE SECONDS GIGABYTES MARGINALS.npz

prints one line of JSON. The limits are the system's (setrlimit): SECONDS of processor time after loading, GIGABYTES of
address space. Short inferences are repeated, and the mean of their seconds is taken.

pyAgrum's own reader of UAI files takes the variables of a factor in another order than the file, so its network is made
from the tables that crfkit reads. Its inference has no log Z: log Z = score(x) − log p(x), with p(x) of one assignment x
from the marginals of its cliques, is computed after the clock has stopped.
"""

from __future__ import annotations

import json
import math
import resource
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.memory import peak_mb, restart_peak_mb
from crfkit import FactorGraph
from crfkit.data import read_uai, read_uai_evidence

Floats = npt.NDArray[np.float64]
# marginals, and what is asked after the clock has stopped: log Z (natural logarithm) and other figures
Answer = tuple[list[Floats], Callable[[], dict[str, float]]]
ADDRESSES = 2**29  # bytes that the process had before
SHORT, MOST_TIMES = 0.5, 200  # seconds of an inference that is repeated, and how often at most
AFTERWARDS = 300  # seconds of processor time for log Z, after the clock has stopped


def merged_tables(graph: FactorGraph) -> dict[tuple[int, ...], Floats]:
    """One table for each set of variables, their numbers in ascending order: scores of all its factors added up."""
    tables: dict[tuple[int, ...], Floats] = {}
    for factor in graph.factors:
        order = np.argsort(factor.variables)
        scope = tuple(sorted(factor.variables))
        table = np.transpose(factor.scores, order)
        tables[scope] = tables[scope] + table if scope in tables else table
    return tables


class PyAgrum:
    """Shafer–Shenoy on a Markov random field."""

    package = "pyagrum"

    def __init__(self, model: Path, evidence: Path) -> None:
        import pyagrum

        pyagrum.setNumberOfThreads(1)
        self.module = pyagrum
        self.graph = read_uai(model)
        self.evidence = read_uai_evidence(evidence)
        self.tables = merged_tables(self.graph)
        self.network = pyagrum.MarkovRandomField()
        for variable in self.graph.variables:
            self.network.add(pyagrum.RangeVariable(variable.name, "", 0, len(variable) - 1))
        for scope, scores in self.tables.items():
            tensor = pyagrum.Tensor()
            for v in reversed(scope):  # the first one is the fastest
                tensor.add(self.network.variable(v))
            if scope:
                self.network.addFactor(tensor.fillWith(np.exp(scores).ravel().tolist()))

    def infer(self) -> Answer:
        inference = self.module.ShaferShenoyMRFInference(self.network)
        inference.setEvidence({str(v): value for v, value in self.evidence.items()})
        inference.makeInference()
        marginals = [np.array(inference.posterior(v).toarray()) for v in range(len(self.graph.variables))]
        return marginals, lambda: {"log_z": self._log_partition(inference)}

    def _log_partition(self, inference: Any) -> float:
        """log Z = score(x) − log p(x); x is chosen clique by clique, each given those before it."""
        tree = inference.junctionTree()
        x: dict[int, int] = dict(self.evidence)
        log_p, seen = 0.0, set()
        for root in tree.nodes():
            waiting = [] if root in seen else [root]
            while waiting:
                clique = waiting.pop()
                seen.add(clique)
                log_p += self._choose(inference, set(tree.clique(clique)), x)
                waiting += [other for other in tree.neighbours(clique) if other not in seen]
        score = sum(float(table[tuple(x[v] for v in scope)]) for scope, table in self.tables.items())
        return score - log_p

    def _choose(self, inference: Any, clique: set[int], x: dict[int, int]) -> float:
        """Extend x by the likeliest values of a clique given those that it has; log of their probability."""
        if clique <= x.keys():
            return 0.0
        joint = inference.jointPosterior(clique)
        order = [self.network.idFromName(name) for name in joint.names][::-1]
        table = np.array(joint.toarray())[tuple(x.get(v, slice(None)) for v in order)]
        best = np.unravel_index(np.argmax(table), table.shape)
        chosen = float(table[best])
        x.update(zip([v for v in order if v not in x], map(int, best), strict=True))
        return math.log(chosen / float(table.sum()))


class Pgmpy:
    """Variable elimination for each variable; its junction trees take longer, and some networks have none."""

    package = "pgmpy"

    def __init__(self, model: Path, evidence: Path) -> None:
        from pgmpy.factors.discrete import DiscreteFactor
        from pgmpy.inference import VariableElimination
        from pgmpy.models import DiscreteMarkovNetwork

        self.elimination = VariableElimination
        self.graph = read_uai(model, evidence)  # the tables that are left given the evidence
        observed = read_uai_evidence(evidence)
        self.sure = {v: np.eye(len(self.graph.variables[v]))[value] for v, value in observed.items()}
        self.network = DiscreteMarkovNetwork()
        for scope, scores in merged_tables(self.graph).items():
            if scope and scope[0] not in observed:
                names = [str(v) for v in scope]
                self.network.add_nodes_from(names)
                self.network.add_edges_from((a, b) for i, a in enumerate(names) for b in names[:i])
                self.network.add_factors(DiscreteFactor(names, scores.shape, np.exp(scores)))

    def infer(self) -> Answer:
        inference = self.elimination(self.network)
        marginals: list[Floats] = []
        for v, variable in enumerate(self.graph.variables):
            if v in self.sure:
                marginals.append(self.sure[v])
            elif variable.name not in self.network:
                marginals.append(np.full(len(variable), 1 / len(variable)))
            else:
                found = np.asarray(inference.query([variable.name], show_progress=False).values)
                marginals.append(found / found.sum())
        return marginals, dict  # its partition function is a sum over all assignments


class Crfkit:
    """Junction tree."""

    package = "crfkit"

    def __init__(self, model: Path, evidence: Path) -> None:
        from crfkit import inference

        self.inference = inference
        self.graph = read_uai(model, evidence)
        self.graph.tables  # the same numbers in the form that the core reads  # noqa: B018

    def infer(self) -> Answer:
        inference = self.inference
        addresses = resource.getrlimit(resource.RLIMIT_AS)[0]
        limit = None if addresses == resource.RLIM_INFINITY else addresses - ADDRESSES
        found = inference.marginals(self.graph, memory_limit=limit)

        def figures() -> dict[str, float]:
            plan = inference.plan(self.graph, memory_limit=limit)
            return {
                "log_z": inference.log_partition(self.graph, memory_limit=limit),
                "predicted_mb": plan.memory / 1e6,
                "width": plan.width,
                "operations": plan.operations,
            }

        return list(found.values()), figures


TOOLKITS: dict[str, type[PyAgrum] | type[Pgmpy] | type[Crfkit]] = {
    "crfkit": Crfkit,
    "pyagrum": PyAgrum,
    "pgmpy": Pgmpy,
}


def measure(
    toolkit: str, model: Path, evidence: Path, seconds: float, gigabytes: float
) -> tuple[dict[str, Any], list[Floats]]:
    """The figures of one inference, and the marginals."""
    contender = TOOLKITS[toolkit](model, evidence)
    before = restart_peak_mb()
    began_cpu, began = time.process_time(), time.perf_counter()
    limit = math.ceil(began_cpu + seconds)
    resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + AFTERWARDS))
    resource.setrlimit(resource.RLIMIT_AS, (int(gigabytes * 2**30), resource.RLIM_INFINITY))
    try:
        marginals, others = contender.infer()
    except Exception as error:  # whatever a toolkit raises is its result
        return _clocks(began_cpu, began) | {"error": f"{type(error).__name__}: {error}"[:400]}, []
    figures = _clocks(began_cpu, began) | {"peak_mb": peak_mb() - before}
    if not all(np.isfinite(row).all() for row in marginals):
        return figures | {"error": "marginals that are no numbers"}, []
    n = 1
    while (
        time.process_time() - began_cpu < SHORT and n < MOST_TIMES
    ):  # clocks of processor time may be coarse
        contender.infer()
        n += 1
    figures |= {
        "cpu": (time.process_time() - began_cpu) / n,
        "times": n,
        "version": f"{contender.package} {version(contender.package)}",
    }
    resource.setrlimit(resource.RLIMIT_CPU, (limit + AFTERWARDS, limit + AFTERWARDS))
    resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    figures |= others()
    figures["log10_z"] = figures.pop("log_z", math.nan) / math.log(10)
    return figures, marginals


def _clocks(began_cpu: float, began: float) -> dict[str, Any]:
    return {"cpu": time.process_time() - began_cpu, "wall": time.perf_counter() - began}


def main() -> None:
    toolkit, model, evidence, seconds, gigabytes, target = sys.argv[1:]
    try:
        figures, marginals = measure(toolkit, Path(model), Path(evidence), float(seconds), float(gigabytes))
        np.savez(target, *marginals)
    except Exception as error:  # of reading, too
        figures = {"error": f"{type(error).__name__}: {error}"[:400]}
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
