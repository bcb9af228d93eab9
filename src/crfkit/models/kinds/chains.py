"""Plain chains: what models need to know of `structures.Chain`."""

from typing import TYPE_CHECKING

from crfkit.models.kinds.kind import StoredModel, StructureKind
from crfkit.models.potentials import (
    FeaturePotentials,
    FunctionPotentials,
    LocalPotentials,
    potentials_without_structure,
)
from crfkit.structures import Chain

if TYPE_CHECKING:
    from crfkit.models.settings import CRFSettings


class ChainKind(StructureKind):
    """A chain, whose weights are those of features, of transitions and of feature functions."""

    structure = Chain
    written = "crfkit.Chain(…)"
    adds_to_chain = True

    def find_potentials(self, settings: "CRFSettings") -> type[FeaturePotentials]:
        """Of features, or of feature functions."""
        return potentials_without_structure(settings)

    def open(self, stored: StoredModel) -> tuple[Chain, FeaturePotentials]:
        """The chain of the parameters."""
        if stored.functions is not None:
            return stored.chain, FunctionPotentials(*stored.features, stored.functions)
        return stored.chain, (LocalPotentials if stored.local else FeaturePotentials)(*stored.features)
