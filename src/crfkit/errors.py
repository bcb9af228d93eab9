"""What is raised for input that cannot be used, by kind.

All kinds are `InputError`, a `ValueError`. The message says in one sentence what was given, what was expected, and where:
a file and a line, or a sequence and a position.
"""

from typing import Any


class InputError(ValueError):
    """Bad input of any kind."""


class ArgumentError(InputError):
    """An argument, or a setting of a model or an optimizer, has a value that it cannot have."""


class UnsupportedError(InputError):
    """Arguments or settings, each of them possible, that cannot be combined, or that a model has no use for."""


class ShapeError(InputError):
    """Arrays or lists do not have the sizes or the kind of entries that they need, alone or beside each other."""


class FeatureError(InputError):
    """X or a position of it is not in a form that features can be read from."""


class LabelError(InputError):
    """A label, or a set of labels, is unknown, or is not one."""


class ImpossibleLabelsError(InputError):
    """The labels of a sequence are excluded by the structure, its bigrams or the allowed labels."""


class NoOutputError(InputError):
    """No output exists for an input, whatever the scores."""


class EmptyDataError(InputError):
    """The data have nothing to learn from, or nothing to compare with."""


class TreeError(InputError):
    """Heads do not form a tree."""


class TemplateError(InputError):
    """The text of a template cannot be parsed."""


class PatternError(InputError):
    """The text of a label pattern or of its gate cannot be parsed, or its automaton is too large."""


class SizeLimitError(InputError):
    """A trellis would have more states or arcs than the structure allows, or exact inference need too much memory."""


class FunctionError(InputError):
    """A function of the user failed, or gave something unexpected."""


class NotLoadedError(InputError):
    """A model file names a function or a class that was not loaded, or cannot be."""


class UnsavableError(InputError):
    """No file of the format can hold this."""


class MissingPackageError(InputError, ImportError):
    """Something needs a package that is not installed; the message names the extra of crfkit that installs it."""


class FileError(InputError):
    """A file cannot be used."""


class UnreadableFileError(FileError):
    """A file cannot be opened or read."""


class MissingFileError(UnreadableFileError, FileNotFoundError):
    """A file to read does not exist."""

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""

    def __reduce__(self) -> tuple[Any, ...]:  # so that errors of other machines arrive as they are
        return type(self), self.args


class UnwritableFileError(FileError):
    """A file cannot be written."""


class FileFormatError(FileError):
    """A file is damaged, of another kind, or not what its format calls for."""


class FileVersionError(FileFormatError):
    """A later version of crfkit wrote the file."""


def reword(error: ValueError, message: str) -> InputError:
    """An error of the same kind with another message; `InputError` where the kind is none of these."""
    kinds = (k for k in type(error).__mro__ if issubclass(k, InputError) and k.__module__ == __name__)
    return next(kinds, InputError)(message)
