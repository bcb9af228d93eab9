"""The one-line switch for code that imports another toolkit by its name."""

import importlib
import importlib.util
import sys
from collections.abc import Iterable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

from crfkit.errors import ArgumentError

STAND_INS = {
    "pycrfsuite": "crfkit.compat.pycrfsuite",
    "sklearn_crfsuite": "crfkit.compat.sklearn_crfsuite",
    "torchcrf": "crfkit.compat.torchcrf",
}
"""{name of another toolkit's package: the package here with the same interface}."""


def install(names: Iterable[str] = tuple(STAND_INS)) -> None:
    """From now on `import pycrfsuite`, `sklearn_crfsuite` and `torchcrf` give the modules of `crfkit.compat`.

    Modules that imported the originals before keep them: call it first. `names` are the packages to stand in for; each is
    loaded when it is imported.
    """
    chosen = [names] if isinstance(names, str) else list(names)
    for name in chosen:
        if name not in STAND_INS:
            raise ArgumentError(f"install got {name!r}, expected names among {', '.join(STAND_INS)}")
    for name in chosen:
        for known in [known for known in sys.modules if known == name or known.startswith(f"{name}.")]:
            del sys.modules[known]
        if not any(isinstance(finder, StandIn) and finder.name == name for finder in sys.meta_path):
            sys.meta_path.insert(0, StandIn(name))


class StandIn(MetaPathFinder, Loader):
    """Finds a package of another toolkit, and its modules, in `crfkit.compat`: one module with two names."""

    def __init__(self, name: str) -> None:
        self.name = name

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The spec of the package and of the modules in it; None for all others."""
        package, dot, module = fullname.partition(".")
        own = STAND_INS.get(package, "") + dot + module
        if package != self.name or (dot and importlib.util.find_spec(own) is None):
            return None
        return ModuleSpec(fullname, self)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """The module of `crfkit.compat`."""
        package, dot, module = spec.name.partition(".")
        own = importlib.import_module(STAND_INS[package] + dot + module)
        spec.loader_state = own.__spec__
        return own

    def exec_module(self, module: ModuleType) -> None:
        """Nothing: the module is loaded. It keeps the spec of its own name."""
        assert module.__spec__ is not None
        module.__spec__ = module.__spec__.loader_state
