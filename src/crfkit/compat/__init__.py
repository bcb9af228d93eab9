"""Doors for people who come from other toolkits: their interfaces and their model files."""

from crfkit.compat.crfsuite_file import crfsuite_bytes, read_crfsuite, write_crfsuite
from crfkit.compat.installation import install

__all__ = ["crfsuite_bytes", "install", "read_crfsuite", "write_crfsuite"]
