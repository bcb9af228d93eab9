"""Scorers for `cross_val_score` and `GridSearchCV`."""

from sklearn.metrics import make_scorer

from crfkit.compat.sklearn_crfsuite.metrics import flat_accuracy_score, sequence_accuracy_score

flat_accuracy = make_scorer(flat_accuracy_score)
"""Share of right labels."""

sequence_accuracy = make_scorer(sequence_accuracy_score)
"""Share of sequences without a wrong label."""
