"""What is raised where a cluster does not do its part."""

from typing import Any


class ClusterError(RuntimeError):
    """A cluster cannot do what was asked of it; the message says which machine, and why."""


class SchedulerLostError(ClusterError):
    """The scheduler has not answered for the time limit."""


class NoWorkersError(ClusterError):
    """No worker has joined within the time limit."""


class WorkerVersionError(ClusterError):
    """A worker, or the scheduler, has no crfkit, or another version of it."""


class MissingDataError(ClusterError, FileNotFoundError):
    """A worker does not have a file; the message names both."""

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""

    def __reduce__(self) -> tuple[Any, ...]:  # so that it arrives from a worker as it is
        return type(self), self.args


class WorkersFailedError(ClusterError):
    """A task failed on every worker, or workers were lost over and over again while they computed it."""


class WorkersLostError(ClusterError):
    """Workers left while they computed. What they held is computed again: nobody but this package sees it."""


class UnequalProcessors(UserWarning):
    """Workers have processors of different kinds, on which results differ in their last bits."""
