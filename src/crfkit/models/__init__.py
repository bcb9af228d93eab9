"""What a user trains, saves and loads."""

from crfkit.models.constraints import ImpossibleSequenceError, SequencesSkipped
from crfkit.models.crf import CRF
from crfkit.models.description import describe
from crfkit.models.encoded_input import ScoredLabels
from crfkit.models.estimator import Estimator, NotFittedError
from crfkit.models.files.disk import check_writable, replacing, save_elsewhere
from crfkit.models.files.from_weights import assemble
from crfkit.models.files.loading import load
from crfkit.models.files.model_file import model_type, read_metadata
from crfkit.models.graph_crf import GraphCRF
from crfkit.models.inspection import (
    FeatureWeight,
    TransitionFeatureWeight,
    TransitionWeight,
    TrellisSize,
    heaviest_features,
    heaviest_of_structure,
    heaviest_outputs,
    heaviest_patterns,
    heaviest_transition_features,
    transition_weights,
    trellis_sizes,
)
from crfkit.models.kinds import kind_of
from crfkit.models.parser import Parser, ScoredSentence
from crfkit.models.patterns.growth import GrowthRound
from crfkit.models.scores import position_scores, score_nbest
from crfkit.models.training.checkpoint import Checkpoint, CheckpointError, CheckpointMismatchError
from crfkit.models.training.data_warnings import MissingColumns, UninformativeData, UnreadColumns
from crfkit.models.training.endings import ConvergenceWarning
from crfkit.models.training.interruption import Terminated, Termination, postpone_signals, terminable
from crfkit.models.training.merged_objective import MergedObjective, choose_objective
from crfkit.models.training.progress import LOGGER, Pace, Progress, ProgressCallback
from crfkit.models.warning_types import CheckpointFailed, TrainingInterrupted, UnknownLabels, UnsavableModel
from crfkit.models.word_segmenter import Word, WordSegmenter

__all__ = [
    "CRF",
    "LOGGER",
    "Checkpoint",
    "CheckpointError",
    "CheckpointFailed",
    "CheckpointMismatchError",
    "ConvergenceWarning",
    "Estimator",
    "FeatureWeight",
    "GraphCRF",
    "GrowthRound",
    "ImpossibleSequenceError",
    "MergedObjective",
    "MissingColumns",
    "NotFittedError",
    "Pace",
    "Parser",
    "Progress",
    "ProgressCallback",
    "ScoredLabels",
    "ScoredSentence",
    "SequencesSkipped",
    "Terminated",
    "Termination",
    "TrainingInterrupted",
    "TransitionFeatureWeight",
    "TransitionWeight",
    "TrellisSize",
    "UninformativeData",
    "UnknownLabels",
    "UnreadColumns",
    "UnsavableModel",
    "Word",
    "WordSegmenter",
    "assemble",
    "check_writable",
    "choose_objective",
    "describe",
    "heaviest_features",
    "heaviest_of_structure",
    "heaviest_outputs",
    "heaviest_patterns",
    "heaviest_transition_features",
    "kind_of",
    "load",
    "model_type",
    "position_scores",
    "postpone_signals",
    "read_metadata",
    "replacing",
    "save_elsewhere",
    "score_nbest",
    "terminable",
    "transition_weights",
    "trellis_sizes",
]
