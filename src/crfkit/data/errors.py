"""What is said about input that cannot be used."""


class InputError(ValueError):
    """Bad input, in one sentence: what was given, what was expected, and where.

    Where is a file and a line, or a sequence and a site.
    """
