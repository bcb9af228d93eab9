"""The application: which path answers what (ASGI, by Starlette)."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from crfkit.serve.asking import LARGE, Asking, to_json
from crfkit.serve.doccano import Doccano
from crfkit.serve.errors import RequestError
from crfkit.serve.guard import App, Guard, error_parts
from crfkit.serve.json_body import parse_object, read_body
from crfkit.serve.label_studio import LabelStudio
from crfkit.serve.limits import Limits
from crfkit.serve.metrics import Metrics
from crfkit.serve.openapi import api_document
from crfkit.serve.pages import load_page
from crfkit.serve.question import QUESTIONS
from crfkit.serve.store import Loader, ModelStore

LOGGER = logging.getLogger("crfkit.serve")

Answer = Callable[
    ..., Awaitable[tuple[Any, int]]
]  # from JSON, and whether it is large, to JSON and the status


def make_app(
    models: Mapping[str, Any] | ModelStore,
    *,
    limits: Limits | None = None,
    loader: Loader | None = None,
    n_threads: int | None = None,
    allowed_hosts: Collection[str] | None = None,
    reload_seconds: float | None = None,
    train: bool = False,
    save_dir: Path | None = None,
) -> App:
    """The server as an ASGI application, for uvicorn, hypercorn or a test client.

    `models` are trained models, or paths of model files, by name; the first one is the default. With `reload_seconds`,
    files that change are read again, looked at so often. `train` lets annotation tools train models; `save_dir` is where
    these are then written. `allowed_hosts` are the values of the Host header that are answered; None: all.
    """
    if not isinstance(models, ModelStore):
        options = {} if loader is None else {"loader": loader}
        models = ModelStore(models, limits or Limits(), n_threads=n_threads, **options)
    routes = _Routes(models, train=train, save_dir=save_dir)
    app = Starlette(
        routes=routes.all(),
        exception_handlers={RequestError: _on_error, HTTPException: _on_http_error, Exception: _on_failure},
        lifespan=_lifespan(routes, reload_seconds),
    )
    app.router.redirect_slashes = False
    guard = Guard(app, models.limits, routes.metrics, routes.paths(), allowed_hosts)
    guard.store = models  # type: ignore[attr-defined]
    return guard


class _Routes:
    """All paths of the server."""

    def __init__(self, store: ModelStore, *, train: bool, save_dir: Path | None) -> None:
        self.store = store
        self.metrics = Metrics()
        self.asking = Asking(store, self.metrics)
        self.label_studio = LabelStudio(self.asking, train=train, save_dir=save_dir)
        self.doccano = Doccano(self.asking)
        self.document = to_json(api_document(store.limits))

    def posts(self) -> dict[str, Answer]:
        """What is answered to JSON."""
        studio = self.label_studio
        return {
            **{f"/{name}": self._question(name) for name in QUESTIONS},
            "/predict": studio.predict,
            "/setup": studio.setup,
            "/train": studio.train,
            "/webhook": studio.webhook,
            "/doccano": self.doccano.label,
        }

    def all(self) -> list[Route]:
        """The routes of all paths."""
        gets = {
            "/": load_page("page.html"),
            "/docs": load_page("api.html"),
            "/openapi.json": lambda _: Response(self.document, media_type="application/json"),
            "/health": lambda _: _json(self.health()),
            "/models": lambda _: _json(self.models()),
            "/metrics": lambda _: Response(
                self.metrics_text(), media_type="text/plain; version=0.0.4; charset=utf-8"
            ),
        }
        studio = self.label_studio
        named = {name: getattr(studio, name) for name in ("setup", "predict", "train", "webhook")}
        return [
            *(Route(path, endpoint=_getting(answer), methods=["GET"]) for path, answer in gets.items()),
            *(
                Route(path, endpoint=self._posting(answer), methods=["POST"])
                for path, answer in self.posts().items()
            ),
            Route("/models/{name}/health", endpoint=_getting(self._named_health), methods=["GET"]),
            *(
                Route(f"/models/{{name}}/{action}", endpoint=self._posting(answer), methods=["POST"])
                for action, answer in named.items()
            ),
        ]

    def paths(self) -> list[str]:
        """The paths that there are."""
        return [route.path for route in self.all()]

    def _named_health(self, request: Request) -> Response:
        return _json(self.health(request.path_params["name"]))

    def health(self, name: str | None = None) -> dict[str, Any]:
        """Whether the server answers, in the words of Label Studio's ML backends."""
        first = self.store.get(name)
        return {
            "status": "UP",
            "model_class": type(first.model).__name__.removeprefix("Served"),
            "models": [version.label for version in self.store],
        }

    def models(self) -> dict[str, Any]:
        """What /models says."""
        return {
            "models": [
                {"name": version.name, "version": version.label, **version.model.describe()}
                for version in self.store
            ]
        }

    def metrics_text(self) -> str:
        """What /metrics says."""
        waiting = [(version.name, len(version.batcher)) for version in self.store]
        return self.metrics.text(waiting, (self.store.n_reloads, self.store.n_failures))

    def _question(self, name: str) -> Answer:
        async def answer(request: dict[str, Any], large: bool) -> tuple[Any, int]:
            return await self.asking.answer(name, request, large=large), 200

        return answer

    def _posting(self, answer: Answer) -> Callable[[Request], Awaitable[Response]]:
        async def endpoint(request: Request) -> Response:
            body = await read_body(request.scope["headers"], request.receive, self.store.limits)
            large = len(body) > LARGE  # which would keep others waiting: a thread reads and writes it
            given = await asyncio.to_thread(parse_object, body) if large else parse_object(body)
            del body
            found, status = await answer(given, large, **request.path_params)
            del given
            body = await asyncio.to_thread(to_json, found) if large else to_json(found)
            return Response(body, status, media_type="application/json")

        return endpoint


def _getting(answer: Callable[[Request], Response]) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        return answer(request)

    return endpoint


def _json(value: Any, status: int = 200) -> Response:
    return Response(to_json(value), status, media_type="application/json")


def _lifespan(
    routes: _Routes, reload_seconds: float | None
) -> Callable[[Starlette], contextlib.AbstractAsyncContextManager[None]]:
    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        watching = None
        if reload_seconds is not None:
            watching = asyncio.create_task(_watch(routes.store, reload_seconds))
        yield
        if watching is not None:
            watching.cancel()
        routes.label_studio.close()
        await asyncio.to_thread(routes.store.close)

    return lifespan


async def _watch(store: ModelStore, seconds: float) -> None:
    """Read model files that change."""
    while True:
        await asyncio.sleep(seconds)
        try:
            await asyncio.to_thread(store.reload_changed)
        except Exception:
            LOGGER.exception("the model files could not be looked at")


async def _on_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestError)
    return _error_response(error)


async def _on_http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    allowed = (error.headers or {}).get("Allow", "another method")
    message = {
        404: "there is no such path; /docs lists those that there are",
        405: f"the path does not take {request.method}, expected {allowed}",
    }.get(error.status_code, error.detail)
    response = _error_response(RequestError(error.status_code, message))
    for name, value in (error.headers or {}).items():
        response.headers[name] = value
    return response


async def _on_failure(request: Request, error: Exception) -> Response:
    return _error_response(RequestError(500, "the server failed; its log says why"))


def _error_response(error: RequestError) -> Response:
    headers, body = error_parts(error)
    response = Response(body, error.status)
    response.raw_headers = headers
    return response
