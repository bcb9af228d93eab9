"""SIGTERM as Ctrl-C: what ends a job from outside (`docker stop`, `kill`, a batch system) keeps the trained model.

By default SIGTERM ends a process at once. While a model is trained it raises `Terminated` instead, a KeyboardInterrupt, so
that everything that keeps the best weights after Ctrl-C does so after SIGTERM too. A program that handles SIGTERM
itself goes on doing so: only the default action is ever replaced, only in the main thread, where signals arrive, and never
in a worker of `multiprocessing`, whose pool ends it by SIGTERM.
"""

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


class Terminated(KeyboardInterrupt):
    """SIGTERM arrived."""


class Termination:
    """Whether SIGTERM has arrived."""

    received = False

    def __call__(self, number: int, frame: Any) -> None:
        """Handle the signal: the first one raises; later ones are ignored."""
        if not self.received:
            self.received = True
            raise Terminated


@contextmanager
def terminable() -> Iterator[Termination]:
    """In this block SIGTERM raises `Terminated`; the default action follows where nobody catches it."""
    termination = Termination()
    if signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL or not _handle(signal.SIGTERM, termination):
        yield termination
        return
    try:
        yield termination
    except Terminated:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.raise_signal(signal.SIGTERM)
        raise
    finally:
        if signal.getsignal(signal.SIGTERM) is termination:  # nobody has set another one since
            signal.signal(signal.SIGTERM, signal.SIG_DFL)


@contextmanager
def postpone_signals() -> Iterator[None]:
    """In this block SIGTERM and Ctrl-C wait until it is over, so that a file is written to its end."""
    arrived: list[int] = []
    handlers = {}
    for number in (signal.SIGINT, signal.SIGTERM):
        known = signal.getsignal(number)
        if (callable(known) or known is signal.SIG_DFL) and _handle(number, lambda n, _: arrived.append(n)):
            handlers[number] = known
    try:
        yield
    finally:
        for number, known in handlers.items():
            signal.signal(number, known)
    for late in dict.fromkeys(arrived):
        signal.raise_signal(late)


def _handle(number: int, handler: Callable[[int, Any], None]) -> bool:
    """Sets the handler of a signal, where this process and this thread may; whether they may."""
    if threading.current_thread() is not threading.main_thread():
        return False
    workers = sys.modules.get("multiprocessing.process")
    if workers is not None and workers.current_process().name != "MainProcess":
        return False
    try:
        signal.signal(number, handler)
    except ValueError:  # not the main interpreter
        return False
    return True
