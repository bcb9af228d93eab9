"""A trainer that prints one line an iteration."""

from __future__ import annotations

from typing import Any

from crfkit.compat.pycrfsuite import Trainer

_SHOWN = {  # what a line tells, where it is known
    "time": "time={:.2f}",
    "loss": "loss={:.2f}",
    "active_features": "active={}",
    "avg_precision": "precision={:.3f}",
    "avg_recall": "recall={:.3f}",
    "avg_f1": "F1={:.3f}",
    "item_accuracy_float": "Acc(item/seq)={:.3f}",
    "instance_accuracy_float": "{:.3f}",
    "feature_norm": "feature_norm={:.2f}",
}


class LinePerIterationTrainer(Trainer):
    """Prints the head of the log, one line for each iteration, and its end."""

    def on_iteration(self, log: str, info: dict[str, Any]) -> None:
        """Print the line."""
        told = [form.format(info[name]) for name, form in _SHOWN.items() if name in info]
        print(f"Iter {info['num']:<3d}", *told)
