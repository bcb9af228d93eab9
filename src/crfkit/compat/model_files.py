"""How the model files of other toolkits begin."""

from crfkit.compat import crfpp_file, crfsuite_file, wapiti_file

MAGIC: dict[str, bytes | tuple[bytes, ...]] = {
    "crfsuite": crfsuite_file.MAGIC,
    "crf++": crfpp_file.MAGIC,
    "wapiti": wapiti_file.MAGIC,
}
"""{toolkit: the first bytes of its files}."""
