"""Plain chains: what models need to know of `structures.Chain`."""

from crfkit.models.kinds.kind import StoredModel, StructureKind
from crfkit.models.potentials import FeaturePotentials, FunctionPotentials, LocalPotentials
from crfkit.structures import Chain


class ChainKind(StructureKind):
    """A chain, whose weights are those of features, of transitions and of feature functions."""

    structure = Chain
    written = "crfkit.Chain(…)"
    adds_to_chain = True

    def reads_sequences(self, structure: Chain) -> bool:
        """Never."""
        return False

    def open(self, stored: StoredModel) -> tuple[Chain, FeaturePotentials]:
        """The chain of the parameters."""
        if stored.functions is not None:
            return stored.chain, FunctionPotentials(*stored.features, stored.functions)
        return stored.chain, (LocalPotentials if stored.local else FeaturePotentials)(*stored.features)
