"""Files in, sequences of rows out."""

from crfkit.data.attributes import AttributeSequence, item_of, read_attributes, write_attributes
from crfkit.data.columns import AUTO, ColumnSequence, read_columns, write_columns
from crfkit.data.conllu import EmptyNode, Multiword, Sentence, Word, is_conllu, read_conllu, write_conllu
from crfkit.data.errors import InputError, MissingFileError, unreadable
from crfkit.data.files import read_bytes, read_text
from crfkit.data.trees import check_tree

__all__ = [
    "AUTO",
    "AttributeSequence",
    "ColumnSequence",
    "EmptyNode",
    "InputError",
    "MissingFileError",
    "Multiword",
    "Sentence",
    "Word",
    "check_tree",
    "is_conllu",
    "item_of",
    "read_attributes",
    "read_bytes",
    "read_columns",
    "read_conllu",
    "read_text",
    "unreadable",
    "write_attributes",
    "write_columns",
    "write_conllu",
]
