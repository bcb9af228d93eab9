"""One thread for each model, which answers waiting requests together.

Requests that ask the same question of the same model are answered in one call of the library, which uses all processors and
releases the interpreter's lock. A large request is answered in slices, so that small ones need not wait for all of it.
"""

import threading
import time
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field

from crfkit.errors import InputError
from crfkit.serve.errors import RequestError, unanswerable
from crfkit.serve.given import Item
from crfkit.serve.question import Question
from crfkit.serve.served import ServedModel
from crfkit.serve.served.model import Sentences

SLICE = 4_000  # tokens that are answered at once


@dataclass(slots=True, eq=False)
class Job:
    """A request that waits for its answers, one for each item."""

    question: Question
    items: Sequence[Item]
    deadline: float  # by time.monotonic: refused if it has not begun by then
    future: "Future[list[Sentences]]" = field(default_factory=Future)
    answers: list[Sentences] = field(default_factory=list)  # as far as they are there

    def take(self, most: int) -> Sequence[Item]:
        """The next items, up to so many tokens, one at least."""
        begin = end = len(self.answers)
        size = 0
        while end < len(self.items) and (end == begin or size + self.items[end].size <= most):
            size += self.items[end].size
            end += 1
        return self.items[begin:end]


class ClosedError(Exception):
    """A request to a version that has been replaced: the current one takes it."""


class Batcher:
    """Answers the requests to one model, in a thread of its own."""

    def __init__(self, model: ServedModel, name: str) -> None:
        self.model = model
        self._jobs: deque[Job] = deque()
        self._wake = threading.Condition()
        self._closed = False
        self._thread = threading.Thread(target=self._run, name=f"crfkit-{name}", daemon=True)
        self._thread.start()

    def __len__(self) -> int:
        return len(self._jobs)

    def submit(self, job: Job) -> None:
        """Queue a request; its future has the answers, or the error."""
        with self._wake:
            if self._closed:
                raise ClosedError
            self._jobs.append(job)
            self._wake.notify()

    def close(self) -> None:
        """End the thread once all that waits is answered."""
        with self._wake:
            self._closed = True
            self._wake.notify()

    def join(self, seconds: float) -> None:
        """Wait for the end of the thread."""
        self._thread.join(seconds)

    def _run(self) -> None:
        while (jobs := self._next()) is not None:
            self._answer(jobs)

    def _next(self) -> list[Job] | None:
        """The first request that waits, and those behind it with the same question; None at the end."""
        with self._wake:
            while not self._jobs:
                if self._closed:
                    return None
                self._wake.wait()
            jobs = [self._jobs.popleft()]
            size = sum(item.size for item in jobs[0].items)
            if jobs[0].question.whole:
                return jobs
            while self._jobs and self._jobs[0].question == jobs[0].question and size < SLICE:
                jobs.append(self._jobs.popleft())
                size += sum(item.size for item in jobs[-1].items)
            return jobs

    def _answer(self, jobs: list[Job]) -> None:
        """Answer a slice of each request; one that has more left goes to the end of the queue."""
        jobs = [job for job in jobs if _is_wanted(job)]
        if not jobs:
            return
        whole = jobs[0].question.whole
        slices = [job.items if whole else job.take(SLICE) for job in jobs]
        try:
            answers = self.model.answer(jobs[0].question, [item for items in slices for item in items])
        except Exception:
            for job in jobs:
                self._answer_alone(job)
            return
        begin = 0
        for job, items in zip(jobs, slices, strict=True):
            # What is explained is one item of all; every other question has an answer for each.
            count = len(answers) if whole else len(items)
            job.answers += answers[begin : begin + count]
            begin += count
            if whole or len(job.answers) == len(job.items):
                job.future.set_result(job.answers)
            else:
                with self._wake:
                    self._jobs.append(job)

    def _answer_alone(self, job: Job) -> None:
        """Find out whose input cannot be answered; messages then count the sentences of this request."""
        try:
            job.future.set_result(self.model.answer(job.question, job.items))
        except RequestError as error:
            job.future.set_exception(error)
        except InputError as error:
            job.future.set_exception(unanswerable(str(error)[:500]))
        except Exception as error:
            job.future.set_exception(error)


def _is_wanted(job: Job) -> bool:
    """Whether anybody still waits for it; one that waited too long is refused."""
    if job.answers:
        return not job.future.cancelled()
    if not job.future.set_running_or_notify_cancel():
        return False
    if time.monotonic() > job.deadline:
        job.future.set_exception(RequestError(429, "too many requests: no turn in time", retry_after=1))
        return False
    return True
