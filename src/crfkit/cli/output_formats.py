"""What `crfkit tag` writes: labels as columns beside the input, or as crf_test, wapiti label and crfsuite tag write them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import IO, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from crfkit.cli.columns import Example
from crfkit.data import write_columns
from crfkit.errors import InputError


class Details(NamedTuple):
    """What is to be written beside labels."""

    nbest: int | None = None  # how many label sequences; None: the best, without its rank
    marginals: bool = False  # the probability of each label that is written
    all_marginals: bool = False  # that of every label
    probability: bool = False  # that of each label sequence
    labels_only: bool = False  # no input columns
    reference: bool = False  # the label that the file gives, before the one that is found; in CRFsuite's form
    scores: bool = False  # that of each label that is written, and of the sequence
    posterior: bool = False  # labels chosen by their marginals, one by one


PLAIN = Details()


class LabelSequence(NamedTuple):
    """One of the best label sequences of a sequence, with what is asked for beside it."""

    labels: list[Any]  # [T]
    score: float | None = None  # the sum of `scores`, or where these are probabilities their product
    log_partition: float | None = None  # log Z
    probability: float | None = None
    scores: npt.NDArray[np.float64] | None = None  # [T]
    rank: int = 1
    marginals: npt.NDArray[np.float64] | None = None  # [T, L]
    columns: Mapping[str, int] = MappingProxyType({})  # label → its column in the marginals

    def marginal(self, position: int) -> float:
        """The probability of the label of a position."""
        assert self.marginals is not None
        return float(self.marginals[position, self.columns[self.labels[position]]])

    def all_marginals(self, position: int) -> Iterator[tuple[str, float]]:
        """Every label, with its probability at a position."""
        assert self.marginals is not None
        return zip(self.columns, self.marginals[position].tolist(), strict=True)


Writer = Callable[[Example, LabelSequence, Details, IO[str]], None]


def write_column_form(example: Example, found: LabelSequence, details: Details, output: IO[str]) -> None:
    """The input columns, the label, and its probability; `# rank probability` before each of several label sequences."""
    more: list[list[str]] = [[label] for label in found.labels]
    for position, columns in enumerate(more):
        if details.scores and found.scores is not None:
            columns.append(f"{found.scores[position]:.6f}")
        if details.marginals:
            columns.append(f"{found.marginal(position):.6f}")
        if details.all_marginals:
            columns += (f"{label}/{p:.6f}" for label, p in found.all_marginals(position))
    comments, separator = list(example.origin.comments), example.origin.separator
    about = [f"{found.rank}"] if details.nbest is not None else []
    if details.nbest is not None or details.probability:
        about.append(f"{found.probability:.6f}")
    if details.scores:
        about.append(f"{found.score:.6f}")
    if about:
        comments.append(f"# {' '.join(about)}")
    rows = [(*row, *columns) for row, columns in zip(_inputs(example, details), more, strict=True)]
    write_columns(rows, output, comments=comments, separator=separator)


def write_crfpp_form(example: Example, found: LabelSequence, details: Details, output: IO[str]) -> None:
    """As `crf_test` writes; --marginals is its -v1, --all-marginals its -v2."""
    verbose = details.marginals or details.all_marginals
    if details.nbest is not None:
        output.write(f"# {found.rank - 1} {found.probability:f}\n")
    elif details.probability:
        output.write(f"# {found.probability:f}\n")
    for position, (row, label) in enumerate(zip(_inputs(example, details), found.labels, strict=True)):
        columns = [*row, f"{label}/{found.marginal(position):f}" if verbose else label]
        if details.all_marginals:
            columns += (f"{other}/{p:f}" for other, p in found.all_marginals(position))
        output.write("\t".join(columns) + "\n")
    output.write("\n")


def write_wapiti_form(example: Example, found: LabelSequence, details: Details, output: IO[str]) -> None:
    """As `wapiti label` writes; --scores is its -s, --posterior its -p; --marginals writes probabilities for scores."""
    if details.scores:
        output.write(f"# {found.rank - 1} {found.score:f}\n")
    elif details.probability:
        output.write(f"# {found.rank - 1} {found.probability:f}\n")
    origin = example.origin
    lines = () if details.labels_only else origin.lines or [origin.separator.join(row) for row in origin.rows]
    for position, label in enumerate(found.labels):
        columns = [lines[position], label] if lines else [label]
        if details.scores and found.scores is not None:
            columns.append(f"{label}/{found.scores[position]:f}")
        elif details.marginals:
            columns.append(f"{label}/{found.marginal(position):f}")
        output.write("\t".join(columns) + "\n")
    output.write("\n")


def write_crfsuite_form(example: Example, found: LabelSequence, details: Details, output: IO[str]) -> None:
    """As `crfsuite tag` writes: labels alone; --reference is its -r, --probability its -p, --marginals its -i,
    --all-marginals its -l.
    """
    if details.probability or details.nbest is not None:
        if found.log_partition is not None:
            output.write(f"@score\t{found.score:f}\t{found.log_partition:f}\n")
        output.write(f"@probability\t{found.probability:f}\n")
    for position, label in enumerate(found.labels):
        fields = [f"{label}:{found.marginal(position):f}" if details.marginals else label]
        if details.reference:
            fields.insert(0, example.labels[position] if example.labels else "")
        if details.all_marginals:
            fields += (f"{other}:{p:f}" for other, p in found.all_marginals(position))
        output.write("\t".join(fields) + "\n")
    output.write("\n")


FORMS: dict[str, Writer] = {
    "columns": write_column_form,
    "crf++": write_crfpp_form,
    "wapiti": write_wapiti_form,
    "crfsuite": write_crfsuite_form,
}


def writer_of(
    form: str | None, *, attributes: bool, details: Details, local: bool = False
) -> tuple[Writer, Details]:
    """The writer of a form, and all that it writes; without a form, columns, or for attributes CRFsuite's form.

    The tools of CRF++ and Wapiti write the probability of a label sequence whenever they write those of labels. Wapiti
    has no posterior decoding of models that are normalised at each position, and takes no notice of its -p there.
    """
    name = form or ("crfsuite" if attributes else "columns")
    if attributes and name != "crfsuite" and not details.labels_only:
        raise InputError(
            f"--format {name} writes input columns, and the model reads attributes: add --labels-only"
        )
    if details.reference and name != "crfsuite":
        raise InputError(f"--reference is for --format crfsuite: {name} writes all columns of the file")
    if details.scores and name not in ("columns", "wapiti"):
        raise InputError(
            f"--scores is for --format columns and --format wapiti: {name} has no place for them"
        )
    if details.scores and details.marginals and name == "wapiti":
        raise InputError(
            "--scores and --marginals stand in the same place of --format wapiti: give one of them"
        )
    if local and name == "wapiti":
        details = details._replace(posterior=False)
    if name in ("crf++", "wapiti") and (details.marginals or (name == "crf++" and details.all_marginals)):
        details = details._replace(probability=True)
    return FORMS[name], details


def _inputs(example: Example, details: Details) -> Sequence[tuple[str, ...]]:
    """The columns of each position as they stand in the file."""
    return [()] * len(example.inputs) if details.labels_only else example.origin.rows
