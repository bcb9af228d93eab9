"""Interfaces and model files of other toolkits: python-crfsuite, sklearn-crfsuite, pytorch-crf, CRF++, Wapiti, MeCab."""

from typing import TYPE_CHECKING

from crfkit.lazy import lazy_names

if TYPE_CHECKING:
    from crfkit.compat.crfpp_file import read_crfpp
    from crfkit.compat.crfsuite_file import crfsuite_bytes, read_crfsuite, write_crfsuite
    from crfkit.compat.installation import install
    from crfkit.compat.mecab_files import read_mecab, write_mecab
    from crfkit.compat.model_files import MAGIC
    from crfkit.compat.template_model import with_columns
    from crfkit.compat.wapiti_file import read_wapiti

__all__ = [
    "MAGIC",
    "crfsuite_bytes",
    "install",
    "read_crfpp",
    "read_crfsuite",
    "read_mecab",
    "read_wapiti",
    "with_columns",
    "write_crfsuite",
    "write_mecab",
]

if not TYPE_CHECKING:  # a program that opens a model and labels one sequence needs none of these
    __getattr__ = lazy_names(
        globals(),
        {
            "crfkit.compat.crfpp_file": ["read_crfpp"],
            "crfkit.compat.crfsuite_file": ["crfsuite_bytes", "read_crfsuite", "write_crfsuite"],
            "crfkit.compat.installation": ["install"],
            "crfkit.compat.mecab_files": ["read_mecab", "write_mecab"],
            "crfkit.compat.model_files": ["MAGIC"],
            "crfkit.compat.template_model": ["with_columns"],
            "crfkit.compat.wapiti_file": ["read_wapiti"],
        },
    )
