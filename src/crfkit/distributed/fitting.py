"""Training on a cluster as a function."""

from __future__ import annotations

from typing import Any, TypeVar

from crfkit.distributed.encoding import find_parts
from crfkit.distributed.estimator import DistributedCRF
from crfkit.errors import ArgumentError
from crfkit.models import CRF
from distributed import Client

Model = TypeVar("Model", bound=CRF[Any])


def fit(client: Client, model: Model, data: Any, *, timeout: float = 60.0, **options: Any) -> Model:
    """Train a `CRF` on the workers of a cluster, and return it. It has the same bits as on one machine.

    `data` is a pair (X, y) as for `CRF.fit`; a list of column files, which workers read at these paths; an encoded data
    set (`crfkit.data.open_dataset`) on storage that all share; a dask bag of pairs (x, y); or a list of delayed objects,
    each a list of such pairs. `options` are the other arguments of `CRF.fit`: `dev`, `metric`, `patience`, `callback`,
    `checkpoint`, `time_budget`, `start`, `shard_size`, `verbose`, and for (X, y) `sample_weight`, `allowed` and `costs`. A
    scheduler that does not answer for `timeout` seconds, or has no workers, is a `ClusterError`, and so is everything
    else that a cluster does wrong.
    """
    if not isinstance(model, CRF):
        raise ArgumentError(f"model is of type {type(model).__name__}, expected a CRF")
    params = {**model.get_params(deep=False), "client": client, "timeout": timeout}
    trained: DistributedCRF = DistributedCRF(**params)
    X, y = data if isinstance(data, tuple) and len(data) == 2 and find_parts(data) is None else (data, None)
    trained.fit(X, y, **options)
    own = {**model.get_params(deep=False)}
    model.__dict__.update(trained.__dict__)
    for name in ("client", "timeout"):
        if name not in own:
            del model.__dict__[name]
    model.__dict__.update(own)
    return model
