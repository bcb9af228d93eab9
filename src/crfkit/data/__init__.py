"""Files in, sequences of rows out."""

from typing import TYPE_CHECKING

from crfkit.data.errors import make_read_error
from crfkit.data.limits import MAX_LABELS, MAX_WEIGHT, check_labels, fewest_weights
from crfkit.errors import InputError, MissingFileError
from crfkit.lazy import lazy_names

if TYPE_CHECKING:
    from crfkit.data.array_files import ArrayFile, pack_arrays, read_arrays, write_arrays, write_file
    from crfkit.data.attributes import AttributeSequence, item_of, read_attributes, write_attributes
    from crfkit.data.columns import AUTO, ColumnSequence, read_columns, read_part, write_columns
    from crfkit.data.conllu import (
        CommentsDropped,
        EmptyNode,
        Multiword,
        Sentence,
        Word,
        is_conllu,
        read_conllu,
        write_conllu,
    )
    from crfkit.data.drafts import check_writable, replacing
    from crfkit.data.encoded import DatasetFolder, EncodedDataset, open_dataset
    from crfkit.data.files import (
        number_lines,
        read_byte_pieces,
        read_bytes,
        read_pieces,
        read_text,
        source_name,
    )
    from crfkit.data.frames import SequenceFrame, from_frame
    from crfkit.data.labelled_columns import find_separator, read_pairs
    from crfkit.data.offsets import token_offsets
    from crfkit.data.trees import check_tree
    from crfkit.data.uai import (
        UAIResult,
        read_uai,
        read_uai_evidence,
        read_uai_result,
        write_uai,
        write_uai_result,
    )
    from crfkit.data.words import read_words

__all__ = [
    "AUTO",
    "MAX_LABELS",
    "MAX_WEIGHT",
    "ArrayFile",
    "AttributeSequence",
    "ColumnSequence",
    "CommentsDropped",
    "DatasetFolder",
    "EmptyNode",
    "EncodedDataset",
    "InputError",
    "MissingFileError",
    "Multiword",
    "Sentence",
    "SequenceFrame",
    "UAIResult",
    "Word",
    "check_labels",
    "check_tree",
    "check_writable",
    "fewest_weights",
    "find_separator",
    "from_frame",
    "is_conllu",
    "item_of",
    "make_read_error",
    "number_lines",
    "open_dataset",
    "pack_arrays",
    "read_arrays",
    "read_attributes",
    "read_byte_pieces",
    "read_bytes",
    "read_columns",
    "read_conllu",
    "read_pairs",
    "read_part",
    "read_pieces",
    "read_text",
    "read_uai",
    "read_uai_evidence",
    "read_uai_result",
    "read_words",
    "replacing",
    "source_name",
    "token_offsets",
    "write_arrays",
    "write_attributes",
    "write_columns",
    "write_conllu",
    "write_file",
    "write_uai",
    "write_uai_result",
]

_LAZY = {  # what only labels reads no files of these kinds
    "array_files": ("ArrayFile", "pack_arrays", "read_arrays", "write_arrays", "write_file"),
    "attributes": ("AttributeSequence", "item_of", "read_attributes", "write_attributes"),
    "columns": ("AUTO", "ColumnSequence", "read_columns", "read_part", "write_columns"),
    "conllu": (
        "CommentsDropped",
        "EmptyNode",
        "Multiword",
        "Sentence",
        "Word",
        "is_conllu",
        "read_conllu",
        "write_conllu",
    ),
    "drafts": ("check_writable", "replacing"),
    "encoded": ("DatasetFolder", "EncodedDataset", "open_dataset"),
    "frames": ("SequenceFrame", "from_frame"),
    "files": ("number_lines", "read_byte_pieces", "read_bytes", "read_pieces", "read_text", "source_name"),
    "labelled_columns": ("find_separator", "read_pairs"),
    "offsets": ("token_offsets",),
    "trees": ("check_tree",),
    "uai": (
        "UAIResult",
        "read_uai",
        "read_uai_evidence",
        "read_uai_result",
        "write_uai",
        "write_uai_result",
    ),
    "words": ("read_words",),
}

if not TYPE_CHECKING:
    __getattr__ = lazy_names(globals(), {f"crfkit.data.{module}": names for module, names in _LAZY.items()})
