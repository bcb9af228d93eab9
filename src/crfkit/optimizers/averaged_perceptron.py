"""The averaged structured perceptron."""

from dataclasses import dataclass

from crfkit import _core
from crfkit.optimizers.online import OnlineLearner


@dataclass(frozen=True)
class AveragedPerceptron(OnlineLearner):
    """The averaged perceptron (Collins 2002): a tagger in seconds, without probabilities in mind.

    For each sequence, in random order, `max_iterations` times over: its best labels at the current weights are compared with
    the right ones; where they differ,

        w ← w + φ(right) − φ(predicted)          φ(y): how often label sequence y has each weight

    and the mean of all these w is what is learned. A step costs what differs. A sequence with a weight of c moves c times as
    far; where labels are only partly known, the best labels that agree with what is known are the right ones.

    There is no penalty: l1 is refused, l2 is ignored. The objective in the history is Σ (score(predicted) − score(right))
    over the pass, each before its step; it is not known at the start, and its gradient norm never is (NaN). One thread; the
    same `random_state` gives the same bits. Scores have no scale that would make probabilities of them meaningful.

    Examples
    --------
    >>> X, y = [[["w=the"], ["w=dog"]], [["w=dogs"], ["w=run"]]], [["D", "N"], ["N", "V"]]
    >>> from crfkit import CRF
    >>> CRF(optimizer=AveragedPerceptron(max_iterations=5)).fit(X, y).predict(X)
    [['D', 'N'], ['N', 'V']]
    """

    def averages(self) -> bool:
        """Always."""
        return True

    def rule(self) -> _core.MistakeRule:
        """How a mistake moves the weights."""
        return _core.PerceptronRule()
