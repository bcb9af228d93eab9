"""From the JSON of a request to the answer of a model."""

import asyncio
import json
import time
from collections.abc import Sequence
from typing import Any

from crfkit.serve.batching import ClosedError, Job
from crfkit.serve.errors import RequestError
from crfkit.serve.given import Document, Given, Item, check_sizes
from crfkit.serve.metrics import Metrics
from crfkit.serve.question import Question
from crfkit.serve.served.model import Sentences
from crfkit.serve.store import ModelStore, Version

LARGE = 32 * 1024  # bytes of a body that is not small


class Asking:
    """Asks the models of a store, within its limits."""

    def __init__(self, store: ModelStore, metrics: Metrics) -> None:
        self.store = store
        self.metrics = metrics

    async def answer(self, name: str, request: dict[str, Any], *, large: bool = False) -> dict[str, Any]:
        """The answer to a question (`/tag`, `/spans`, …) as JSON; a thread reads input that is large."""
        limits = self.store.limits
        question = Question.of(name, request, limits)
        given = Given.of(request, limits)
        version = self.store.get(request.get("model"))
        documents = await self.read_given(version, question, given, large=large)
        found = {"model": version.name, "version": version.label}
        if name == "explain":
            [[answer]] = await self.ask(version, question, documents[0] if documents else [])
            return {**found, **answer}
        answers = iter(
            await self.ask(version, question, [item for document in documents for item in document])
        )
        results = [
            {"sentences": [sentence for _ in document for sentence in next(answers)]}
            for document in documents
        ]
        return {**found, "results": results}

    async def read_given(
        self, version: Version, question: Question, given: Given, *, large: bool
    ) -> list[Document]:
        """The input of a request as the model reads it; in a thread where it is large, so that others need not wait."""
        if large:
            return await asyncio.to_thread(self.read, version, question, given)
        return self.read(version, question, given)

    def read(self, version: Version, question: Question, given: Given) -> list[Document]:
        """The input of a request as the model reads it, within the limits."""
        model = version.model
        model.check(question, given)
        documents = model.read(given)
        check_sizes(
            documents, self.store.limits, model.longest(), question.n if question.name == "nbest" else 1
        )
        self.metrics.tokens[version.name, question.name] += sum(
            item.size for document in documents for item in document
        )
        return documents

    async def ask(self, version: Version, question: Question, items: Sequence[Item]) -> list[Sentences]:
        """The answers for some items, in their order."""
        if not items and question.name != "explain":
            return []
        job = Job(question, items, time.monotonic() + self.store.limits.wait_seconds)
        while True:
            try:
                version.batcher.submit(job)
                break
            except ClosedError:  # it was replaced in this moment
                current = self.store.get(version.name)
                if current is version:
                    raise RequestError(429, "the server ends", close=True, retry_after=1) from None
                version = current
        return await asyncio.wrap_future(job.future)


def to_json(value: Any) -> bytes:
    """JSON in UTF-8."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8")
