"""From raw text to analysed sentences: tokenizers, taggers of treebanks, and what is built of several models."""

from typing import TYPE_CHECKING

from crfkit.lazy import lazy_names

if TYPE_CHECKING:
    from crfkit.pipeline.components import Component, run_component
    from crfkit.pipeline.lemmatizer import Lemmatizer
    from crfkit.pipeline.loading import load, load_file
    from crfkit.pipeline.pipeline import Pipeline
    from crfkit.pipeline.sentence_json import sentence_to_json
    from crfkit.pipeline.tag_columns import TagColumns
    from crfkit.pipeline.tagger import TreebankTagger
    from crfkit.pipeline.tagger_settings import ChosenCRF, choose_crf, choose_for_treebank
    from crfkit.pipeline.text_input import INPUT_FORMATS
    from crfkit.pipeline.tokenizer import Tokenizer
    from crfkit.pipeline.word_list import WordList
    from crfkit.pipeline.written_text import raw_text

__all__ = [
    "INPUT_FORMATS",
    "ChosenCRF",
    "Component",
    "Lemmatizer",
    "Pipeline",
    "TagColumns",
    "Tokenizer",
    "TreebankTagger",
    "WordList",
    "choose_crf",
    "choose_for_treebank",
    "load",
    "load_file",
    "raw_text",
    "run_component",
    "sentence_to_json",
]

_LAZY = {
    "components": ("Component", "run_component"),
    "lemmatizer": ("Lemmatizer",),
    "loading": ("load", "load_file"),
    "written_text": ("raw_text",),
    "pipeline": ("Pipeline",),
    "sentence_json": ("sentence_to_json",),
    "text_input": ("INPUT_FORMATS",),
    "tag_columns": ("TagColumns",),
    "tagger": ("TreebankTagger",),
    "tagger_settings": ("ChosenCRF", "choose_crf", "choose_for_treebank"),
    "tokenizer": ("Tokenizer",),
    "word_list": ("WordList",),
}

if not TYPE_CHECKING:
    __getattr__ = lazy_names(
        globals(), {f"crfkit.pipeline.{module}": names for module, names in _LAZY.items()}
    )
