"""A report on a trained model as one HTML file."""

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from crfkit.errors import ArgumentError, EmptyDataError, UnsupportedError
from crfkit.features import check_sentences
from crfkit.models import CRF, Parser, check_writable, replacing
from crfkit.pipeline import TagColumns, TreebankTagger
from crfkit.report.label_report import label_page
from crfkit.report.learning_curve import pick
from crfkit.report.options import ReportOptions
from crfkit.report.page import Page, check_packages
from crfkit.report.tree_report import tree_page
from crfkit.report.words import KnownWords


def write_report(
    model: CRF[Any] | Parser | TreebankTagger,
    X: Sequence[Any],
    y: Sequence[Any] | None,
    path: str | os.PathLike[str],
    *,
    title: str | None = None,
    name: str = "model",
    test_name: str = "test data",
    against: Any = None,
    against_name: str = "other model",
    train: Any = None,
    learning_curve: Any = None,
    words: Sequence[Sequence[str]] | None = None,
    allowed: Any = None,
    allow_unknown: bool = False,
    n_errors: int = 200,
    n_explanations: int = 40,
    n_samples: int = 10_000,
    seed: int = 0,
    progress: Callable[[str], None] | None = None,
) -> None:
    """Test a model on X and y, and write what there is to see to one HTML file that needs no network.

    For a `Parser` or a `TreebankTagger`, X are sentences with trees or tags, and y is None.

    - `title`, `name`, `test_name`: what the page calls itself, the model and the test data
    - `against`: another trained model, or its predictions on X, to compare with; `against_name`: what to call it
    - `train`: (X, y), or sentences, of the training set, whose words are known. Without it, words are known that have a
      feature of their own in the model
    - `learning_curve`: (X, y), or sentences: models are trained on growing parts of it, which takes about as long as
      training the model twice
    - `words`: texts to show for the positions of X, where these are features
    - `allowed`: the labels that each position allows, as in `CRF.predict`
    - `allow_unknown`: count labels that the model does not know as errors, instead of raising `LabelError`
    - `n_errors`, `n_explanations`: how many errors to list, and how many of these to explain
    - `n_samples`, `seed`: samples of the paired bootstrap, and the seed of all that is drawn
    - `progress`: called with the name of each stage

    MissingPackageError without Jinja2 and Matplotlib, which the extra `report` installs.
    """
    check_packages()
    check_writable(path)
    options = ReportOptions(
        title,
        name,
        test_name,
        against,
        against_name,
        train,
        learning_curve,
        words,
        allowed,
        allow_unknown,
        n_errors,
        n_explanations,
        n_samples,
        seed,
    )
    page = _page(model, X, y, options, progress or (lambda stage: None))
    text = page.html().encode("utf-8", "replace")
    with replacing(path) as stream:
        stream.write(text)


def _page(model: Any, X: Any, y: Any, options: ReportOptions, progress: Callable[[str], None]) -> Page:
    if isinstance(model, CRF):
        if y is None:
            raise ArgumentError("write_report: y is None, expected the gold labels of X")
        return label_page(model, X, y, options, progress)
    if y is not None and isinstance(model, Parser | TreebankTagger):
        raise ArgumentError(
            f"write_report: the sentences of a {type(model).__name__} have their answers, expected y=None"
        )
    if isinstance(model, Parser):
        return tree_page(model, X, options, progress)
    if isinstance(model, TreebankTagger):
        return _tagger_page(model, X, options, progress)
    raise UnsupportedError(
        f"there is no report for a model of type {type(model).__name__}, expected a CRF, a Parser or a TreebankTagger"
    )


def _tagger_page(
    tagger: TreebankTagger, X: Any, options: ReportOptions, progress: Callable[[str], None]
) -> Page:
    """The report on the labels of its `CRF`; sentences in which a tag is not known are left out."""
    columns = TagColumns.parse(tagger.tag)
    given = check_sentences(X)
    whole = [n for n, sentence in enumerate(given) if all(map(columns.is_complete, sentence.words))]
    if not whole:
        raise EmptyDataError(
            f"no sentence has the column {str(columns).upper()} of all its words, expected gold tags"
        )
    notes = [f"The labels are {str(columns).upper()}."]
    if left := len(given) - len(whole):
        are = "sentence is" if left == 1 else "sentences are"
        notes.append(f"{left:,} {are} left out, in which a tag is not known.")
    kept = pick(given, whole)
    changes: dict[str, Any] = {
        "allow_unknown": True,
        "notes": tuple(notes),
        "train": None,
        "learning_curve": _labelled(columns, options.learning_curve),
    }
    if options.against is not None:
        other = pick(options.predictions_of_other(given), whole)
        changes["against"] = [list(map(columns.join, sentence.words)) for sentence in other]
    known = KnownWords(tagger.known_forms_.__contains__, "words of the training set")
    model = tagger.crf_.set_params(n_threads=tagger.n_threads)
    _, tags = _labelled(columns, kept)
    return label_page(model, tagger.positions(kept), tags, replace(options, **changes), progress, known)


def _labelled(columns: TagColumns, sentences: Any) -> Any:
    """Forms and tags of sentences; None where there are none."""
    if sentences is None:
        return None
    return (
        [[word.form for word in sentence.words] for sentence in sentences],
        [list(map(columns.join, sentence.words)) for sentence in sentences],
    )
