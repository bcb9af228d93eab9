"""The label configuration of a Label Studio project: which control gives labels to which text."""

import xml.etree.ElementTree as ET
from dataclasses import dataclass, field
from typing import Any

from crfkit.serve.errors import bad_value, unanswerable

LONGEST = 200_000  # characters of a configuration


@dataclass(frozen=True)
class LabelConfig:
    """`<Labels name="label" toName="text">` for `<Text name="text" value="$text"/>`, and the labels between them."""

    from_name: str = "label"
    to_name: str = "text"
    key: str | None = None  # of the task's data that has the text; None: the first text there
    to_project: dict[str, str] = field(default_factory=dict)  # label of the model → of the project
    to_model: dict[str, str] = field(default_factory=dict)  # and back

    @classmethod
    def parse(cls, config: Any) -> "LabelConfig":
        """Read the configuration; RequestError where it is none, or has no labels for a text."""
        if config is None or config == "":
            return cls()
        if (
            not isinstance(config, str)
            or len(config) > LONGEST
            or "<!DOCTYPE" in config
            or "<!ENTITY" in config
        ):
            raise bad_value("label_config is no label configuration")
        try:
            root = ET.fromstring(config)
        except (ET.ParseError, ValueError, RecursionError):
            raise bad_value("label_config is no XML") from None
        texts = {node.get("name"): node.get("value", "") for node in root.iter("Text")}
        for control in root.iter("Labels"):
            if control.get("toName") in texts:
                return cls._of(control, texts[control.get("toName")])
        raise unanswerable("label_config has no <Labels> for a <Text>, which is what this server answers for")

    @classmethod
    def _of(cls, control: ET.Element, value: str) -> "LabelConfig":
        to_project: dict[str, str] = {}
        to_model: dict[str, str] = {}
        for node in control.iter("Label"):
            label = node.get("value", "")
            others = [name.strip() for name in node.get("predicted_values", "").split(",")]
            for name in (*filter(None, others), label):
                to_project.setdefault(name.casefold(), label)
            to_model[label] = next(filter(None, others), label)
        key = value.removeprefix("$") or None
        return cls(control.get("name", ""), control.get("toName", ""), key, to_project, to_model)

    def text_of(self, task: Any, n: int) -> str:
        """The text of a task."""
        data = task.get("data") if isinstance(task, dict) else None
        if not isinstance(data, dict):
            raise bad_value(f"task {n} has no data")
        if self.key is None:
            found = next((value for value in data.values() if isinstance(value, str)), None)
        else:
            found = data.get(self.key)
        if not isinstance(found, str):
            raise bad_value(f"task {n}: its data have no text {self.key or ''}".rstrip())
        return found

    def project_label(self, label: str) -> str:
        """What the project calls a label of the model: as `predicted_values` says, or the same but for capitals."""
        return self.to_project.get(label.casefold(), label)

    def model_label(self, label: str, known: list[str]) -> str:
        """What the model calls a label of the project; one that it does not know is new."""
        found = self.to_model.get(label, label)
        return next((name for name in known if name.casefold() == found.casefold()), found)
