"""Write the Python client from the committed OpenAPI document: `python tools/make_client.py [--check]`.

With --check nothing is written; the exit code is 1 when the client is not what the schema gives.
"""

import keyword
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[1]
SCHEMA = ROOT / "app" / "api" / "schema.yaml"
BASE = ROOT / "tools" / "client_base.py.txt"
CLIENT = ROOT / "clients" / "python" / "tessera_client.py"
_PLAIN = {"string": "str", "integer": "int", "number": "float", "boolean": "bool"}
_ANY = "dict[str, Any]"
_OK = ("200", "201", "202", "204")
Schema = Mapping[str, Any]


def type_of(schema: Schema) -> str:  # noqa: PLR0911 - one line for each form of a schema
    """The Python type of a schema; what has no name of its own is a plain dict."""
    if schema.get("nullable"):
        return f"{type_of({**schema, 'nullable': False})} | None"
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    for joined in ("allOf", "oneOf", "anyOf"):
        if joined in schema:
            return " | ".join(dict.fromkeys(type_of(part) for part in schema[joined]))
    if "enum" in schema:
        return f"Literal[{', '.join(repr(value) for value in schema['enum'])}]"
    match schema.get("type"):
        case "array":
            return f"list[{type_of(schema['items'])}]"
        case "object":
            extra = schema.get("additionalProperties")
            return f"dict[str, {type_of(extra)}]" if isinstance(extra, dict) and extra else _ANY
        case kind:
            return _PLAIN.get(str(kind), "Any")


def docstring(words: str, indent: str) -> str:
    """Words as a docstring of at most 110 columns."""
    text = " ".join(words.replace("\\", "\\\\").replace('"""', "'''").split())
    return textwrap.fill(
        f'"""{text}"""', 108, initial_indent=indent, subsequent_indent=indent, break_long_words=False
    )


def typed(name: str, schema: Schema) -> str:
    """A component as a TypedDict, or as an alias when it is no object with fields."""
    fields = schema.get("properties")
    if not fields:
        return f"{name} = {type_of(schema)}\n"
    needed = set(schema.get("required", ()))
    kinds = {
        field: type_of(inner) if field in needed else f"NotRequired[{type_of(inner)}]"
        for field, inner in fields.items()
    }
    if any(not field.isidentifier() or keyword.iskeyword(field) for field in fields):
        inside = ", ".join(f"{field!r}: {kind!r}" for field, kind in kinds.items())
        return f"{name} = TypedDict({name!r}, {{{inside}}})\n"
    # Types are named before they are written, in whatever order.
    lines = [f"    {field}: {_quoted(kind)}" for field, kind in kinds.items()]
    head = docstring(schema["description"], "    ") if schema.get("description") else ""
    return "\n".join([f"class {name}(TypedDict):", *([head, ""] if head else []), *lines]) + "\n"


def _quoted(kind: str) -> str:
    """The type as a string where it names another class, so that the order of the classes does not matter."""
    if "Literal" in kind:
        return kind
    if kind.startswith("NotRequired["):
        return f"NotRequired[{_quoted(kind[12:-1])}]"
    return f'"{kind}"' if re.search(r"\b(?!Any\b|None\b)[A-Z]\w+", kind) else kind


def operations(document: Schema) -> Iterator[tuple[str, str, Schema]]:
    """(path, method, operation) in the order of their names."""
    found = [
        (path, method, operation)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
        if method in {"get", "post", "put", "patch", "delete"}
    ]
    yield from sorted(found, key=lambda item: str(item[2]["operationId"]))


def answer_of(operation: Schema) -> str:
    """The type of the first successful JSON answer."""
    for status in _OK:
        if response := operation["responses"].get(status):
            content = response.get("content", {})
            if "application/json" in content:
                return type_of(content["application/json"]["schema"])
            return "bytes" if content else "None"
    return "Any"


def streams(operation: Schema) -> bool:
    """Whether it can answer with events."""
    return "text/event-stream" in operation["responses"].get("200", {}).get("content", {})


def argument(name: str) -> str:
    """A parameter's name in Python."""
    plain = re.sub(r"\W", "_", name).lower()
    return f"{plain}_" if keyword.iskeyword(plain) or plain in {"self", "body", "files"} else plain


def method_of(path: str, verb: str, operation: Schema) -> str:
    """The method of one operation; one that can stream gets a second one for its JSON answer."""
    text = _method(path, verb, operation, stream=streams(operation))
    if streams(operation) and "application/json" in operation["responses"]["200"]["content"]:
        text += "\n" + _method(path, verb, operation, stream=False)
    return text


def _method(path: str, verb: str, operation: Schema, *, stream: bool) -> str:
    given = operation.get("parameters", ())
    by = {place: [p["name"] for p in given if p["in"] == place] for place in ("path", "query", "header")}
    contents = operation.get("requestBody", {}).get("content", {})
    optional = [
        f"{argument(p['name'])}: {type_of(p['schema'])} | None = None" for p in given if p["in"] != "path"
    ]
    needed = [f"{argument(name)}: str" for name in by["path"]]
    if "application/json" in contents and "multipart/form-data" not in contents:
        needed.append(f"body: {type_of(contents['application/json']['schema'])}")
    elif "multipart/form-data" in contents:
        optional.append("file: tuple[str, bytes] | None = None")
        if "application/json" in contents:
            optional.append(f"body: {type_of(contents['application/json']['schema'])} | None = None")
    keywords = ["*", *optional] if optional else []
    also_streams = streams(operation) and not stream
    name = operation["operationId"] + ("_whole" if also_streams else "")
    answer = "_Stream" if stream else answer_of(operation)
    words = operation.get("summary") or operation.get("description") or "See the API's documentation."
    arguments = ", ".join(["self", *needed, *keywords])
    call = "_open" if stream else "_call"
    sent = _arguments(path, by, contents, whole=also_streams)
    lines = [
        f"    def {name}({arguments}) -> {answer}:",
        docstring(words, "        "),
        *_body(f"self.{call}({verb.upper()!r}, {sent})", "return" if stream else answer),
    ]
    return "\n".join(lines) + "\n"


def _body(call: str, answer: str) -> list[str]:
    """The lines that make a call; an answer of any type gets the one that the schema promises."""
    if answer == "None":
        return [f"        {call}"]
    if answer in {"return", "Any"}:
        return [f"        return {call}"]
    return [f"        answer: {answer} = {call}", "        return answer"]


def _arguments(path: str, by: Mapping[str, list[str]], contents: Schema, *, whole: bool) -> str:
    inside = re.sub(r"{(\w+)}", lambda m: "{" + argument(m[1]) + "}", path)
    parts = [f'f"{inside}"' if "{" in inside else f'"{inside}"']
    for place, name in (("headers", "header"), ("params", "query")):
        if by[name]:
            parts.append(f"{place}={{{', '.join(f'{n!r}: {argument(n)}' for n in by[name])}}}")
    if "application/json" in contents:
        parts.append('json={**body, "stream": False}' if whole else "json=body")
    if "multipart/form-data" in contents:
        parts.append('files={"file": file} if file else None')
    return ", ".join(parts)


def client_of(document: Schema) -> str:
    """The whole file, in the one form of the house."""
    schemas = document["components"]["schemas"]
    # Aliases are values, which must exist before they are named; enums first, then what is made of them.
    plain = [name for name, schema in schemas.items() if not schema.get("properties")]
    made = "\n\n".join(
        [
            *(typed(name, schemas[name]) for name in plain),
            *(typed(name, schema) for name, schema in schemas.items() if name not in plain),
        ]
    )
    methods = "\n".join(method_of(*found) for found in operations(document))
    head = 'class Tessera(_Http):\n    """One method for each operation."""'
    return _formatted(f"{BASE.read_text()}\n\n{made}\n\n{head}\n\n{methods}")


def _formatted(text: str) -> str:
    ruff = str(Path(sys.executable).with_name("ruff"))
    done = subprocess.run(
        [ruff, "format", "--stdin-filename", str(CLIENT), "-"],
        input=text, capture_output=True, text=True, check=False, cwd=ROOT,
    )  # fmt: skip
    if done.returncode:
        sys.exit(f"The client that the schema gives is no Python: {done.stderr}")
    return done.stdout


def main() -> None:
    """Write it, or look whether it is as it should be."""
    made = client_of(yaml.safe_load(SCHEMA.read_text()))
    if "--check" not in sys.argv:
        CLIENT.write_text(made)
    elif not CLIENT.exists() or CLIENT.read_text() != made:
        sys.exit("clients/python/tessera_client.py is not what the schema gives: python tools/make_client.py")


if __name__ == "__main__":
    main()
