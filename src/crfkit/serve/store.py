"""The models of a server: chosen by name, and replaced by new versions while requests are answered."""

import logging
import os
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crfkit.errors import ArgumentError, InputError
from crfkit.pipeline import load
from crfkit.serve.batching import Batcher
from crfkit.serve.errors import RequestError
from crfkit.serve.limits import Limits
from crfkit.serve.served import ServedModel, wrap_model

LOGGER = logging.getLogger("crfkit.serve")

_NAME = re.compile(r"[\w.-]{1,64}")

Loader = Callable[[Path], Any]  # from a model file to a model
Stamp = tuple[int, int, int]  # of a file: changes when it does


@dataclass(frozen=True, eq=False)
class Version:
    """One version of a model, with the thread that answers for it."""

    name: str
    number: int  # 1, 2, …
    model: ServedModel
    batcher: Batcher

    @property
    def label(self) -> str:
        """What answers call it: `names-1`."""
        return f"{self.name}-{self.number}"


class ModelStore:
    """Models by name. The first one is asked where a request names none.

    `models` are trained models, or the paths of their files, which `reload` reads again.
    """

    def __init__(
        self,
        models: Mapping[str, Any],
        limits: Limits,
        *,
        loader: Loader = load,
        n_threads: int | None = None,
    ) -> None:
        if not models:
            raise ArgumentError("there is no model to serve")
        for name in models:
            if not _NAME.fullmatch(name):
                raise ArgumentError(
                    f"the name of a model is {name!r}, expected up to 64 letters, digits, dots, hyphens and underscores"
                )
        self.limits = limits
        self.n_reloads = self.n_failures = 0
        self._loader = loader
        self._n_threads = n_threads
        self._lock = threading.RLock()  # one new version at a time
        self._paths = {
            name: Path(given) for name, given in models.items() if isinstance(given, str | os.PathLike)
        }
        self._stamps = {name: _stamp(path) for name, path in self._paths.items()}
        self._seen: dict[str, Stamp | None] = {}  # when `reload_changed` looked last
        self._versions: dict[str, Version] = {}
        for name, given in models.items():
            self._add(name, self._load(name) if name in self._paths else given)

    def __iter__(self) -> Iterator[Version]:
        return iter(list(self._versions.values()))

    def get(self, name: object = None) -> Version:
        """The current version of a model; RequestError where there is none of this name."""
        if name is None:
            return next(iter(self))
        found = self._versions.get(name) if isinstance(name, str) else None
        if found is None:
            raise RequestError(
                404, f"there is no model {str(name)[:60]!r}, expected {', '.join(self._versions)}"
            )
        return found

    def path(self, name: str) -> Path | None:
        """The file of a model, if it came from one."""
        return self._paths.get(name)

    def replace(self, name: str, model: Any) -> Version:
        """Put a new version in the place of the current one, whose requests are still answered by it."""
        with self._lock:
            old = self._versions[name]
            new = self._add(name, model)
        old.batcher.close()
        return new

    def reload(self) -> list[str]:
        """Read all model files again, and swap in what could be read; the names of those."""
        with self._lock:
            return [name for name in self._paths if self._reload(name)]

    def reload_changed(self) -> list[str]:
        """Read the files that have changed since they were read last, and that rest since the last call."""
        with self._lock:
            changed = []
            for name, path in self._paths.items():
                now = _stamp(path)
                if now is not None and now != self._stamps[name] and now == self._seen.get(name):
                    self._stamps[name] = now
                    if self._reload(name):
                        changed.append(name)
                self._seen[name] = now
            return changed

    def close(self, seconds: float = 30.0) -> None:
        """End all threads once what waits is answered."""
        versions = list(self)
        for version in versions:
            version.batcher.close()
        for version in versions:
            version.batcher.join(seconds)

    def _reload(self, name: str) -> bool:
        try:
            self.replace(name, self._load(name))
        except (InputError, OSError, MemoryError) as error:
            self.n_failures += 1
            LOGGER.error("%s: the model was not reloaded, the one before stays: %s", name, error)
            return False
        self.n_reloads += 1
        LOGGER.info("%s: reloaded", self._versions[name].label)
        return True

    def _load(self, name: str) -> Any:
        return self._loader(self._paths[name])

    def _add(self, name: str, model: Any) -> Version:
        if hasattr(model, "n_threads"):
            model.n_threads = self._n_threads
        served = wrap_model(model, self.limits)
        number = self._versions[name].number + 1 if name in self._versions else 1
        version = Version(name, number, served, Batcher(served, name))
        self._versions[name] = version
        return version


def _stamp(path: Path) -> Stamp | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return (found.st_mtime_ns, found.st_size, found.st_ino)
