"""A trained model that tags column files chunk by chunk, without Python objects for their rows."""

from __future__ import annotations

from typing import NamedTuple

from crfkit.features import ColumnChunk, ColumnCutter
from crfkit.inference import ChainPotentials
from crfkit.models.chain_model import ChainModel
from crfkit.models.crf import CRF
from crfkit.models.potentials import FeaturePotentials


class ColumnTagger(NamedTuple):
    """What tags a chunk. Several threads may call it at once, each lets go of the interpreter's lock meanwhile."""

    model: ChainModel
    potentials: ChainPotentials
    labels: list[str]

    @classmethod
    def of(cls, crf: CRF) -> ColumnTagger | None:
        """For a chain with the features of a template, without dense blocks and tag dictionary; None for any other."""
        model, potentials = crf._get_model(), crf._answerer.potentials
        encoder = model.potentials.encoder
        plain = type(model) is ChainModel and type(model.potentials) is FeaturePotentials
        more = model.dictionary is not None or encoder.dense_sizes or encoder.more_columns
        if not plain or more or encoder.template is None or not isinstance(potentials, ChainPotentials):
            return None
        return cls(model, potentials, [*map(str, model.labels.names)])

    def tag(
        self, cutter: ColumnCutter, chunk: ColumnChunk, inputs: list[int], *, labels_only: bool = False
    ) -> tuple[bytes, int] | None:
        """A chunk with one more column, the label, and the number of its sequences; None where it has an error.

        `inputs` are the columns of the file that the model reads.
        """
        encoder, layout = self.model.potentials.encoder, self.model.potentials.feature_map.layout
        words = (encoder.extractor, encoder.vocabulary, encoder.arc_vocabulary)
        return self.potentials.tag_chunk(layout, *words, self.labels, cutter, inputs, labels_only, chunk)
