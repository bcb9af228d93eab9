"""Training and prediction on the machines of a dask cluster; needs the extra `distributed`.

The bits of a trained model are those of one machine with the same `shard_size`, for any number of workers.
"""

from crfkit.distributed.errors import (
    ClusterError,
    MissingDataError,
    NoWorkersError,
    SchedulerLostError,
    UnequalProcessors,
    WorkersFailedError,
    WorkersLostError,
    WorkerVersionError,
)
from crfkit.distributed.estimator import DistributedCRF, check_optimizer
from crfkit.distributed.fitting import fit
from crfkit.distributed.prediction import predict
from crfkit.distributed.worker_files import map_files, missing_files

__all__ = [
    "ClusterError",
    "DistributedCRF",
    "MissingDataError",
    "NoWorkersError",
    "SchedulerLostError",
    "UnequalProcessors",
    "WorkerVersionError",
    "WorkersFailedError",
    "WorkersLostError",
    "check_optimizer",
    "fit",
    "map_files",
    "missing_files",
    "predict",
]
