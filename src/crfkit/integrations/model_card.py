"""Model cards: what a model is, where it comes from and how good it is, with the metadata that the hub reads."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from crfkit.errors import ArgumentError

_USES = {
    "CRF": 'model.predict([["A", "sentence", "as", "a", "list", "of", "words"]])',
    "Parser": 'model.predict(crfkit.data.read_conllu("sentences.conllu"))',
    "TreebankTagger": 'model.predict(crfkit.data.read_conllu("sentences.conllu"))',
    "Lemmatizer": 'model.predict(crfkit.data.read_conllu("sentences.conllu"))',
    "Tokenizer": 'model.predict("Some text. With two sentences.")',
    "Pipeline": 'model("Some text. With two sentences.")',
    "WordSegmenter": 'model.predict(["text without spaces"])',
}
_LISTED = 60  # labels


@dataclass(frozen=True)
class ModelCard:
    """What a model card says; all of it is optional.

    name : what the model is called
    description : what it is for, in Markdown
    language : a code such as "en", or several
    license : of the model, as the hub spells it: "mit", "apache-2.0", "cc-by-sa-4.0"
    datasets : what it was trained on, as the hub names them
    metrics : scores by name, {"f1": 0.87}
    evaluated_on : the data that the scores are of
    tags : more tags for the hub's search
    """

    name: str = "crfkit model"
    description: str = ""
    language: str | Sequence[str] = ()
    license: str | None = None
    datasets: Sequence[str] = ()
    metrics: Mapping[str, float] = field(default_factory=dict)
    evaluated_on: str | None = None
    tags: Sequence[str] = ()

    def __post_init__(self) -> None:
        for name, value in self.metrics.items():
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise ArgumentError(f"metrics has {value!r} for {name!r}, expected a number")

    def to_text(self, config: Mapping[str, Any]) -> str:
        """The card as Markdown with a header of metadata, for a model with this `config.json`."""
        kind = str(config["architectures"][0])
        parts = [
            f"---\n{self._metadata(kind)}---",
            f"# {self.name}",
            self.description.strip()
            or f"A `{kind}` of crfkit: conditional random fields with exact probabilities.",
            self._use(kind),
            self._scores(),
            _labels(config),
            _training(config),
        ]
        return "\n\n".join(part for part in parts if part) + "\n"

    def _metadata(self, kind: str) -> str:
        """YAML; every value is written as JSON, which YAML reads as it is."""
        languages = [self.language] if isinstance(self.language, str) else list(self.language)
        entries: dict[str, Any] = {
            "library_name": "crfkit",
            "pipeline_tag": "token-classification",
            "tags": ["crfkit", "crf", kind, *self.tags],
            "language": languages,
            "license": self.license,
            "datasets": list(self.datasets),
            "metrics": list(self.metrics),
        }
        if self.metrics:
            data = self.evaluated_on or "unknown"
            entries["model-index"] = [
                {
                    "name": self.name,
                    "results": [
                        {
                            "task": {"type": "token-classification"},
                            "dataset": {"name": data, "type": data},
                            "metrics": [
                                {"type": name, "value": value} for name, value in self.metrics.items()
                            ],
                        }
                    ],
                }
            ]
        known = {name: value for name, value in entries.items() if value not in (None, [])}
        return "".join(f"{name}: {json.dumps(value, ensure_ascii=False)}\n" for name, value in known.items())

    def _use(self, kind: str) -> str:
        lines = [
            "import crfkit",
            "from crfkit.integrations.hub import from_pretrained",
            "",
            'model = from_pretrained("this folder, or the name of this repository")',
            _USES.get(kind, "model"),
        ]
        return "## Use\n\n```python\n" + "\n".join(lines) + "\n```"

    def _scores(self) -> str:
        if not self.metrics:
            return ""
        rows = "\n".join(f"| {_cell(name)} | {value:.4g} |" for name, value in self.metrics.items())
        on = "" if self.evaluated_on is None else f" on {self.evaluated_on}"
        return f"## Scores{on}\n\n| metric | value |\n|---|---:|\n{rows}"


def _labels(config: Mapping[str, Any]) -> str:
    labels = list(config.get("id2label", {}).values())
    if not labels:
        return ""
    more = f", and {len(labels) - _LISTED:,} more" if len(labels) > _LISTED else ""
    return f"## Labels\n\n{len(labels):,}: {', '.join(f'`{label}`' for label in labels[:_LISTED])}{more}"


def _training(config: Mapping[str, Any]) -> str:
    rows = [
        *((f"number of {name}", f"{value:,}") for name, value in config.get("sizes", {}).items() if value),
        *config.get("training", {}).items(),
        *config["settings"].items(),
        ("crfkit", config["crfkit_version"]),
    ]
    lines = "\n".join(f"| {_cell(name)} | {_cell(value)} |" for name, value in rows if value is not None)
    return f"## Training\n\n| | |\n|---|---|\n{lines}"


def _cell(value: object) -> str:
    """Text in a table of Markdown: on one line, without columns of its own."""
    return " ".join(str(value).split()).replace("|", "\\|")
