"""The API described for programs: an OpenAPI document."""

from typing import Any

from crfkit import __version__
from crfkit.serve.limits import Limits
from crfkit.serve.question import DECODINGS, LEAST, SCHEMES

Schema = dict[str, Any]

_TEXT: Schema = {"type": "string"}
_PROBABILITY: Schema = {"type": "number", "minimum": 0, "maximum": 1}
_FLAG: Schema = {"type": "boolean", "default": False}
_LABEL: Schema = {"type": ["string", "number"]}
_LABELS: Schema = {"type": "array", "items": _LABEL}
_FORMS_HELP = (
    "The input is one of: text (a string), texts, tokens (sentences as arrays of strings), rows (sentences as arrays of "
    "rows of columns), features (sentences as arrays of objects or arrays of strings), words (sentences as arrays of words "
    "of a treebank). /models says which of these a model reads."
)


def api_document(limits: Limits) -> dict[str, Any]:
    """The OpenAPI document of a server with these limits."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "crfkit",
            "version": __version__,
            "description": "Labels, spans with exact probabilities, the n best outputs, explanations and trees. "
            + _FORMS_HELP
            + f" Limits: {limits.max_body:,} bytes, {limits.max_texts:,} inputs, {limits.max_tokens:,} tokens in a request. "
            'Errors are a 4xx with {"error": message}.',
        },
        "paths": {**_questions(limits), **_state(), **_tools()},
        "components": {"schemas": _schemas(limits)},
    }


def _questions(limits: Limits) -> dict[str, Any]:
    """The paths that ask a model."""
    number = {"type": "integer", "minimum": 0, "default": 0}
    return {
        "/tag": _post(
            "The label of every token",
            {"probabilities": {**_FLAG, "description": "add the probability of each label"}},
            {"labels": _LABELS, "probabilities": {"type": "array", "items": _PROBABILITY}},
            {"text": "Anna lives in Oslo.", "probabilities": True},
        ),
        "/spans": _post(
            "The spans (entities, chunks) with their exact probabilities",
            {
                "threshold": {
                    **_PROBABILITY,
                    "minimum": LEAST,
                    "description": "spans with at least this probability (0.5)",
                },
                "decode": {
                    "enum": list(DECODINGS),
                    "description": "those of the best labels, those that gain most each, or those of the best F1",
                },
                "scheme": {
                    "enum": list(SCHEMES),
                    "description": "how labels are read; default: as they look",
                },
            },
            {"spans": {"type": "array", "items": {"$ref": "#/components/schemas/Span"}}},
            {"text": "Anna lives in Oslo.", "threshold": 0.3},
        ),
        "/nbest": _post(
            "The n best label sequences, or trees, with their probabilities",
            {"n": {"type": "integer", "minimum": 1, "maximum": limits.max_nbest, "default": 3}},
            {"nbest": {"type": "array", "items": {"$ref": "#/components/schemas/Output"}}},
            {"tokens": [["Anna", "lives", "in", "Oslo", "."]], "n": 5},
        ),
        "/explain": {
            "post": {
                "summary": "Why a token has its label, or a word its head",
                "requestBody": _body(
                    {
                        "sentence": {**number, "description": "which sentence of the (first) text"},
                        "position": {**number, "description": "which token of it"},
                        "label": {**_LABEL, "description": "why this label, or head; default: the likeliest"},
                        "against": {**_LABEL, "description": "and not this one; default: the runner-up"},
                    },
                    {"text": "Anna lives in Oslo.", "position": 3},
                ),
                "responses": _responses({"$ref": "#/components/schemas/Explained"}),
            }
        },
        "/parse": _post(
            "Dependency trees; with a pipeline, of raw text",
            {
                "probabilities": {**_FLAG, "description": "of tags and heads"},
                "decode": {
                    "enum": ["best", "mbr"],
                    "description": "of a parser: the likeliest tree, or arcs",
                },
                "svg": {**_FLAG, "description": "a picture of each tree"},
                "conllu": {**_FLAG, "description": "each sentence as CoNLL-U"},
            },
            {
                "tokens": {"type": "array", "items": {"type": "object"}},
                "words": {"type": "array", "items": {"$ref": "#/components/schemas/Word"}},
            },
            {"text": "The dog sees a cat.", "probabilities": True},
        ),
    }


def _state() -> dict[str, Any]:
    """The paths that say how the server is."""

    def get(summary: str, kind: str = "application/json") -> dict[str, Any]:
        schema = {"type": "object"} if kind == "application/json" else _TEXT
        return {
            "get": {
                "summary": summary,
                "responses": {"200": {"description": "as it is now", "content": {kind: {"schema": schema}}}},
            }
        }

    name = {"name": "name", "in": "path", "required": True, "schema": _TEXT, "description": "of the model"}
    return {
        "/models": get("The models, what they answer and what they read"),
        "/health": get("Whether the server answers"),
        "/models/{name}/health": {"parameters": [name], **get("Whether the server answers for a model")},
        "/metrics": get("Counts and times, as Prometheus reads them", "text/plain"),
        "/openapi.json": get("This document"),
        "/docs": get("This document as a page", "text/html"),
        "/": get("A page to try the models", "text/html"),
    }


def _tools() -> dict[str, Any]:
    """The paths that annotation tools ask."""
    tasks = {"type": "array", "items": {"type": "object"}}
    requests: dict[str, tuple[str, Schema, Schema]] = {
        "setup": (
            "Label Studio: a project begins to use the server",
            {"project": _TEXT, "schema": _TEXT},
            {"project": "1.1700000000", "schema": "<View/>"},
        ),
        "predict": (
            "Label Studio: predictions for tasks",
            {"tasks": tasks, "label_config": _TEXT},
            {"tasks": [{"id": 1, "data": {"text": "Anna lives in Oslo."}}]},
        ),
        "train": (
            "Label Studio: train on annotated tasks (with --train)",
            {"annotations": tasks, "label_config": _TEXT},
            {"annotations": []},
        ),
        "webhook": (
            "Label Studio: an annotation was made, changed or deleted (with --train)",
            {"action": _TEXT, "annotation": {"type": "object"}, "project": {"type": "object"}},
            {"action": "START_TRAINING"},
        ),
    }
    name = {"name": "name", "in": "path", "required": True, "schema": _TEXT, "description": "of the model"}
    found: dict[str, Any] = {}
    for action, (summary, properties, example) in requests.items():
        post = {
            "post": {
                "summary": summary,
                "requestBody": _json_body({"type": "object", "properties": properties}, example),
                "responses": _responses(
                    {"type": "object"}, status="201" if action in ("train", "webhook") else "200"
                ),
            }
        }
        found[f"/{action}"] = post
        found[f"/models/{{name}}/{action}"] = {"parameters": [name], **post}
    found["/doccano"] = {
        "post": {
            "summary": "doccano: spans for auto-labeling",
            "requestBody": _json_body(
                {"type": "object", "required": ["text"], "properties": {"text": _TEXT, "model": _TEXT}},
                {"text": "Anna lives in Oslo."},
            ),
            "responses": _responses({"type": "object"}),
        }
    }
    return found


def _post(summary: str, options: Schema, sentence: Schema, example: Schema) -> dict[str, Any]:
    """A path that answers for every sentence."""
    texts = {
        "tokens": {"type": "array", "items": _TEXT},
        "offsets": {"type": "array", "items": {"type": "array"}},
    }
    results = {
        "type": "array",
        "items": {
            "type": "object",
            "properties": {
                "sentences": {
                    "type": "array",
                    "items": {"type": "object", "properties": {**texts, **sentence}},
                }
            },
        },
    }
    answer = {"type": "object", "properties": {"model": _TEXT, "version": _TEXT, "results": results}}
    return {
        "post": {"summary": summary, "requestBody": _body(options, example), "responses": _responses(answer)}
    }


def _body(options: Schema, example: Schema) -> dict[str, Any]:
    given = {"$ref": "#/components/schemas/Input"}
    return _json_body({"allOf": [given, {"type": "object", "properties": options}]}, example)


def _json_body(schema: Schema, example: Schema) -> dict[str, Any]:
    return {"required": True, "content": {"application/json": {"schema": schema, "example": example}}}


def _responses(schema: Schema, status: str = "200") -> dict[str, Any]:
    error = {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
    texts = {
        "400": "not JSON, or not of this form",
        "404": "no such model",
        "408": "the request came too slowly",
        "413": "more than the limits allow",
        "415": "the content type is not application/json",
        "422": "not for this model, or not for this input",
        "429": "too many requests at a time; Retry-After says when to come back",
    }
    return {
        status: {"description": "the answer", "content": {"application/json": {"schema": schema}}},
        **{code: {"description": text, "content": error} for code, text in texts.items()},
    }


def _schemas(limits: Limits) -> dict[str, Schema]:
    many = {"type": "array", "maxItems": limits.max_texts}
    word = dict.fromkeys(("form", "lemma", "upos", "xpos", "feats"), _TEXT)
    return {
        "Input": {
            "type": "object",
            "description": _FORMS_HELP,
            "properties": {
                "model": {**_TEXT, "description": "its name; default: the first one"},
                "text": _TEXT,
                "texts": {**many, "items": _TEXT},
                "tokens": {**many, "items": {"type": "array", "items": _TEXT}},
                "rows": {**many, "items": {"type": "array", "items": {"type": "array", "items": _TEXT}}},
                "features": {**many, "items": {"type": "array"}},
                "words": {
                    **many,
                    "items": {
                        "type": "array",
                        "items": {"type": "object", "properties": word, "required": ["form"]},
                    },
                },
            },
        },
        "Span": {
            "type": "object",
            "description": "tokens start to end − 1 are one span; of texts also the characters",
            "properties": {
                "start": {"type": "integer"},
                "end": {"type": "integer"},
                "label": {"type": ["string", "number"]},
                "probability": _PROBABILITY,
                "text": _TEXT,
                "begin_character": {"type": "integer"},
                "end_character": {"type": "integer"},
            },
        },
        "Output": {
            "type": "object",
            "description": "one of the n best: labels; of a tree, the heads too",
            "properties": {
                "probability": _PROBABILITY,
                "labels": _LABELS,
                "heads": {"type": "array", "items": {"type": "integer"}},
            },
        },
        "Word": {
            "type": "object",
            "properties": {
                "id": {"type": "integer"},
                **word,
                "head": {"type": "integer", "description": "0 is the root"},
                "deprel": _TEXT,
                "head_probability": _PROBABILITY,
            },
        },
        "Explained": {
            "type": "object",
            "properties": {
                "model": _TEXT,
                "version": _TEXT,
                "explanation": {
                    "type": "object",
                    "description": "log_odds is the sum of the values of parts",
                    "properties": {
                        "label": {"type": ["string", "number"]},
                        "against": {"type": ["string", "number"]},
                        "log_odds": {"type": "number"},
                        "parts": {"type": "array", "items": {"type": "object"}},
                    },
                },
            },
        },
        "Error": {"type": "object", "required": ["error"], "properties": {"error": _TEXT}},
    }
