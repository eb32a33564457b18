"""The reference of the HTTP API, made of the description that the service itself gives at /api/v1/openapi.json."""

import asyncio
import functools
import html
import json
import re
from collections.abc import Iterator
from typing import Any

from dragoman.serve.app import make_app
from dragoman.serve.service import Service
from dragoman.serve.settings import Settings

HEAD = """\
# HTTP API

What `dragoman serve` answers. [Serving](../guides/serving.md) says how to use it; the same as data is in
[openapi.json](openapi.json), which a running service gives at `/api/v1/openapi.json`. Where keys are required, one goes
into the header `Authorization: Bearer KEY`, or into `api_key` where LibreTranslate's clients send it.
"""
JSON = "application/json"


@functools.cache
def text() -> str:
    """The description, asked of a service without runs as any client asks for it."""
    return asyncio.run(_ask("/api/v1/openapi.json"))


async def _ask(path: str) -> str:
    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "GET", "scheme": "http",
        "path": path, "raw_path": path.encode(), "query_string": b"", "root_path": "",
        "headers": [(b"host", b"localhost")], "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 5000),
    }  # fmt: skip
    await make_app(Service([], Settings()))(scope, receive, send)
    assert sent[0]["status"] == 200, sent
    return b"".join(message.get("body", b"") for message in sent[1:]).decode()


def every_operation() -> Iterator[tuple[str, str, dict[str, Any]]]:
    """The method, the path and the description of each."""
    for path, methods in json.loads(text())["paths"].items():
        for method, operation in methods.items():
            yield method.upper(), path, operation


def page() -> str:
    document = json.loads(text())
    ours = [one for one in every_operation() if one[1].startswith("/api/")]
    theirs = [one for one in every_operation() if not one[1].startswith("/api/")]
    parts = [HEAD, "## LibreTranslate's API\n", *map(_operation, theirs)]
    parts += ["## Dragoman's API\n", *map(_operation, ours), "## Shapes\n"]
    for name, schema in document["components"]["schemas"].items():
        parts.append(_shape(name, schema))
    return "\n".join(parts)


def _operation(one: tuple[str, str, dict[str, Any]]) -> str:
    method, path, operation = one
    lines = [f"### {method} {path}\n", operation.get("description") or operation.get("summary", ""), ""]
    rows = [
        f"| `{parameter['name']}` | in the {parameter['in']} | {_type(parameter['schema'])} |"
        for parameter in operation.get("parameters", ())
    ]
    if rows:
        lines += ["| parameter | where | type |", "|---|---|---|", *rows, ""]
    for kind, content in operation.get("requestBody", {}).get("content", {}).items():
        schema = content.get("schema", {})
        lines += [f"Body (`{kind}`): {_type(schema)}\n", *_fields(schema)]
    errors = []
    for status, answer in operation["responses"].items():
        contents = answer.get("content", {})
        if status.startswith(("4", "5")):
            errors.append(f"{status} ({answer['description'].lower()})")
            continue
        shapes = [f"{_type(content.get('schema', {}))} (`{kind}`)" for kind, content in contents.items()]
        lines.append(f"Answer {status}: {', '.join(shapes)}\n")
        for content in contents.values():
            lines += _fields(content.get("schema", {}))
    lines.append(f"Errors, each as [Problem](#problem): {', '.join(errors)}.\n")
    return "\n".join(lines)


def _shape(name: str, schema: dict[str, Any]) -> str:
    return "\n".join([f"### {name}\n", schema.get("description", ""), "", *_fields(schema)])


def _fields(schema: dict[str, Any]) -> list[str]:
    """A table of an object's fields."""
    required = schema.get("required", ())
    rows = [
        f"| `{key}` | {_type(value)} | {_default(key, value, required)} | {_limits(value)} |"
        for key, value in schema.get("properties", {}).items()
    ]
    return ["| field | type | default | meaning |", "|---|---|---|---|", *rows, ""] if rows else []


def _default(key: str, schema: dict[str, Any], required: Any) -> str:
    if key in required:
        return "required"
    return f"`{json.dumps(schema['default'], ensure_ascii=False)}`" if "default" in schema else ""


def _limits(schema: dict[str, Any]) -> str:
    words = {
        "minimum": "at least",
        "exclusiveMinimum": "above",
        "maximum": "at most",
        "exclusiveMaximum": "below",
        "minLength": "least characters",
        "maxLength": "most characters",
        "minItems": "least entries",
        "maxItems": "most entries",
    }
    options = [schema, *schema.get("anyOf", ()), *schema.get("oneOf", ())]
    found = [f"{meaning} {option[key]:,g}" for option in options for key, meaning in words.items() if key in option]
    about = html.escape(schema.get("description", ""), quote=False)
    return "; ".join(filter(None, [about, ", ".join(found)])).replace("|", "&#124;")


def _type(schema: dict[str, Any]) -> str:
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{re.sub(r'[^a-z0-9_-]', '', name.lower())})"
    if options := schema.get("anyOf") or schema.get("oneOf"):
        return " or ".join(dict.fromkeys(_type(option) for option in options))
    if "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema["enum"])
    if "const" in schema:
        return f"`{schema['const']}`"
    if schema.get("type") == "array":
        inner = _type(schema.get("items") or {}) or ", ".join(map(_type, schema.get("prefixItems", ())))
        return f"list of {inner}" if inner else "list"
    if schema.get("properties"):
        return f"object ({', '.join(f'`{key}`' for key in schema['properties'])})"
    return str(schema.get("type", ""))
