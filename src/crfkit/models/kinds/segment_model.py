"""Models of segments, whose labels may be written in IOB1 outside and are those of BIO inside."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from crfkit.arrays import Int32s
from crfkit.errors import UnsupportedError
from crfkit.features import Dataset
from crfkit.models.chain_model import ChainModel
from crfkit.structures import bio_to_iob1

if TYPE_CHECKING:
    from crfkit.models.kinds.segments import SegmentPotentials


@dataclass(frozen=True, eq=False)
class SegmentModel(ChainModel):
    """A semi-Markov chain without its weights."""

    @property
    def _writes_iob1(self) -> bool:
        return cast("SegmentPotentials", self.potentials).segments.structure.reads_iob1

    def encode(self, X: Any, allowed: Any = None, n_threads: int = 1) -> Dataset:
        """New input in numbers."""
        if self._writes_iob1:
            refuse_allowed(allowed)
        return super().encode(X, allowed, n_threads)

    def decode(self, ids: Int32s, dataset: Dataset, n: int = 1) -> list[list[Any]]:
        """Labels in the scheme of the user."""
        found = super().decode(ids, dataset, n)
        return [*map(bio_to_iob1, found)] if self._writes_iob1 else found

    def decode_one(self, ids: Int32s, dataset: Dataset, n: int) -> list[Any]:
        """The same of one sequence."""
        found = super().decode_one(ids, dataset, n)
        return bio_to_iob1(found) if self._writes_iob1 else found

    def read_gold(self, y: Any, dataset: Dataset, which: str = "") -> list[Any]:
        """The same of right labels, which were read as those of BIO."""
        found = super().read_gold(y, dataset, which)
        return [*map(bio_to_iob1, found)] if self._writes_iob1 else found

    def written_scheme(self, scheme: str) -> str:
        """BIO where IOB1 is written outside."""
        return "bio" if self._writes_iob1 else scheme

    def check_marginals(self) -> None:
        """In IOB1, whether B or I is written depends on the label before."""
        if self._writes_iob1:
            raise UnsupportedError(
                "the scheme iob1 has no probabilities of labels here, expected predict_spans, or a model of the scheme bio"
            )


def refuse_allowed(allowed: Any) -> None:
    """In IOB1, which segments a label allows depends on the label before."""
    if allowed is not None:
        raise UnsupportedError(
            "allowed labels do not go with the scheme iob1, expected a model of the scheme bio"
        )
