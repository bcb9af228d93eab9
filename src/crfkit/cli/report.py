"""`crfkit report`: what a model gets right and wrong on a file, as one page to look at."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from crfkit.cli.columns import Example, check_labels
from crfkit.cli.constraints import allowed_column_option, allowed_of, name_places
from crfkit.cli.model_input import columns_option, describe_use, load_tagger, read_for_tagger
from crfkit.cli.options import quiet_option, separator_option, threads_option
from crfkit.cli.parse import is_parser, load_parser
from crfkit.cli.progress import Display
from crfkit.cli.resources import resource_option
from crfkit.cli.streams import check_output, open_input
from crfkit.cli.treebank_tags import is_treebank_tagger, load_treebank_tagger
from crfkit.data import check_tree, read_conllu
from crfkit.errors import EmptyDataError, InputError

if TYPE_CHECKING:
    from crfkit.data import Sentence
    from crfkit.models import CRF

_WITH_REPORT = ("CRF", "Parser", "TreebankTagger")


class _Columns:
    """Files of columns or attributes, as a model reads them."""

    def __init__(self, path: Path, options: dict[str, Any]) -> None:
        self.options = options
        self.tagger = load_tagger(
            path,
            n_threads=options["threads"],
            n_columns=options["columns"],
            resources=options["resources"],
        )

    @property
    def model(self) -> "CRF":
        return self.tagger.crf

    def read(self, file: str, display: Display) -> list[Example]:
        """The sequences of a file with their labels."""
        display.stage(f"reading {file}", "sequences")
        options = {name: self.options[name] for name in ("separator", "allowed_column")}
        examples = read_for_tagger(self.tagger, file, labels_required=True, **options)
        return _some(display.count(examples), file)

    def test(self, file: str, display: Display) -> tuple[list[Any], list[Any], Any]:
        """Input, labels and allowed labels of a file."""
        examples = self.read(file, display)
        if not self.options["allow_unknown"]:
            known = {str(label) for label in self.model.classes_}
            for example in examples:
                check_labels(example, known, "the model does not know the label")
        return *_split(examples), allowed_of(examples, self.model.classes_)

    def train(self, file: Path, display: Display) -> tuple[list[Any], list[Any]]:
        """Input and labels of a training file."""
        return _split(self.read(str(file), display))

    def predict(self, file: str, display: Display) -> list[Any]:
        """Labels of the sequences of a test file."""
        examples = self.read(file, display)
        with name_places(examples):
            inputs = [example.inputs for example in examples]
            return self.model.predict(inputs, allowed=allowed_of(examples, self.model.classes_))


class _Treebanks:
    """Treebanks, for parsers and taggers of treebanks."""

    def __init__(self, path: Path, options: dict[str, Any]) -> None:
        if is_parser(path):
            for name in ("separator", "columns", "allowed_column", "allow_unknown"):
                if options[name]:
                    option = "--" + name.replace("_", "-")
                    raise InputError(f"{option} is about files of columns and labels, but {path} is a parser")
            self.model: Any = load_parser(path, n_threads=options["threads"], resources=options["resources"])
            self.has_trees = True
        else:
            self.model = load_treebank_tagger(path, options)
            self.has_trees = False

    def read(self, file: str, display: Display) -> "list[Sentence]":
        """The sentences of a file; those for a parser have trees."""
        display.stage(f"reading {file}", "sentences")
        sentences = _some(display.count(read_conllu(open_input(file))), file)
        if self.has_trees:
            for sentence in sentences:
                check_tree(sentence, single_root=False)
        return sentences

    def test(self, file: str, display: Display) -> tuple[list[Any], None, None]:
        """The sentences of a file."""
        return self.read(file, display), None, None

    def train(self, file: Path, display: Display) -> "list[Sentence]":
        """The sentences of a training file."""
        return self.read(str(file), display)

    def predict(self, file: str, display: Display) -> list[Any]:
        """The sentences of a test file with the trees or tags of the model."""
        found: list[Any] = self.model.predict(self.read(file, display))
        return found


def _some(items: Iterable[Any], file: str) -> list[Any]:
    found = list(items)
    if not found:
        raise EmptyDataError(f"{file}: the file has no sentence, expected some with their labels or trees")
    return found


def _split(examples: list[Example]) -> tuple[list[Any], list[Any]]:
    return [example.inputs for example in examples], [example.labels or [] for example in examples]


def _open(path: Path, options: dict[str, Any]) -> _Columns | _Treebanks:
    """A model with the reader of its files; InputError for a model that has no report."""
    from crfkit.models import model_type
    from crfkit.pipeline import load

    if is_parser(path) or is_treebank_tagger(path):
        return _Treebanks(path, options)
    try:
        kind = model_type(path)
    except InputError:  # of another toolkit, or none; loading it says what is wrong
        kind = "CRF"
    if kind not in _WITH_REPORT:
        raise InputError(f"{path}: there is no report for such a model: {describe_use(load(path))}")
    return _Columns(path, options)


def _open_other(path: Path, options: dict[str, Any], first: _Columns | _Treebanks) -> _Columns | _Treebanks:
    other = _open(path, {**options, "columns": None})
    if type(other.model) is not type(first.model):
        raise InputError(
            f"--against {path}: {describe_use(other.model)}, expected a model of the same type as MODEL"
        )
    return other


@click.command("report", short_help="Write a page on what a model gets right and wrong on a file.")
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("test", type=str)
@click.option(
    "-o", "--output", default="report.html", show_default=True, type=click.Path(), help="The page to write."
)
@click.option(
    "--against",
    type=click.Path(path_type=Path),
    metavar="MODEL2",
    help="Compare with this model: differences, confidence intervals, p values.",
)
@click.option(
    "--train",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="The training file: its words are known.  [default: words with a feature of their own]",
)
@click.option(
    "--learning-curve",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="The training file: train on growing parts of it, as long as training the model twice.",
)
@click.option(
    "--errors",
    default=200,
    show_default=True,
    type=click.IntRange(min=0),
    help="Errors to list.",
)
@click.option(
    "--explanations", default=40, show_default=True, type=click.IntRange(min=0), help="Errors to explain."
)
@click.option(
    "--samples", default=10_000, show_default=True, type=click.IntRange(min=1), help="Samples of --against."
)
@click.option(
    "--seed", default=0, show_default=True, type=click.IntRange(min=0), help="Of all that is drawn."
)
@click.option("--title", help="The title of the page.  [default: the names of both files]")
@click.option("--allow-unknown", is_flag=True, help="Count labels that the model does not know as errors.")
@separator_option
@allowed_column_option
@columns_option
@resource_option
@threads_option
@quiet_option
def command(
    model: Path,
    test: str,
    output: str,
    against: Path | None,
    train: Path | None,
    learning_curve: Path | None,
    quiet: bool,
    title: str | None,
    errors: int,
    explanations: int,
    samples: int,
    seed: int,
    **options: Any,
) -> None:
    """Test MODEL on TEST and write a page: scores, errors, confusions, probabilities, weights.

    TEST has labels, as the training file, or is a treebank (CoNLL-U) where MODEL is a parser or a tagger of treebanks. The
    page is one HTML file that needs no network.
    """
    from crfkit.models import check_writable
    from crfkit.report import check_packages, write_report

    check_packages()
    check_output(output, (model, test, against, train, learning_curve), "the report")
    check_writable(output)
    with Display(quiet=quiet) as display:
        display.stage(f"loading {model}")
        source = _open(model, options)
        other = None if against is None else _open_other(against, options, source)
        X, y, allowed = source.test(test, display)
        given: dict[str, Any] = {
            "train": None if train is None else source.train(train, display),
            "learning_curve": None if learning_curve is None else source.train(learning_curve, display),
            "against": None if other is None else other.predict(test, display),
        }
        write_report(
            source.model,
            X,
            y,
            output,
            progress=display.stage,
            title=title,
            name=model.name,
            test_name=Path(test).name,
            against_name="" if against is None else against.name,
            allowed=allowed,
            allow_unknown=options["allow_unknown"],
            n_errors=errors,
            n_explanations=explanations,
            n_samples=samples,
            seed=seed,
            **given,
        )
        display.say(f"{output}: {Path(output).stat().st_size / 1024:,.0f} KB")
