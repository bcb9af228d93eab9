"""A trained model as the commands use it: one that reads column files, or files of attributes."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from crfkit.cli.columns import Example, Input, read_attribute_examples, read_for_model, read_ragged
from crfkit.cli.constraints import check_known, label_column_among, take_allowed
from crfkit.cli.resources import open_resources
from crfkit.data import read_bytes
from crfkit.errors import InputError

if TYPE_CHECKING:
    from crfkit.features import Resource
    from crfkit.models import CRF


CRFKIT, CRFSUITE = "crfkit", "crfsuite"
BLANKS = " "  # runs of blanks and tabs
_USES = {  # type of a model file → what it holds, and which commands are for it
    "CRF": "a model of labels, for crfkit tag, eval, report and inspect",
    "Parser": "a parser, for crfkit parse, eval, report and inspect",
    "WordSegmenter": "a word segmenter, for crfkit tag, eval and inspect",
    "TreebankTagger": "a tagger of treebanks, for crfkit tag, eval, report and inspect",
    "GraphCRF": "a model of factor graphs, to be used from Python",
    "Pipeline": "a pipeline, for crfkit pipeline run, crfkit eval and inspect",
    "Tokenizer": "a tokenizer, to be used from Python, or as a component of a pipeline",
    "Lemmatizer": "a lemmatizer, to be used from Python, or as a component of a pipeline",
}


class FileForm(NamedTuple):
    """How column files are read; the metadata of a model file keep it from training on."""

    label_column: int = -1
    separator: str | None = None  # of the columns of the training file; None: each file decides

    @classmethod
    def default(cls, crf: "CRF") -> "FileForm":
        """Of a model whose file says nothing. Toolkits whose rows may have any columns split them at blanks."""
        return cls(separator=BLANKS if crf.encoder_.more_columns else None)

    @classmethod
    def of(cls, path: Path, crf: "CRF") -> "FileForm":
        """What a model file of this package says, or the default; refused if it cannot be."""
        from crfkit.models import read_metadata

        found = {name: value for name, value in read_metadata(path).items() if name in cls._fields}
        form = cls(**found) if found else cls.default(crf)
        column, separator, n_columns = form.label_column, form.separator, crf.n_columns_
        if not isinstance(column, int) or (
            n_columns is not None and not -n_columns - 1 <= column <= n_columns
        ):
            raise InputError(f"{path}: not a usable model: its label column is {column!r}")
        if separator is not None and not (isinstance(separator, str) and 0 < len(separator) <= 100):
            raise InputError(
                f"{path}: not a usable model: its separator is {str(separator)[:40]!r}, expected 1 to 100 characters"
            )
        return form


class Tagger(NamedTuple):
    """A model of this package or of another toolkit."""

    crf: "CRF"
    toolkit: str  # whose file it is
    form: FileForm

    @property
    def n_inputs(self) -> int | None:
        """Columns that a position has; None: it has attributes."""
        return self.crf.encoder_.least_columns

    @property
    def more_columns(self) -> bool:
        """Whether rows may have more than `n_inputs`, and each another number of them."""
        return self.crf.encoder_.more_columns


columns_option = click.option(
    "--columns",
    type=click.IntRange(min=1),
    metavar="N",
    help="Input columns of each row, for a model of CRF++ or Wapiti.  [default: any number, as these tools do]",
)


def is_type(path: Path, name: str) -> bool:
    """Whether a model file holds an estimator of this type; loading it reports what is wrong with it."""
    from crfkit.models import model_type

    try:
        return model_type(path) == name
    except InputError:
        return False


def is_model(path: Path) -> bool:
    """Whether a file is a model file of this package."""
    from crfkit.models import model_type

    try:
        return bool(model_type(path))
    except InputError:
        return False


def describe_use(model: object) -> str:
    """What a model is, and which commands are for it."""
    return _USES[type(model).__name__]


def read_model(
    path: Path,
    n_columns: int | None = None,
    encoding: str = "utf-8",
    resources: "Mapping[str, Resource] | None" = None,
) -> Tagger:
    """Opens a model file, whose first bytes tell the toolkit.

    `n_columns` is for models whose rows may have more columns than they read, `encoding` for those of CRF++, `resources` for
    those of this package.
    """
    from crfkit.compat import MAGIC, read_crfpp, read_crfsuite, read_wapiti, with_columns
    from crfkit.models import CRF
    from crfkit.pipeline import load

    begins = read_bytes(path, 8) if path.is_file() else b""  # of anything else `load` complains
    toolkit = next((name for name, magic in MAGIC.items() if begins.startswith(magic)), CRFKIT)
    if toolkit == "crf++":
        crf = read_crfpp(path, encoding=encoding)
    elif toolkit == CRFKIT:
        crf = load(path, resources=resources)
    else:
        crf = {CRFSUITE: read_crfsuite, "wapiti": read_wapiti}[toolkit](path)
    if resources and toolkit != CRFKIT:
        raise InputError(f"{path}: --resource was given, but a model of {toolkit} has no resources")
    if not isinstance(crf, CRF):
        raise InputError(f"{path}: {describe_use(crf)}")
    form = FileForm.of(path, crf) if toolkit == CRFKIT else FileForm.default(crf)
    if n_columns is not None:
        try:
            crf = with_columns(crf, n_columns)
        except InputError as error:
            raise InputError(f"{path}: --columns {n_columns}: {error}") from None
    return Tagger(crf, toolkit, form)


def load_tagger(
    path: Path,
    *,
    n_threads: int | None = None,
    n_columns: int | None = None,
    resources: Sequence[str] | None = None,
) -> Tagger:
    """Load a model of this package or of another toolkit that reads columns or attributes."""
    from crfkit.models import kind_of

    tagger = read_model(path, n_columns, resources=open_resources(resources))
    crf = tagger.crf
    if inputs := kind_of(crf.structure).inputs:
        raise InputError(f"{path}: the model reads {inputs}, which no file holds; use it from Python")
    if crf.n_columns_ is None and (crf.features is not None or crf.encoder_.dense_sizes):
        raise InputError(
            f"{path}: the model was trained on features made in Python, not on columns or attributes; use it from Python"
        )
    crf.set_params(n_threads=n_threads)
    return tagger


def read_for_tagger(
    tagger: Tagger,
    path: Input,
    *,
    separator: str | None = None,
    allowed_column: int | None = None,
    labels_required: bool = False,
) -> Iterator[Example]:
    """The sequences of a file that a model is asked about, with the labels that their column of allowed labels allows."""
    n_inputs, (label_column, trained_separator) = tagger.n_inputs, tagger.form
    if n_inputs is None:
        if allowed_column is not None or separator is not None:
            raise InputError(
                "--allowed-column and --separator are for columns, and the model reads attributes"
            )
        return read_attribute_examples(path)
    if tagger.more_columns:
        if allowed_column is not None:
            raise InputError(
                "--allowed-column needs --columns N here: the rows of this model may have any number of columns"
            )
        template = tagger.crf.encoder_.template
        assert template is not None  # what else would have columns
        return read_ragged(
            path,
            n_inputs=n_inputs,
            first_missed=template.first_missed,
            separator=trained_separator if separator is None else separator,
            labelled=labels_required,
        )
    if allowed_column is not None:
        label_column = label_column_among(allowed_column, label_column, n_inputs + 2)
        n_inputs += 1
    examples = read_for_model(
        path,
        n_inputs=n_inputs,
        label_column=label_column,
        separator=separator,
        trained_separator=trained_separator,
        labels_required=labels_required,
    )
    if allowed_column is None:
        return examples
    known = {str(label) for label in tagger.crf.classes_}
    return check_known(take_allowed(examples, allowed_column, label_column), known)
