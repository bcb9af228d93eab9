"""How fast text becomes ids: positions per second on CoNLL-2000, the best of several runs on one thread.

python -m benchmarks.encoding
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from benchmarks.tasks import CHUNK_NAMES, CHUNK_TEMPLATES, TASKS, load, sentences
from crfkit.features import Encoder, Template, preset

RUNS = 7

# Twenty lines with one macro each, and CRF++'s example of chunking.
SINGLE = "\n".join(
    f"U{10 * column + offset + 5:02d}:%x[{offset},{column}]" for column in (0, 1) for offset in range(-5, 5)
)
EXAMPLE = "\n".join(
    f"U{number:02d}:" + "/".join(f"%x[{offset},{column}]" for column, offset in template)
    for number, template in enumerate(CHUNK_TEMPLATES)
)


def best_seconds(work: Callable[[], Any]) -> float:
    """CPU seconds of the quickest of several runs."""
    seconds = []
    for _ in range(RUNS):
        start = time.process_time()
        work()
        seconds.append(time.process_time() - start)
    return min(seconds)


def as_dicts(X: list[list[list[str]]]) -> list[list[dict[str, str]]]:
    """The same features as {"w[0]": "Rome", …}."""
    return [
        [dict(name.split("=", 1) for name in position if "=" in name) for position in sequence]
        for sequence in X
    ]


def report(what: str, encoder: Encoder, X: list[Any]) -> None:
    """Print one line."""
    n_positions = sum(map(len, X))
    growing = best_seconds(lambda: Encoder(encoder.template).fit_encode(X))
    dataset = encoder.fit_encode(X)
    known = best_seconds(lambda: encoder.encode(X))
    print(
        f"{what:<44}{len(dataset.states.ids) / n_positions:>8.1f} a position{len(encoder.vocabulary):>10,} features"
        f"{n_positions / growing / 1e6:>8.2f} M positions/s growing{n_positions / known / 1e6:>8.2f} known"
    )


def main() -> None:
    """Measure every input form."""
    X, _ = load(TASKS["chunk"], "train")
    rows = [[row[:2] for row in sequence] for sequence in sentences("train")]
    words = [[row[0] for row in sequence] for sequence in rows]
    report("lists of strings", Encoder(), X)
    report("dicts of strings", Encoder(), as_dicts(X))
    report("template of 20 single columns", Encoder(Template.parse(SINGLE)), rows)
    report(f"template of {len(CHUNK_NAMES)} lines, CRF++'s example", Encoder(Template.parse(EXAMPLE)), rows)
    for name in ("pos", "names"):
        report(f"preset {name!r}", Encoder(preset(name).within_columns(1)), words)


if __name__ == "__main__":
    main()
