"""Training from annotations, beside the requests: a new version of a model takes the place of the current one."""

import copy
import logging
import threading
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from crfkit.errors import InputError
from crfkit.models import CRF
from crfkit.optimizers import PassiveAggressive
from crfkit.serve.annotations import AnnotatedText
from crfkit.serve.served import ServedCRF
from crfkit.serve.store import ModelStore, Version
from crfkit.structures import SpanLabels

LOGGER = logging.getLogger("crfkit.serve")
PASSES = 20


class Trainer:
    """Trains a `CRF` on all annotations that there are, in a thread; one run at a time.

    It begins with the model of the file, so that annotations which were changed or deleted leave
    nothing behind, and changes it as little as makes the annotated texts right (passive-aggressive): few annotations do
    not undo what was learnt from many.
    """

    def __init__(self, store: ModelStore, save_dir: Path | None = None) -> None:
        self.store = store
        self.save_dir = save_dir
        self.last_error: str | None = None
        self.n_runs = 0
        self._first: dict[str, CRF[Any]] = {}  # name → the model of the file
        self._known: dict[str, Version] = {}  # name → the version that was trained last, or that of the file
        self._waiting: dict[str, list[AnnotatedText]] = {}
        self._wake = threading.Condition()
        self._busy: str | None = None
        self._closed = False
        self._thread: threading.Thread | None = None

    def start(self, version: Version, texts: Sequence[AnnotatedText]) -> str:
        """Train on these annotations as soon as the run before has ended; the name of the job."""
        with self._wake:
            self._find_first(version)
            self._waiting[version.name] = list(texts)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="crfkit-training", daemon=True)
                self._thread.start()
            self._wake.notify()
        return f"{version.name}-after-{version.number}"

    def _find_first(self, version: Version) -> None:
        """Note the model of the file, where the current version is one that was not trained here."""
        if self._known.get(version.name) is not version:
            assert isinstance(version.model, ServedCRF)
            self._first[version.name], self._known[version.name] = version.model.crf, version

    @property
    def busy(self) -> bool:
        """Whether a run is under way, or waits."""
        return self._busy is not None or bool(self._waiting)

    def wait(self, seconds: float) -> bool:
        """Wait until nothing is under way; whether it is so."""
        until = time.monotonic() + seconds
        while self.busy and time.monotonic() < until:
            time.sleep(0.01)
        return not self.busy

    def close(self) -> None:
        """Begin no further run."""
        with self._wake:
            self._closed = True
            self._waiting.clear()
            self._wake.notify()

    def _run(self) -> None:
        while True:
            with self._wake:
                while not self._waiting and not self._closed:
                    self._wake.wait()
                if self._closed:
                    return
                name = next(iter(self._waiting))
                texts = self._waiting.pop(name)
                self._busy = name
            try:
                self._train(name, texts)
                self.last_error = None
            except Exception as error:
                expected = isinstance(error, InputError | MemoryError)
                self.last_error = str(error) if expected else type(error).__name__
                LOGGER.error("%s: training failed: %s", name, error, exc_info=not expected)
            finally:
                self._busy = None

    def _train(self, name: str, texts: list[AnnotatedText]) -> None:
        began = time.monotonic()
        while True:
            before = self.store.get(name)
            self._find_first(before)
            model = fit_annotations(self._first[name], texts)
            if self.store.get(name) is before:
                break  # else the file was read again meanwhile
        version = self._known[name] = self.store.replace(name, model)
        self.n_runs += 1
        LOGGER.info("%s: trained on %d texts in %.1f s", version.label, len(texts), time.monotonic() - began)
        if self.save_dir is not None:
            path = self.save_dir / f"{version.label}.crf"
            model.save(path)
            LOGGER.info("%s: written to %s", version.label, path)


def fit_annotations(crf: CRF[Any], texts: Sequence[AnnotatedText]) -> CRF[Any]:
    """A new model: this one, changed as little as makes the annotated texts right."""
    scheme = SpanLabels.of(crf.classes_).scheme
    X: list[list[str]] = []
    y: list[list[Any]] = []
    for text in texts:
        tokens, labels = text.examples(scheme)
        X += tokens
        y += labels
    new = copy.deepcopy(crf)
    optimizer, new.optimizer = new.optimizer, PassiveAggressive(max_iterations=PASSES, average=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        new.partial_fit(X, y)
    new.optimizer = optimizer
    return new
