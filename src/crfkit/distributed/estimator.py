"""A CRF whose training is computed by the workers of a cluster."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from typing import Any, Self

from crfkit.distributed.cluster import Cluster
from crfkit.distributed.encoding import find_parts, read_on_workers
from crfkit.distributed.remote_loss import RemoteLoss, ShardSource
from crfkit.distributed.sources import ClientShards, StoredShards
from crfkit.distributed.worker_dataset import WorkerDataset, WorkerShards
from crfkit.errors import UnsupportedError
from crfkit.models import CRF, FeaturePotentials, StoredData, TrainingShards, encoding_of, is_encodable
from crfkit.objective import Loss, python_loss
from crfkit.optimizers import OPTIMIZERS, optimizer_named
from distributed import Client, get_client

WHOLE = {"value_and_gradient", "hessian_vector"}  # what a cluster answers


class DistributedCRF(CRF[Any]):
    """A `CRF` that `fit` trains on the workers of a dask cluster, with the same bits as on one machine.

    The optimizer runs here; workers compute values, gradients and Hessian–vector products of the shards of the data. They
    may leave and join at any time. All other methods are those of `CRF`, and run here.

    Parameters
    ----------
    client : a `distributed.Client`; None: the one that is current
    timeout : seconds after which a scheduler that does not answer, or has no workers, is an error
    parameters : those of `CRF`; `optimizer` is one that sees all data at once: `LBFGS`, `TRON`, `Newton`. With
        `n_threads=None` a worker uses one thread for each of those that dask gives it; a number: so many for each of these
    """

    def __init__(self, client: Client | None = None, timeout: float = 60.0, **parameters: Any) -> None:
        super().__init__(**parameters)
        self.client = client
        self.timeout = timeout

    @classmethod
    def _defaults(cls) -> dict[str, Any]:
        return {"client": None, "timeout": 60.0, **CRF._defaults()}

    def fit(
        self,
        X: Any,
        y: Sequence[Any] | None = None,
        sample_weight: Any = None,
        *,
        shard_size: int | None = None,
        **options: Any,
    ) -> Self:
        """Train on X and y as `CRF.fit` does, or on data that workers read; `options` are the arguments of `CRF.fit`.

        Without y, X is a list of column files, which workers read at these paths; an encoded data set on storage that all
        share; a dask bag of pairs (x, y); or a list of delayed objects, each a list of such pairs.
        """
        check_optimizer(self.optimizer)
        options["shard_size"] = shard_size
        with self._open_cluster() as cluster:
            parts = find_parts(X) if y is None else None
            if parts is None:
                return super().fit(X, y, sample_weight, **options)
            settings = self._settings()
            if not is_encodable(settings):  # the model looks at the sequences themselves
                pairs = list(read_on_workers(cluster, parts))
                return super().fit([x for x, _ in pairs], [own for _, own in pairs], sample_weight, **options)
            dataset = WorkerDataset(cluster, parts, encoding_of(settings, shard_size))
            return super().fit(dataset, None, sample_weight, **options)

    @contextmanager
    def _open_cluster(self) -> Iterator[Cluster]:
        """The cluster, while there are losses on it; log records of workers arrive here."""
        cluster = Cluster(get_client() if self.client is None else self.client, self.timeout)
        self._cluster, self._remote = cluster, list[RemoteLoss]()
        cluster.workers()  # which are checked
        try:
            with cluster.listen():
                yield cluster
        finally:
            for remote in self._remote:
                remote.close()
            for name in ("_cluster", "_remote"):
                self.__dict__.pop(name, None)

    def _make_loss(self, sharded: TrainingShards, potentials: FeaturePotentials, n_threads: int) -> Loss:
        threads = 1 if self.n_threads is None else n_threads
        source: ShardSource
        if not isinstance(sharded, StoredData):
            source = ClientShards(potentials, sharded)
        elif isinstance(sharded.dataset, WorkerDataset):
            source = WorkerShards(potentials, sharded.dataset, self._cluster, sharded.reading)
        else:
            source = StoredShards(potentials, sharded)
        remote = RemoteLoss(self._cluster, source, n_threads=threads)
        self._remote.append(remote)
        n_sequences = int(sharded.shard_ptr[-1])
        return python_loss(
            remote, n_weights=potentials.n_weights, n_sequences=n_sequences, n_threads=n_threads
        )

    def __sklearn_clone__(self) -> Self:
        """For `sklearn.base.clone`: the copy has the same client."""
        own = self.get_params(deep=False)
        copied = {name: deepcopy(value) for name, value in own.items() if name != "client"}
        return type(self)(client=self.client, **copied)

    def __getstate__(self) -> dict[str, Any]:
        state = super().__getstate__()
        return {**state, "params": {**state["params"], "client": None}}  # which belongs to this process


def check_optimizer(optimizer: Any) -> None:
    """Refuse an optimizer that asks for single sequences."""
    kind = optimizer_named(optimizer) if isinstance(optimizer, str) else type(optimizer)
    needs = getattr(kind, "needs", WHOLE)  # what is no optimizer is refused elsewhere
    if kind is None or needs <= WHOLE:
        return
    able = ", ".join(sorted(kind.__name__ for kind in OPTIMIZERS.values() if kind.needs <= WHOLE))
    raise UnsupportedError(
        f"{kind.__name__} takes steps along single sequences, which a cluster does not; these work: {able} "
        "(such as optimizer=crfkit.LBFGS(); on the command line --optimizer lbfgs)"
    )
