"""A trainer that prints one line an iteration."""

from typing import Any

from crfkit.compat.pycrfsuite import Trainer

_SHOWN = {  # the numbers of a line, as far as they are known
    "time": "time={:<5.2f}",
    "loss": "loss={:<8.2f}",
    "active_features": "active={:<5}",
    "avg_precision": "precision={:.3f} ",
    "avg_recall": "recall={:.3f} ",
    "avg_f1": "F1={:.3f} ",
    "item_accuracy_float": "Acc(item/seq)={:.3f}",
    "instance_accuracy_float": "{:.3f} ",
    "feature_norm": "feature_norm={:<8.2f}",
}


class LinePerIterationTrainer(Trainer):
    """Prints the head of the log, one line for each iteration, its end, and how each label does on held-out data."""

    def on_iteration(self, log: str, info: dict[str, Any]) -> None:
        """Print the line."""
        shown = [form.format(info[name]) for name, form in _SHOWN.items() if name in info]
        print(" ".join([f"Iter {info['num']:<3} ", *shown]).rstrip())

    def on_optimization_end(self, log: str) -> None:
        """Print a table of the labels where there is held-out data, and the end of the log."""
        last = None if self.logparser is None else self.logparser.last_iteration
        scores = sorted((last or {}).get("scores", {}).items())
        if scores:
            width = max(len("Label"), *(len(label) for label, _ in scores))
            head = f"{'Label':<{width}}  Precision  Recall     F1  Support"
            print("=" * len(head), head, "-" * len(head), sep="\n")
            for label, score in scores:
                precision, recall, f1 = (
                    f"{share or 0.0:.3f}" for share in (score.precision, score.recall, score.f1)
                )
                print(f"{label:<{width}}  {precision:>9}  {recall:>6}  {f1:>5}  {score.ref:>7}")
            print("-" * len(head))
        super().on_optimization_end(log)
