"""Doors for people who come from other toolkits: their interfaces and their model files."""

from crfkit.compat import crfpp_file, crfsuite_file, wapiti_file
from crfkit.compat.crfpp_file import read_crfpp
from crfkit.compat.crfsuite_file import crfsuite_bytes, read_crfsuite, write_crfsuite
from crfkit.compat.installation import install
from crfkit.compat.template_model import with_columns
from crfkit.compat.wapiti_file import read_wapiti

MAGIC: dict[str, bytes | tuple[bytes, ...]] = {
    "crfsuite": crfsuite_file.MAGIC,
    "crf++": crfpp_file.MAGIC,
    "wapiti": wapiti_file.MAGIC,
}
"""How the model files of other toolkits begin."""

__all__ = [
    "MAGIC",
    "crfsuite_bytes",
    "install",
    "read_crfpp",
    "read_crfsuite",
    "read_wapiti",
    "with_columns",
    "write_crfsuite",
]
