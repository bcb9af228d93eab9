"""`crfkit inspect`: what is in a model."""

import json
from pathlib import Path
from typing import Any

import click

from crfkit.cli.parse import is_parser, load_parser
from crfkit.cli.pipeline import is_pipeline, load_pipeline
from crfkit.cli.streams import open_output
from crfkit.cli.treebank_tags import is_treebank_tagger, load_treebank_tagger
from crfkit.cli.words import is_segmenter, load_segmenter
from crfkit.errors import InputError


def trellises_on(model: Path, file: Path) -> dict[str, Any]:
    """How large the trellises of the sequences of a file are, as JSON values."""
    import numpy as np

    from crfkit.cli.model_input import load_tagger, read_for_tagger
    from crfkit.models import trellis_sizes

    tagger = load_tagger(model)
    examples = list(read_for_tagger(tagger, str(file)))
    sizes = trellis_sizes(tagger.crf, [example.inputs for example in examples])
    states, sparsity = (
        np.concatenate(parts) for parts in zip(*((s.states, s.sparsity) for s in sizes), strict=True)
    )
    return {
        "sequences": len(sizes),
        "positions": len(states),
        "states of a position": float(states.mean()),
        "states of a position at most": int(states.max()),
        "arcs of a position": sum(int(size.arcs.sum()) for size in sizes) / len(states),
        "sparsity (kappa)": float(sparsity.mean()),
    }


def as_text(description: dict[str, Any], n_transitions: int = 20) -> str:
    """The description for people."""
    names = [kind for kind in ("labels", "states") if kind in description]
    lines = [*(f"{kind} ({len(description[kind])}): {' '.join(description[kind])}" for kind in names), ""]
    if description.get("normalised") == "at each position":
        lines[-1:-1] = ["normalised at each position (maximum entropy Markov model)"]
    for title in ("sizes", "training", "settings"):
        lines.append(title)
        lines += (f"  {name}: {_short(value)}" for name, value in description[title].items())
        lines.append("")
    lines += (
        _of_labels(description)
        if description["type"] == "Parser"
        else _of_sequences(description, n_transitions)
    )
    return "\n".join(lines)


def _of_labels(description: dict[str, Any]) -> list[str]:
    """The weights of a parser, by the label of an arc."""
    lines = ["weights by label: how many, and the square root of the sum of their squares"]
    width = max(map(len, description["labels"]), default=0)
    lines += (
        f"  {label:{width}}  {count:9,}  {norm:9.4f}"
        for label, (count, norm) in description["weights of labels"].items()
    )
    return lines


def _of_sequences(description: dict[str, Any], n_transitions: int) -> list[str]:
    """The weights of a chain: features, patterns, transitions, bigrams."""
    lines = []
    if description["heaviest outputs"]:
        lines.append("heaviest outputs of feature functions")
        lines += (f"  {weight:+9.4f}  {name}" for name, weight in description["heaviest outputs"])
    else:
        lines.append("heaviest features")
        for label, features in description["heaviest features"].items():
            lines.append(f"  {label}")
            lines += (f"    {weight:+9.4f}  {name}" for name, weight in features)
    if description["heaviest transition features"]:
        lines += ["", "heaviest features of transitions"]
        for name, before, after, weight in description["heaviest transition features"]:
            lines.append(f"  {weight:+9.4f}  {before} → {after}  {name}")
    if description["heaviest patterns"]:
        lines += ["", "heaviest patterns"]
        lines += (f"  {weight:+9.4f}  {name}" for name, weight in description["heaviest patterns"])
    if description["heaviest of structure"]:
        lines += ["", "heaviest weights of the structure"]
        lines += (f"  {weight:+9.4f}  {name}" for name, weight in description["heaviest of structure"])
    if "trellises" in description:
        lines += ["", "trellises"]
        lines += (f"  {name}: {_size(value)}" for name, value in description["trellises"].items())
    lines += ["", f"heaviest transitions (of {len(description['transitions'])})"]
    for before, after, weight in description["transitions"][:n_transitions]:
        ends = ("(start)" if before is None else before, "(end)" if after is None else after)
        lines.append(f"  {weight:+9.4f}  {' → '.join(map(str, ends))}")
    if description["bigrams"] is not None:
        others = (
            "others exist too, without weights"
            if description["bigrams"]["unseen"] == "soft"
            else "no others exist"
        )
        lines += ["", f"bigrams, label before down, label after across; {others}"]
        lines += (f"  {line}" for line in description["bigrams"]["picture"].splitlines())
    return lines


def _size(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:.3g}"


def _short(value: object) -> str:
    plain_number = isinstance(value, int) and not isinstance(value, bool)
    text = f"{value:,}" if plain_number else " ".join(str(value).split())
    return text if len(text) <= 100 else f"{text[:97]}…"


@click.command("inspect", short_help="Show labels, features, transitions and settings of a model.")
@click.argument("model", type=click.Path(path_type=Path))
@click.option(
    "--top",
    default=10,
    show_default=True,
    type=click.IntRange(min=0),
    help="Features to show for each label, and of transitions.",
)
@click.option(
    "--on",
    type=click.Path(path_type=Path),
    help="A file to show the sizes of trellises on, for a model with patterns.",
)
@click.option("--json", "as_json", is_flag=True, help="Write JSON, with all transitions.")
def command(model: Path, top: int, on: Path | None, as_json: bool) -> None:
    """Show what MODEL has learnt."""
    from crfkit.cli.model_input import read_model
    from crfkit.models import describe

    if on is not None and is_parser(model):
        raise InputError(f"--on is about models with patterns, but {model} is a parser")
    if is_pipeline(model):
        _show_pipeline(model, on, as_json)
        return
    if is_segmenter(model):
        estimator: Any = load_segmenter(model, {"on": on}).crf_
    elif is_treebank_tagger(model):
        estimator = load_treebank_tagger(model, {"on": on, "threads": None}).crf_
    else:
        estimator = load_parser(model) if is_parser(model) else read_model(model).crf
    description = describe(estimator, top)
    if on is not None:
        description["trellises"] = trellises_on(model, on)
    if not as_json:
        click.echo(as_text(description))
        return
    with open_output(None) as stream:
        stream.write(json.dumps(description, ensure_ascii=False, indent=2) + "\n")


def _show_pipeline(model: Path, on: Path | None, as_json: bool) -> None:
    """The components of a pipeline, and what its treebank had nothing to learn from for."""
    if on is not None:
        raise InputError(f"--on is about models with patterns, but {model} is a pipeline")
    described = load_pipeline(model, None).describe()
    click.echo(json.dumps({"components": described.split("\n")}) if as_json else described)
