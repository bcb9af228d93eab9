"""Dictionaries of hunspell: words with flags (.dic) and the affixes that flags stand for (.aff), as word forms."""

from crfkit.features.hunspell.forms import MOST_FORMS, HunspellForm, hunspell_forms

__all__ = ["MOST_FORMS", "HunspellForm", "hunspell_forms"]
