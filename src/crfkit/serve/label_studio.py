"""The protocol of Label Studio's ML backends: predictions for tasks, and training from annotations.

The server never calls Label Studio. It knows the text of an annotated task from the event itself, or from the request for
predictions that Label Studio sent before it showed the task.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from crfkit.serve.annotations import AnnotatedText, CharacterSpan, RecentTexts, read_result
from crfkit.serve.asking import Asking
from crfkit.serve.errors import RequestError, bad_value, too_large, unanswerable
from crfkit.serve.given import Given
from crfkit.serve.label_config import LabelConfig
from crfkit.serve.question import Question
from crfkit.serve.served import ServedCRF
from crfkit.serve.store import Version
from crfkit.serve.training import Trainer

PUT, DELETE = ("ANNOTATION_CREATED", "ANNOTATION_UPDATED"), ("ANNOTATION_DELETED", "ANNOTATIONS_DELETED")
TRAIN = "START_TRAINING"


class LabelStudio:
    """Answers `/setup`, `/predict`, `/train` and `/webhook` as label-studio-ml-backend does."""

    def __init__(self, asking: Asking, *, train: bool = False, save_dir: Path | None = None) -> None:
        self.asking = asking
        self.trainer = Trainer(asking.store, save_dir) if train else None
        self._tasks = RecentTexts()  # model and task → its text, as Label Studio sent it for predictions
        self._annotated: dict[str, RecentTexts] = {}  # model → task → its annotation

    async def setup(
        self, request: dict[str, Any], large: bool = False, name: str | None = None
    ) -> tuple[Any, int]:
        """A project begins to use the server."""
        LabelConfig.parse(request.get("schema"))
        return {"model_version": self.asking.store.get(name).label}, 200

    async def predict(
        self, request: dict[str, Any], large: bool = False, name: str | None = None
    ) -> tuple[Any, int]:
        """Predictions for tasks."""
        version = self.asking.store.get(name)
        tasks = request.get("tasks")
        if not isinstance(tasks, list):
            raise bad_value("tasks is no array")
        limits = self.asking.store.limits
        if len(tasks) > limits.max_texts:
            raise too_large(f"there are {len(tasks):,} tasks, expected at most {limits.max_texts:,}")
        config = LabelConfig.parse(request.get("label_config"))
        texts = [config.text_of(task, n) for n, task in enumerate(tasks)]
        spans = await ask_spans(self.asking, version, texts, large=large)
        for task, text in zip(tasks, texts, strict=True):
            if (key := _task_key(version.name, task.get("id"))) is not None:
                self._tasks.put(key, AnnotatedText(text))
        results = [_prediction(found, config, version.label) for found in spans]
        return {"results": results, "model_version": version.label}, 200

    async def train(
        self, request: dict[str, Any], large: bool = False, name: str | None = None
    ) -> tuple[Any, int]:
        """Train on the annotated tasks that the request has."""
        version = self._trainable(name)
        annotated = request.get("annotations")
        if not isinstance(annotated, list) or not annotated:
            raise bad_value("there are no annotations")
        config = LabelConfig.parse(request.get("label_config"))
        for n, task in enumerate(annotated):
            text = config.text_of(task, n)
            given = task.get("annotations") or task.get("completions")
            if not isinstance(given, list) or not given:
                continue
            key = _task_key(version.name, task.get("id")) or f"{version.name} text {text}"
            self._put(version, key, text, given[-1], config)
        return {"job": self._start(version)}, 201

    async def webhook(
        self, request: dict[str, Any], large: bool = False, name: str | None = None
    ) -> tuple[Any, int]:
        """Something happened in a project: an annotation was made, changed or deleted, or training is asked for."""
        action = request.get("action")
        if action not in (*PUT, *DELETE, TRAIN):
            return {"status": "Unknown event"}, 200
        version = self._trainable(name)
        if action == TRAIN:
            return {"result": {"job": self._start(version)}, "status": "ok"}, 201
        project = request.get("project")
        annotation = request.get("annotation")
        if action in DELETE:
            several = request.get("annotations")
            for one in several if isinstance(several, list) else [annotation]:
                if isinstance(one, dict) and (key := _task_key(version.name, one.get("task"))) is not None:
                    self._texts(version).drop(key)
            return {"result": {"job": self._start(version)}, "status": "ok"}, 201
        if not isinstance(project, dict) or not isinstance(annotation, dict):
            raise bad_value("the event has no project or no annotation")
        config = LabelConfig.parse(project.get("label_config"))
        text, key = self._text_of(version, request.get("task"), annotation, config)
        if text is None or key is None:
            return {"result": {"skipped": "the text of the task is not known here"}, "status": "ok"}, 201
        self._put(version, key, text, annotation, config)
        return {"result": {"job": self._start(version)}, "status": "ok"}, 201

    def close(self) -> None:
        """Begin no further training."""
        if self.trainer is not None:
            self.trainer.close()

    def _texts(self, version: Version) -> RecentTexts:
        return self._annotated.setdefault(version.name, RecentTexts())

    def _trainable(self, name: str | None) -> Version:
        version = self.asking.store.get(name)
        if self.trainer is None:
            raise RequestError(403, "training is off: start the server with --train")
        if not isinstance(version.model, ServedCRF) or type(version.model) is not ServedCRF:
            raise unanswerable(f"the model is {version.model.kind}, and annotations train models of labels")
        if "texts" not in version.model.forms:
            raise unanswerable("the model reads more than the words of a text, and annotations have no more")
        return version

    def _start(self, version: Version) -> str | None:
        assert self.trainer is not None
        texts = self._texts(version).all()
        return self.trainer.start(version, texts) if texts else None

    def _text_of(
        self, version: Version, task: Any, annotation: dict[str, Any], config: LabelConfig
    ) -> tuple[str | None, str | None]:
        """The text of an annotated task, and the key that it is remembered by."""
        number = task.get("id") if isinstance(task, dict) else annotation.get("task")
        key = _task_key(version.name, number)
        if isinstance(task, dict) and isinstance(task.get("data"), dict):
            text = config.text_of(task, 0)
            return text, key or f"{version.name} text {text}"
        known = None if key is None else self._tasks.get(key)
        return (None if known is None else known.text), key

    def _put(self, version: Version, key: str, text: str, annotation: Any, config: LabelConfig) -> None:
        """Remember an annotation; one that was skipped is none."""
        if not isinstance(annotation, dict):
            raise bad_value("an annotation is no object")
        if annotation.get("was_cancelled"):
            self._texts(version).drop(key)
            return
        assert isinstance(version.model, ServedCRF)
        known = version.model.types()
        spans = tuple(
            CharacterSpan(span.start, span.end, config.model_label(span.label, known))
            for span in read_result(annotation.get("result"), config.from_name)
        )
        self._texts(version).put(key, AnnotatedText(text, spans))


async def ask_spans(
    asking: Asking, version: Version, texts: list[str], *, large: bool
) -> list[list[dict[str, Any]]]:
    """The spans of the predicted labels of each text, with their probabilities and characters."""
    question = Question(
        "spans", decode=version.model.crf.decode_ if isinstance(version.model, ServedCRF) else None
    )
    documents = await asking.read_given(version, question, Given("texts", texts), large=large)
    answers = iter(await asking.ask(version, question, [item for document in documents for item in document]))
    return [
        [span for _ in document for sentence in next(answers) for span in sentence["spans"]]
        for document in documents
    ]


def _prediction(spans: Iterable[dict[str, Any]], config: LabelConfig, version: str) -> dict[str, Any]:
    """Spans as a prediction of Label Studio; its score is the mean of theirs."""
    regions = [
        {
            "id": f"crfkit-{n}",
            "from_name": config.from_name,
            "to_name": config.to_name,
            "type": "labels",
            "score": span["probability"],
            "value": {
                "start": span["begin_character"],
                "end": span["end_character"],
                "text": span["text"],
                "labels": [config.project_label(str(span["label"]))],
                "score": span["probability"],
            },
        }
        for n, span in enumerate(spans)
    ]
    scores = [region["score"] for region in regions]
    return {
        "result": regions,
        "score": sum(scores) / len(scores) if scores else 0.0,
        "model_version": version,
    }


def _task_key(model: str, number: Any) -> str | None:
    """What a task is remembered by; None where it has no number."""
    if isinstance(number, bool) or not isinstance(number, int | str) or len(str(number)) > 40:
        return None
    return f"{model} {number}"
