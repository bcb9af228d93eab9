"""`crfkit inspect`: what is in a model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from crfkit.models import CRF
    from crfkit.structures import Chain, Patterns


def describe(model: CRF, n_features: int = 10) -> dict[str, Any]:
    """Labels, heaviest features, arcs, sizes and settings of a model, as JSON values."""
    from crfkit.models import arc_weights, heaviest_arc_features, heaviest_features, heaviest_outputs

    feature_map = model.feature_map_
    return {
        "labels": [str(label) for label in model.classes_],
        "sizes": {
            "features": model.n_features_,
            "weights": len(model.weights_),
            "state weights": feature_map.n_pairs,
            "dense weights": feature_map.arcs_begin - feature_map.n_pairs,
            "arc weights": feature_map.triples_begin - feature_map.arcs_begin,
            "arc feature weights": feature_map.n_weights - feature_map.triples_begin,
            "feature function weights": len(model.weights_) - feature_map.n_weights,
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
        "arcs": [[_plain(before), _plain(after), weight] for before, after, weight in arc_weights(model)],
        "bigrams": _bigrams(model.structure_),
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
@click.option("--json", "as_json", is_flag=True, help="Write JSON, with all arcs.")
def command(model: Path, top: int, as_json: bool) -> None:
    """Show what MODEL has learnt."""
    from crfkit.models import load

    description = describe(load(model), top)
    click.echo(json.dumps(description, ensure_ascii=False, indent=2) if as_json else as_text(description))
