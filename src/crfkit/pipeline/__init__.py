"""From words to analysed sentences: taggers of treebanks, and what is built of several models."""

from typing import TYPE_CHECKING

from crfkit.lazy import lazy_names

if TYPE_CHECKING:
    from crfkit.pipeline.loading import load
    from crfkit.pipeline.tag_columns import TagColumns
    from crfkit.pipeline.tagger import TreebankTagger
    from crfkit.pipeline.tagger_settings import choose_crf

__all__ = ["TagColumns", "TreebankTagger", "choose_crf", "load"]

_LAZY = {
    "loading": ("load",),
    "tag_columns": ("TagColumns",),
    "tagger": ("TreebankTagger",),
    "tagger_settings": ("choose_crf",),
}

if not TYPE_CHECKING:
    __getattr__ = lazy_names(
        globals(), {f"crfkit.pipeline.{module}": names for module, names in _LAZY.items()}
    )
