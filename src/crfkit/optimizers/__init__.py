"""Optimizers: they minimise f(w) + Σ l1_i |w_i| over w and know nothing of conditional random fields.

An optimizer declares in `needs` what it asks of an objective, and refuses in words one that cannot answer.
"""

from crfkit.optimizers.lbfgs import LBFGS
from crfkit.optimizers.problem import Callback, History, Objective, Optimizer, Outcome, Record, Step
from crfkit.optimizers.sgd import SGD

__all__ = ["LBFGS", "SGD", "Callback", "History", "Objective", "Optimizer", "Outcome", "Record", "Step"]
