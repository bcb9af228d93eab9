"""`crfkit eval`: how well a model labels, or parses, a file whose labels or trees are known; treebanks compared."""

from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from crfkit.cli.columns import Example, check_labels
from crfkit.cli.constraints import allowed_column_option, allowed_of, is_possible, name_places
from crfkit.cli.model_input import columns_option, is_model, load_tagger, read_for_tagger
from crfkit.cli.options import quiet_option, separator_option, threads_option
from crfkit.cli.parse import is_parser, load_parser
from crfkit.cli.pipeline import evaluate as evaluate_pipeline
from crfkit.cli.pipeline import is_pipeline, load_pipeline
from crfkit.cli.progress import Display
from crfkit.cli.resources import resource_option
from crfkit.cli.spans import DECODINGS
from crfkit.cli.streams import open_input
from crfkit.cli.tag import BATCH
from crfkit.cli.treebank_tags import evaluate_tagger, is_treebank_tagger
from crfkit.cli.words import evaluate_file, is_segmenter
from crfkit.data import number_lines, read_conllu
from crfkit.errors import InputError

if TYPE_CHECKING:
    from crfkit.data import Sentence
    from crfkit.evaluation import Evaluation, TreeReport
    from crfkit.models import CRF, Parser
    from crfkit.structures import Span


LEAST = 0.01  # probability of the spans that are counted
_CONFUSION = "confusion table (gold down, predicted across):"


def evaluate(
    model: "CRF",
    examples: Iterable[Example],
    *,
    allow_unknown: bool = False,
    decode: str | None = None,
    scored: "tuple[list[list[str]], list[list[Span]]] | None" = None,
) -> "Evaluation":
    """Compare the labels of a file with those that the model gives.

    A label that the model does not know is refused; `allow_unknown` counts it as one that the model gets wrong. Where the
    model or the file has constraints, a tag dictionary among them, the sequences are counted whose labels they exclude, and
    the positions whose label they exclude. `decode` as for `CRF.predict`; expected F1 is that of the whole file. `scored`
    gets the labels of the file, and the spans of each sequence with their probabilities.
    """
    from crfkit.evaluation import evaluate as compare
    from crfkit.models import find_states
    from crfkit.structures import Bigrams

    known = {str(label): label for label in model.classes_}
    gold: list[list[str]] = []
    predicted: list[list[str]] = []
    possible: list[bool] = []
    n_impossible = 0
    chain = model.structure_.chain
    bigrams = chain.bigrams  # of labels or their states: a structure may have others
    if not isinstance(bigrams, Bigrams) or not chain.constrained:
        bigrams = None
    constrained = bigrams is not None or bool(model.tag_dictionary)
    examples = iter(examples)
    while chunk := list(islice(examples, None if decode == "f1" else BATCH)):
        if not allow_unknown:
            for example in chunk:
                check_labels(example, known, "the model does not know the label")
        gold += (example.labels or [] for example in chunk)
        allowed = allowed_of(chunk, model.classes_)
        constrained = constrained or allowed is not None
        with name_places(chunk):
            X = [example.inputs for example in chunk]
            found = model.predict(X, decode=decode, allowed=allowed)
            if scored is not None:
                scored[1].extend(model.predict_spans(X, LEAST, allowed=allowed))
        predicted += ([str(label) for label in labels] for labels in found)
        if constrained:
            y = [[known.get(label, label) for label in example.labels or ()] for example in chunk]
            outside = [int(one.sum()) for one in model.find_impossible(X, y, allowed=allowed)]
            n_impossible += sum(outside)
            possible += (
                not n and is_possible(example, find_states(model, labels), bigrams)
                for n, example, labels in zip(outside, chunk, y, strict=True)
            )
    if scored is not None:
        scored[0].extend(gold)
    if not constrained:
        return compare(gold, predicted)
    return compare(gold, predicted, possible=possible, n_impossible=n_impossible)


def evaluate_parser(parser: "Parser", sentences: "Iterable[Sentence]") -> "TreeReport":
    """Compare the trees of a file with those that the parser gives; heads that go round in a circle are refused."""
    from crfkit.data import check_tree
    from crfkit.evaluation import evaluate_trees

    gold: list[Sentence] = []
    predicted: list[Sentence] = []
    sentences = iter(sentences)
    while chunk := list(islice(sentences, BATCH)):
        for sentence in chunk:
            check_tree(sentence, single_root=False)
        gold += chunk
        predicted += parser.predict(chunk)
    return evaluate_trees(gold, predicted)


def is_treebank(path: Path) -> bool:
    """Whether the first line of a file that is no comment has the ten columns of CoNLL-U."""
    try:
        lines = (line for _, line in number_lines(path) if line.strip() and not line.startswith("#"))
        return next(lines, "").count("\t") == 9
    except InputError:  # no text, or no file; loading it as a model reports what is wrong
        return False


@click.command("eval", short_help="Compare a model's labels, or trees, with those of a file.")
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("file", type=str)
@separator_option
@threads_option
@click.option("--allow-unknown", is_flag=True, help="Count labels that the model does not know as errors.")
@click.option(
    "--confusion",
    default=20,
    show_default=True,
    type=click.IntRange(min=0),
    help="Labels in the confusion table, or relations in that of a parser; 0: none.",
)
@click.option(
    "--spans",
    is_flag=True,
    help="Add precision and recall of spans over a threshold of their probability, and their calibration, from 0.01 on.",
)
@click.option(
    "--decode",
    type=click.Choice(DECODINGS),
    help="How to choose the labels that are compared: the best ones of a sequence together, each by its own probability "
    "(marginal), those of likely spans (spans), or of the spans with the highest expected F1.  [default: as the model says]",
)
@allowed_column_option
@columns_option
@resource_option
@quiet_option
def command(model: Path, file: str, threads: int | None, confusion: int, quiet: bool, **columns: Any) -> None:
    """Label FILE with MODEL and report how many labels, and which spans, are right.

    Spans (labels such as B-NP and I-NP) are counted as conlleval counts them. Where MODEL is a parser, FILE is a treebank
    (CoNLL-U), and arcs are counted as in the CoNLL-2018 shared task. Where it is a tagger of treebanks, the tags of FILE
    (CoNLL-U) are compared, over all words, those of the training set and all others. Where it is a word segmenter, FILE has
    a word and its fields on each line, and EOS or a blank line after each sentence. Where it is a pipeline, it analyses the
    text of FILE (CoNLL-U), as `crfkit pipeline eval` does.

    Where MODEL is a treebank (CoNLL-U) itself, it is the gold one, and FILE what some system made of its text: tokens,
    sentences, tags, lemmas and trees are compared as in the CoNLL-2018 shared task.
    """
    with Display(quiet=quiet) as display:
        display.stage(f"loading {model}")
        if is_treebank(model):
            report, table = _treebank_report(model, file, columns, display), ""
        elif is_parser(model):
            report, table = _tree_report(model, file, threads, confusion, columns, display)
        elif is_treebank_tagger(model):
            found = evaluate_tagger(model, file, display, {"threads": threads, **columns})
            report, table = str(found), f"{_CONFUSION}\n{found.confusion.table(confusion)}"
        elif is_pipeline(model):
            report, table = _pipeline_report(model, file, threads, columns, display), ""
        elif is_segmenter(model):
            report, table = str(evaluate_file(model, file, display, {"threads": threads, **columns})), ""
        else:
            report, table = _label_report(model, file, threads, confusion, display, **columns)
    click.echo(report)
    if confusion and table:
        click.echo(f"\n{table}")


def _label_report(
    model: Path,
    file: str,
    threads: int | None,
    confusion: int,
    display: Display,
    separator: str | None,
    allow_unknown: bool,
    allowed_column: int | None,
    columns: int | None,
    spans: bool,
    decode: str | None,
    resources: Sequence[str] | None,
) -> tuple[str, str]:
    """The report on labels, and the table of confusions."""
    from crfkit.evaluation import span_calibration, span_precision_recall

    tagger = load_tagger(model, n_threads=threads, n_columns=columns, resources=resources)
    examples = read_for_tagger(
        tagger, file, separator=separator, allowed_column=allowed_column, labels_required=True
    )
    display.stage(f"tagging {file}", "sequences")
    scored: tuple[list[list[str]], list[list[Span]]] | None = ([], []) if spans else None
    examples = display.count(examples)
    report = evaluate(tagger.crf, examples, allow_unknown=allow_unknown, decode=decode, scored=scored)
    text = str(report)
    if scored is not None:
        text += f"\n\n{span_precision_recall(*scored)}\n\n{span_calibration(*scored)}"
    return text, f"{_CONFUSION}\n{report.confusion.table(confusion)}"


def _tree_report(
    model: Path,
    file: str,
    threads: int | None,
    n_relations: int,
    columns: dict[str, Any],
    display: Display,
) -> tuple[str, str]:
    """The report on trees, and the table of relations."""
    others = {name: value for name, value in columns.items() if name != "resources"}
    _refuse_column_options(others, f"{model} is a parser")
    parser = load_parser(model, n_threads=threads, resources=columns["resources"])
    display.stage(f"parsing {file}", "sentences")
    report = evaluate_parser(parser, display.count(read_conllu(open_input(file))))
    return str(report), report.table(n_relations)


def _treebank_report(gold: Path, file: str, columns: dict[str, Any], display: Display) -> str:
    """The table of the CoNLL-2018 shared task."""
    from crfkit.evaluation import evaluate_treebank

    _refuse_column_options(columns, f"{gold} is a treebank")
    if file != "-" and is_model(Path(file)):
        raise InputError(
            f"{file} is a model, and {gold} a treebank: expected the model first, crfkit eval MODEL FILE"
        )
    display.stage(f"reading {file}", "sentences")
    system = file if file != "-" else list(display.count(read_conllu(open_input(file))))
    return str(evaluate_treebank(gold, system))


def _pipeline_report(
    model: Path, file: str, threads: int | None, columns: dict[str, Any], display: Display
) -> str:
    """The table of the CoNLL-2018 shared task, from raw text on."""
    resources = columns["resources"]
    _refuse_column_options(columns | {"resources": None}, f"{model} is a pipeline")
    pipeline = load_pipeline(model, threads, resources)
    display.stage(f"analysing {file}")
    return str(evaluate_pipeline(pipeline, list(read_conllu(open_input(file))), from_text=True))


def _refuse_column_options(columns: dict[str, Any], reason: str) -> None:
    for name, value in columns.items():
        if value is not None and value is not False:
            option = "--" + name.replace("_", "-")
            raise InputError(f"{option} is about files of columns and labels, but {reason}")
