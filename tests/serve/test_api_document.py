"""The OpenAPI document has every path, its references lead somewhere, and its examples are answered."""

from __future__ import annotations

import json
from typing import Any

import pytest

pytest.importorskip("starlette", reason='needs Starlette: pip install ".[serve]"')
pytest.importorskip("uvicorn", reason='needs uvicorn: pip install ".[serve]"')
pytest.importorskip("httpx", reason="needs httpx")

from crfkit.serve import Limits
from crfkit.serve.openapi import api_document
from crfkit.serve.pages import content_policy
from tests.serve.models import names, pipeline
from tests.serve.servers import asking


def references(value: Any) -> list[str]:
    if isinstance(value, dict):
        own = [value["$ref"]] if "$ref" in value else []
        return own + [name for inner in value.values() for name in references(inner)]
    return [name for inner in value for name in references(inner)] if isinstance(value, list) else []


def test_the_document_is_sound() -> None:
    document = api_document(Limits())
    assert document["openapi"].startswith("3.1")
    for reference in references(document):
        assert reference.removeprefix("#/components/schemas/") in document["components"]["schemas"]
    for path, item in document["paths"].items():
        for method in {"get", "post"} & set(item):
            operation = item[method]
            assert operation["summary"]
            assert any(status in operation["responses"] for status in ("200", "201"))
            assert ("requestBody" in operation) == (method == "post")
        named = [parameter["name"] for parameter in item.get("parameters", [])]
        assert named == (["name"] if "{name}" in path else [])


def test_every_path_is_described_and_every_example_answered() -> None:
    models = {"names": names(), "pipeline": pipeline()}
    with asking(models, train=True) as client:
        document = client.get("/openapi.json").json()
        routes = {route.path for route in client.app.app.routes}
        assert routes == set(document["paths"])
        for path, item in document["paths"].items():
            if "get" in item:
                assert client.get(path.replace("{name}", "names")).status_code == 200
            if "post" in item:
                example = item["post"]["requestBody"]["content"]["application/json"]["example"]
                if path == "/parse":
                    example = {**example, "model": "pipeline"}
                response = client.post(path.replace("{name}", "names"), json=example)
                expected = {"/train": 400, "/setup": 422}.get(
                    "/" + path.rsplit("/", 1)[-1]
                )  # nothing to train on, no labels
                if expected is None:
                    assert str(response.status_code) in item["post"]["responses"], (path, response.text)
                    assert response.status_code < 300
                    check(response.json(), item["post"]["responses"][str(response.status_code)], document)
                else:
                    assert response.status_code == expected


def check(answer: Any, response: Any, document: Any) -> None:
    """An answer is of its schema."""
    jsonschema = pytest.importorskip("jsonschema", reason="needs jsonschema")
    schema = {**response["content"]["application/json"]["schema"], "components": document["components"]}
    jsonschema.validate(answer, json.loads(json.dumps(schema)))


def test_pages_load_nothing() -> None:
    with asking({"names": names()}) as client:
        for path in ("/", "/docs"):
            response = client.get(path)
            text = response.text
            assert response.headers["content-type"] == "text/html; charset=utf-8"
            assert "http://" not in text.replace("http://www.w3.org", "")
            assert "https://" not in text
            assert " style=" not in text  # the policy forbids inline attributes
            assert " onclick" not in text
            assert "innerHTML" not in text
            assert response.headers["content-security-policy"] == content_policy(text)


def test_the_policy_names_the_scripts_of_the_page() -> None:
    policy = content_policy("<style>a{}</style><script>alert(1)</script>")
    assert "script-src 'sha256-bhHHL3z2vDgxUt0W3dWQOrprscmda2Y5pLsLg4GF+pI='" in policy
    assert policy.count("sha256-") == 2
