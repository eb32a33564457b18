"""The OpenAPI description of LibreTranslate's routes, which /spec gives. The routes themselves read their bodies as
LibreTranslate does, so FastAPI cannot derive it."""

from typing import Any

from dragoman.serve.answers import ERRORS

_TEXTS: dict[str, Any] = {
    "oneOf": [
        {"type": "string", "minLength": 1},
        {"type": "array", "minItems": 1, "items": {"type": "string"}},
    ]
}
_LANGUAGE: dict[str, Any] = {"type": "string", "minLength": 1, "example": "en"}
TRANSLATE: dict[str, Any] = {
    "q": {**_TEXTS, "example": "Hello world!"},
    "source": {**_LANGUAGE, "description": "A language code, or auto"},
    "target": _LANGUAGE,
    "format": {"type": "string", "enum": ["text", "html"], "default": "text"},
    "alternatives": {"type": "integer", "minimum": 0, "default": 0},
    "api_key": {"type": "string"},
}
DETECT: dict[str, Any] = {"q": {**_TEXTS, "example": "Hello world!"}, "api_key": {"type": "string"}}
SUGGEST: dict[str, Any] = {
    "q": {"type": "string", "minLength": 1, "description": "A text"},
    "s": {"type": "string", "minLength": 1, "description": "What its translation should be"},
    "source": _LANGUAGE,
    "target": _LANGUAGE,
    "api_key": {"type": "string"},
}
SUGGESTED: dict[str, Any] = {"type": "object", "properties": {"success": {"type": "boolean"}}}
_DETECTION: dict[str, Any] = {
    "type": "object",
    "required": ["confidence", "language"],
    "properties": {
        "confidence": {"type": "number", "minimum": 0, "maximum": 100},
        "language": {"type": "string"},
    },
}
DETECTIONS: dict[str, Any] = {"type": "array", "items": _DETECTION}
_STRINGS: dict[str, Any] = {"type": "array", "items": {"type": "string"}}
TRANSLATED: dict[str, Any] = {
    "type": "object",
    "required": ["translatedText"],
    "properties": {
        "translatedText": {"oneOf": [{"type": "string"}, _STRINGS]},
        "alternatives": {"type": "array", "items": {"oneOf": [{"type": "string"}, _STRINGS]}},
        "detectedLanguage": {"oneOf": [_DETECTION, DETECTIONS]},
        "pivot": {"type": "string", "description": "The language it was translated through; absent: directly"},
    },
}
LANGUAGES: dict[str, Any] = {
    "type": "array",
    "items": {
        "type": "object",
        "required": ["code", "name", "targets"],
        "properties": {"code": {"type": "string"}, "name": {"type": "string"}, "targets": _STRINGS},
    },
}
FILE_URL: dict[str, Any] = {
    "type": "object",
    "required": ["translatedFileUrl"],
    "properties": {"translatedFileUrl": {"type": "string"}, "pivot": {"type": "string"}},
}


def body_of(properties: dict[str, Any], required: list[str]) -> dict[str, Any]:
    schema = {"type": "object", "required": required, "properties": properties}
    form = {"type": "object", "required": required, "properties": {**properties, "q": {"type": "string"}}}
    content = {"application/json": {"schema": schema}, "application/x-www-form-urlencoded": {"schema": form}}
    return {"requestBody": {"required": True, "content": content}}


def file_body() -> dict[str, Any]:
    properties = {
        "file": {"type": "string", "format": "binary"},
        "source": _LANGUAGE,
        "target": _LANGUAGE,
        "api_key": {"type": "string"},
        "preview": {"type": "string", "description": "Anything: the answer then has the sentences, with confidences"},
    }
    schema = {"type": "object", "required": ["file", "source", "target"], "properties": properties}
    return {"requestBody": {"required": True, "content": {"multipart/form-data": {"schema": schema}}}}


def ok(schema: dict[str, Any]) -> dict[int | str, dict[str, Any]]:
    return {200: {"content": {"application/json": {"schema": schema}}}, **ERRORS}
