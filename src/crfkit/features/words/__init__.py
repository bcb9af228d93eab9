"""Words of text without spaces: a lexicon, unknown words by classes of characters, and the features of both."""

from crfkit.features.words.character_classes import CharacterClass, CharacterClasses
from crfkit.features.words.csv_fields import as_fields, join_fields, read_word, split_fields
from crfkit.features.words.rewriting import Rewriting, RewrittenFields
from crfkit.features.words.word_dictionary import WORD_COST, Candidate, Entry, WordDictionary
from crfkit.features.words.word_templates import WordTemplates

__all__ = [
    "WORD_COST",
    "Candidate",
    "CharacterClass",
    "CharacterClasses",
    "Entry",
    "Rewriting",
    "RewrittenFields",
    "WordDictionary",
    "WordTemplates",
    "as_fields",
    "join_fields",
    "read_word",
    "split_fields",
]
