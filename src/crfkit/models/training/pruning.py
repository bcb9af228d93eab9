"""What a second-order parser needs before it is trained: a structure, and a first-order model that prunes arcs."""

from typing import NamedTuple

import numpy as np

from crfkit.arrays import Float64s
from crfkit.features import ArcMap, ArcPruner, KnownTrees, Treebank, crossing_share
from crfkit.models.settings import ParserSettings
from crfkit.objective import Objective
from crfkit.optimizers import AdaGrad

SPANNING, PROJECTIVE = "spanning", "projective"
FEW_CROSSING = 0.005  # the share of words with crossing arcs up to which projective trees are learned
PRUNER_OPTIMIZER = AdaGrad(max_iterations=5, rate=0.1)


class TrainingTrees(NamedTuple):
    """Sentences with what is known of their trees."""

    treebank: Treebank
    trees: KnownTrees
    labels: tuple[str, ...]
    sample_weight: Float64s | None  # [N]


def choose_structure(settings: ParserSettings, data: TrainingTrees) -> tuple[str, str]:
    """The structure of the trees, and why."""
    if settings.structure != "auto":
        return settings.structure, f"{settings.structure} trees were asked for"
    share = crossing_share(data.treebank, data.trees)
    found = PROJECTIVE if share <= FEW_CROSSING else SPANNING
    return found, f"{found} trees: {share:.2%} of the words of the training set have crossing arcs"


def train_pruner(settings: ParserSettings, data: TrainingTrees, n_threads: int) -> ArcPruner:
    """A first-order model over spanning trees without labels, of few templates, after few passes."""
    arc_map = ArcMap.learn_coarse(data.treebank, data.trees, settings.min_count)
    loss = arc_map.loss(
        data.treebank,
        data.trees._replace(labels=np.zeros_like(data.trees.labels)),
        sample_weight=data.sample_weight,
        single_root=settings.single_root,
        n_threads=n_threads,
    )
    start = np.zeros(arc_map.n_weights)
    outcome = Objective(loss, l2=1.0).minimize(PRUNER_OPTIMIZER, start, n_threads=n_threads)
    # Files keep these weights in single precision: the same arcs before and after.
    return ArcPruner(arc_map, outcome.weights.astype(np.float32).astype(np.float64))
