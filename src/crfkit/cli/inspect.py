"""`crfkit inspect`: what is in a model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from crfkit.cli.streams import open_output

if TYPE_CHECKING:
    from crfkit.models import CRF
    from crfkit.structures import Chain, Patterns


def describe(model: CRF, n_features: int = 10) -> dict[str, Any]:
    """Labels, heaviest features, arcs, sizes and settings of a model, as JSON values."""
    from crfkit.models import (
        arc_weights,
        heaviest_arc_features,
        heaviest_features,
        heaviest_outputs,
        heaviest_patterns,
    )

    feature_map = model.feature_map_
    n_patterns = len(model.pattern_names_)
    return {
        "labels": [str(label) for label in model.classes_],
        "sizes": {
            "features": model.n_features_,
            "weights": len(model.weights_),
            "state weights": feature_map.n_pairs,
            "dense weights": feature_map.arcs_begin - feature_map.n_pairs,
            "arc weights": feature_map.triples_begin - feature_map.arcs_begin,
            "arc feature weights": feature_map.n_weights - feature_map.triples_begin,
            "feature function weights": len(model.weights_) - feature_map.n_weights - n_patterns,
            "pattern weights": n_patterns,
        },
        "settings": {name: _plain(value) for name, value in model.get_params(deep=False).items()},
        "training": {
            "iterations": model.n_iter_,
            "stopped because": model.stop_reason_,
            "objective": model.history_[-1].objective if model.history_ else None,
        },
        "heaviest features": {
            str(label): [[name, weight] for name, weight in heaviest_features(model, label, n_features)]
            for label in model.classes_
        },
        "heaviest arc features": [
            [feature, str(before), str(after), weight]
            for feature, before, after, weight in heaviest_arc_features(model, n_features)
        ],
        "heaviest outputs": [[name, weight] for name, weight in heaviest_outputs(model, n_features)],
        "heaviest patterns": [[name, weight] for name, weight in heaviest_patterns(model, n_features)],
        "arcs": [[_plain(before), _plain(after), weight] for before, after, weight in arc_weights(model)],
        "bigrams": _bigrams(model.structure_),
    }


def trellises_on(model: Path, file: Path) -> dict[str, Any]:
    """How large the trellises of the sequences of a file are, as JSON values."""
    import numpy as np

    from crfkit.cli.taggers import load_tagger, read_for_tagger
    from crfkit.models import trellis_sizes

    tagger = load_tagger(model)
    examples = list(read_for_tagger(tagger, str(file)))
    sizes = trellis_sizes(tagger.crf, [example.inputs for example in examples])
    states, sparsity = (
        np.concatenate(parts) for parts in zip(*((s.states, s.sparsity) for s in sizes), strict=True)
    )
    return {
        "sequences": len(sizes),
        "sites": len(states),
        "states of a site": float(states.mean()),
        "states of a site at most": int(states.max()),
        "arcs of a site": sum(int(size.arcs.sum()) for size in sizes) / len(states),
        "sparsity (kappa)": float(sparsity.mean()),
    }


def _bigrams(chain: Chain | Patterns) -> dict[str, Any] | None:
    """The pairs of labels that exist, START and END as None, and their picture; None: all."""
    from crfkit.structures import END, START, Bigrams

    if not isinstance(chain.bigrams, Bigrams):
        return None
    pairs = [[None if label in (START, END) else _plain(label) for label in pair] for pair in chain.bigrams]
    return {"unseen": chain.unseen, "pairs": pairs, "picture": str(chain.bigrams)}


def _plain(value: Any) -> Any:
    return value if value is None or isinstance(value, str | int | float | dict) else str(value)


def as_text(description: dict[str, Any], n_arcs: int = 20) -> str:
    """The description for people."""
    lines = [f"labels ({len(description['labels'])}): {' '.join(description['labels'])}", ""]
    for title in ("sizes", "training", "settings"):
        lines.append(title)
        lines += (f"  {name}: {_short(value)}" for name, value in description[title].items())
        lines.append("")
    if description["heaviest outputs"]:
        lines.append("heaviest outputs of feature functions")
        lines += (f"  {weight:+9.4f}  {name}" for name, weight in description["heaviest outputs"])
    else:
        lines.append("heaviest features")
        for label, features in description["heaviest features"].items():
            lines.append(f"  {label}")
            lines += (f"    {weight:+9.4f}  {name}" for name, weight in features)
    if description["heaviest arc features"]:
        lines += ["", "heaviest features on arcs"]
        for name, before, after, weight in description["heaviest arc features"]:
            lines.append(f"  {weight:+9.4f}  {before} → {after}  {name}")
    if description["heaviest patterns"]:
        lines += ["", "heaviest patterns"]
        lines += (f"  {weight:+9.4f}  {name}" for name, weight in description["heaviest patterns"])
    if "trellises" in description:
        lines += ["", "trellises"]
        lines += (f"  {name}: {_size(value)}" for name, value in description["trellises"].items())
    lines += ["", f"heaviest arcs (of {len(description['arcs'])})"]
    for before, after, weight in description["arcs"][:n_arcs]:
        lines.append(f"  {weight:+9.4f}  {before or '(start)'} → {after or '(end)'}")
    if description["bigrams"] is not None:
        others = (
            "others exist too, without weights"
            if description["bigrams"]["unseen"] == "soft"
            else "no others exist"
        )
        lines += ["", f"bigrams, label before down, label after across; {others}"]
        lines += (f"  {line}" for line in description["bigrams"]["picture"].splitlines())
    return "\n".join(lines)


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
    help="Features to show for each label, and on arcs.",
)
@click.option(
    "--on",
    type=click.Path(path_type=Path),
    help="A file to show the sizes of trellises on, for a model with patterns.",
)
@click.option("--json", "as_json", is_flag=True, help="Write JSON, with all arcs.")
def command(model: Path, top: int, on: Path | None, as_json: bool) -> None:
    """Show what MODEL has learnt."""
    from crfkit.cli.taggers import read_model

    description = describe(read_model(model)[0], top)
    if on is not None:
        description["trellises"] = trellises_on(model, on)
    if not as_json:
        click.echo(as_text(description))
        return
    with open_output(None) as stream:
        stream.write(json.dumps(description, ensure_ascii=False, indent=2) + "\n")
