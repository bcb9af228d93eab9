"""Word vectors beside the features of a template: dense blocks."""

from collections.abc import Sequence
from itertools import pairwise

from crfkit.arrays import Int64s
from crfkit.errors import FeatureError
from crfkit.features.blocks import DenseRows
from crfkit.features.knowledge import WordVectors
from crfkit.features.knowledge.macros import Lookup, find_resource
from crfkit.features.templates import Row, Template


def vector_blocks(
    template: Template, sequences: Sequence[Sequence[Row]], sequence_ptr: Int64s
) -> dict[str, list[DenseRows]]:
    """The rows of the blocks that a template's `%vector` lines are; 0 outside of the sequence."""
    pieces: dict[str, list[DenseRows]] = {}
    for name, resource, column, row, number in template.program().vectors:
        vectors = find_resource(Lookup("vector", resource), template.resources)
        assert isinstance(vectors, WordVectors)
        if name in pieces:
            raise FeatureError(f"{template.source}:{number}: there are two blocks named {name!r}")
        words = [cells if isinstance(cells, str) else cells[column] for rows in sequences for cells in rows]
        block = vectors.rows(words)  # [T, K]
        pieces[name] = []
        for begin, end in pairwise(sequence_ptr.tolist()):
            source = slice(max(begin, begin + row), max(min(end, end + row), begin))
            if source.start < source.stop:
                pieces[name].append((source.start - row, block[source]))
        if not pieces[name]:  # no sequence is so long
            pieces[name].append((0, block[:0]))
    return pieces
