"""Counts and times of requests, as Prometheus reads them."""

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from itertools import accumulate
from pathlib import Path

BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)  # seconds


class Metrics:
    """What was asked and answered since the server was started; used from the event loop alone."""

    def __init__(self) -> None:
        self.requests: Counter[tuple[str, int]] = Counter()  # (path, status)
        self.buckets: dict[str, list[int]] = {}  # path → requests by time, the last one beyond all buckets
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self.tokens: Counter[tuple[str, str]] = Counter()  # (model, question)
        self.running = 0  # requests at this moment

    def record(self, path: str, status: int, seconds: float) -> None:
        """A request was answered."""
        self.requests[path, status] += 1
        self.buckets.setdefault(path, [0] * (len(BUCKETS) + 1))[bisect_left(BUCKETS, seconds)] += 1
        self.seconds[path] += seconds

    def text(self, waiting: Iterable[tuple[str, int]], reloads: tuple[int, int]) -> str:
        """All of it, with the requests that wait for each model, and the reloads that worked and that failed."""
        return "\n".join([*self._lines(waiting, reloads), ""])

    def _lines(self, waiting: Iterable[tuple[str, int]], reloads: tuple[int, int]) -> Iterator[str]:
        yield from _head("crfkit_requests_total", "counter", "Requests that were answered.")
        for (path, status), count in sorted(self.requests.items()):
            yield f'crfkit_requests_total{{path="{path}",status="{status}"}} {count}'
        yield from _head("crfkit_request_seconds", "histogram", "Time from the headers to the answer.")
        for path, counts in sorted(self.buckets.items()):
            for bound, count in zip((*map(str, BUCKETS), "+Inf"), accumulate(counts), strict=True):
                yield f'crfkit_request_seconds_bucket{{path="{path}",le="{bound}"}} {count}'
            yield f'crfkit_request_seconds_sum{{path="{path}"}} {self.seconds[path]:.6f}'
            yield f'crfkit_request_seconds_count{{path="{path}"}} {sum(counts)}'
        yield from _head("crfkit_tokens_total", "counter", "Tokens of the requests that were answered.")
        for (model, question), count in sorted(self.tokens.items()):
            yield f'crfkit_tokens_total{{model="{model}",question="{question}"}} {count}'
        yield from _head("crfkit_waiting_requests", "gauge", "Requests that wait for a model.")
        for model, count in waiting:
            yield f'crfkit_waiting_requests{{model="{model}"}} {count}'
        yield from _head("crfkit_running_requests", "gauge", "Requests that are read, wait or are answered.")
        yield f"crfkit_running_requests {self.running}"
        yield from _head("crfkit_reloads_total", "counter", "Model files that were read again.")
        yield f'crfkit_reloads_total{{result="loaded"}} {reloads[0]}'
        yield f'crfkit_reloads_total{{result="failed"}} {reloads[1]}'
        if (memory := resident_bytes()) is not None:
            yield from _head("process_resident_memory_bytes", "gauge", "Memory of the process.")
            yield f"process_resident_memory_bytes {memory}"


def _head(name: str, kind: str, text: str) -> Iterator[str]:
    yield f"# HELP {name} {text}"
    yield f"# TYPE {name} {kind}"


def resident_bytes() -> int | None:
    """Memory of this process, where the system says it."""
    try:
        lines = Path("/proc/self/status").read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return None
    found = [line for line in lines if line.startswith("VmRSS:")]
    return int(found[0].split()[1]) * 1024 if found else None
