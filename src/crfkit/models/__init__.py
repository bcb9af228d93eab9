"""What a user trains, saves and loads."""

from crfkit.data import check_writable, replacing
from crfkit.models.averaging import average_models
from crfkit.models.column_tagging import ColumnTagger
from crfkit.models.constraints import ImpossibleSequenceError, SequencesSkipped
from crfkit.models.crf import CRF
from crfkit.models.description import describe
from crfkit.models.encoded_input import ScoredLabels
from crfkit.models.estimator import Estimator, NotFittedError
from crfkit.models.explanations import Explanation, ExplanationPart
from crfkit.models.files.disk import check_no_folder, save_elsewhere
from crfkit.models.files.file_arrays import name_damage, pack_texts, setting, unpack_texts
from crfkit.models.files.from_weights import assemble
from crfkit.models.files.loading import from_file, load
from crfkit.models.files.model_file import (
    ModelFile,
    metadata_of,
    model_type,
    read_metadata,
    read_model_file,
    write_model_file,
)
from crfkit.models.files.model_file import decode as decode_model_file
from crfkit.models.files.model_file import encode as encode_model_file
from crfkit.models.files.parts import join_parts, split_parts
from crfkit.models.graph_crf import GraphCRF
from crfkit.models.inspection import (
    FeatureWeight,
    TransitionFeatureWeight,
    TransitionWeight,
    TrellisSize,
    find_states,
    heaviest_features,
    heaviest_of_structure,
    heaviest_outputs,
    heaviest_patterns,
    heaviest_transition_features,
    transition_weights,
    trellis_sizes,
)
from crfkit.models.kinds import kind_of
from crfkit.models.notebook_view import ParameterView, label_list
from crfkit.models.parser import BoundedSentence, Parser, ScoredSentence
from crfkit.models.patterns.growth import GrowthRound
from crfkit.models.potentials import FeaturePotentials
from crfkit.models.recommended import scale_strengths
from crfkit.models.scores import position_scores, score_nbest
from crfkit.models.training.checkpoint import Checkpoint, CheckpointError, CheckpointMismatchError
from crfkit.models.training.data_warnings import (
    MissingColumns,
    UninformativeData,
    UnreadColumns,
    UnusedEntries,
)
from crfkit.models.training.endings import ConvergenceWarning
from crfkit.models.training.interruption import Terminated, Termination, postpone_signals, terminable
from crfkit.models.training.merged_objective import MergedObjective, choose_objective
from crfkit.models.training.penalty_search import PenaltySearch, PenaltyTrial
from crfkit.models.training.progress import LOGGER, Pace, Progress, ProgressCallback, Report
from crfkit.models.training.seconds_left import SecondsLeft
from crfkit.models.training.sharded_data import Shard, ShardedData, TrainingShards
from crfkit.models.training.stored_task import AS_STORED, ShardReading, StoredData, open_shard
from crfkit.models.training_data import encoding_of, is_encodable
from crfkit.models.unlabelled import agreed_labels, self_train, sure_labels, tri_train
from crfkit.models.warning_types import (
    CheckpointFailed,
    TrainingInterrupted,
    UnknownLabels,
    UnsavableModel,
    UnusedStart,
)
from crfkit.models.word_segmenter import Word, WordSegmenter

__all__ = [
    "AS_STORED",
    "CRF",
    "LOGGER",
    "BoundedSentence",
    "Checkpoint",
    "CheckpointError",
    "CheckpointFailed",
    "CheckpointMismatchError",
    "ColumnTagger",
    "ConvergenceWarning",
    "Estimator",
    "Explanation",
    "ExplanationPart",
    "FeaturePotentials",
    "FeatureWeight",
    "GraphCRF",
    "GrowthRound",
    "ImpossibleSequenceError",
    "MergedObjective",
    "MissingColumns",
    "ModelFile",
    "NotFittedError",
    "Pace",
    "ParameterView",
    "Parser",
    "PenaltySearch",
    "PenaltyTrial",
    "Progress",
    "ProgressCallback",
    "Report",
    "ScoredLabels",
    "ScoredSentence",
    "SecondsLeft",
    "SequencesSkipped",
    "Shard",
    "ShardReading",
    "ShardedData",
    "StoredData",
    "Terminated",
    "Termination",
    "TrainingInterrupted",
    "TrainingShards",
    "TransitionFeatureWeight",
    "TransitionWeight",
    "TrellisSize",
    "UninformativeData",
    "UnknownLabels",
    "UnreadColumns",
    "UnsavableModel",
    "UnusedEntries",
    "UnusedStart",
    "Word",
    "WordSegmenter",
    "agreed_labels",
    "assemble",
    "average_models",
    "check_no_folder",
    "check_writable",
    "choose_objective",
    "decode_model_file",
    "describe",
    "encode_model_file",
    "encoding_of",
    "find_states",
    "from_file",
    "heaviest_features",
    "heaviest_of_structure",
    "heaviest_outputs",
    "heaviest_patterns",
    "heaviest_transition_features",
    "is_encodable",
    "join_parts",
    "kind_of",
    "label_list",
    "load",
    "metadata_of",
    "model_type",
    "name_damage",
    "open_shard",
    "pack_texts",
    "position_scores",
    "postpone_signals",
    "read_metadata",
    "read_model_file",
    "replacing",
    "save_elsewhere",
    "scale_strengths",
    "score_nbest",
    "self_train",
    "setting",
    "split_parts",
    "sure_labels",
    "terminable",
    "transition_weights",
    "trellis_sizes",
    "tri_train",
    "unpack_texts",
    "write_model_file",
]
