"""How the house measures against its own numbers: `python tools/house.py`.

Prints sizes, comment density and everything above the aims. The hard limits are gates in tests/architecture.
Migrations and vendored files are left out; tests are counted apart.
"""

import ast
import gc
import io
import statistics
import sys
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("app", "retrieval", "inference_client")

FILE_AIM, FILE_HARD = 300, 400
FUNCTION_AIM, FUNCTION_HARD = 40, 60
COMMENTS_AIM = (3.0, 5.0)

# Django loads its apps in two steps, so these files may import inside a function.
LOADING_EDGE = ("apps.py", "asgi.py")

_Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Source:
    """One Python file with what was measured in it. Places are `path:line name`."""

    path: str
    lines: int
    comments: int
    docstring_lines: int
    functions: tuple[tuple[int, str], ...] = field(default=())
    """(length in lines, place) of each function; a nested one counts in its parent too."""
    bare_excepts: tuple[str, ...] = ()
    broad_excepts: tuple[str, ...] = ()
    unannotated: tuple[str, ...] = ()
    inner_imports: tuple[str, ...] = ()


def sources(*packages: str) -> Iterator[Source]:
    """Every file of the named packages, measured."""
    for package in packages or PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            if not {"migrations", "vendor", "__pycache__"} & set(path.parts):
                yield measure(path.read_text(encoding="utf-8"), str(path.relative_to(ROOT)))


def tree_of(text: str, name: str = "<text>") -> ast.Module:
    """The syntax tree of a file.

    The collector waits meanwhile: a finalizer that runs in the middle upsets CPython's count of the tree's depth,
    and 3.11.7 then raises a SystemError (CPython gh-106905).
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        return ast.parse(text, name)
    finally:
        if collects:
            gc.enable()


def measure(text: str, name: str) -> Source:
    """Measure one file's text."""
    tree = tree_of(text, name)
    functions = [node for node in ast.walk(tree) if isinstance(node, _Function)]
    handlers = [node for node in ast.walk(tree) if isinstance(node, ast.ExceptHandler)]
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return Source(
        path=name,
        lines=text.count("\n"),
        comments=sum(token.type == tokenize.COMMENT for token in tokens),
        docstring_lines=sum(_docstring_lines(node) for node in ast.walk(tree)),
        functions=tuple((_length(node), f"{name}:{node.lineno} {node.name}") for node in functions),
        bare_excepts=tuple(f"{name}:{node.lineno}" for node in handlers if node.type is None),
        broad_excepts=tuple(f"{name}:{node.lineno}" for node in handlers if _is_broad(node)),
        unannotated=tuple(
            f"{name}:{node.lineno} {node.name}" for node in functions if not _is_annotated(node)
        ),
        inner_imports=tuple(_inner_imports(functions, name)),
    )


def _length(node: _Function) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


def _docstring_lines(node: ast.AST) -> int:
    """Lines of the string statements of a body: docstrings, and the texts under fields."""
    body = getattr(node, "body", None)
    if not isinstance(body, list):
        return 0
    return sum(
        (statement.end_lineno or statement.lineno) - statement.lineno + 1
        for statement in body
        if isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )


def _is_broad(node: ast.ExceptHandler) -> bool:
    if node.type is None:
        return False
    names = node.type.elts if isinstance(node.type, ast.Tuple) else [node.type]
    return any(ast.unparse(name) in {"Exception", "BaseException"} for name in names)


def _is_annotated(node: _Function) -> bool:
    spec = node.args
    positional = [*spec.posonlyargs, *spec.args]
    if positional and positional[0].arg in {"self", "cls"}:
        positional = positional[1:]
    starred = [argument for argument in (spec.vararg, spec.kwarg) if argument]
    return node.returns is not None and all(a.annotation for a in [*positional, *spec.kwonlyargs, *starred])


def _inner_imports(functions: list[_Function], name: str) -> Iterator[str]:
    if name.endswith(LOADING_EDGE):
        return
    for function in functions:
        for node in ast.walk(function):
            if isinstance(node, ast.Import | ast.ImportFrom):
                yield f"{name}:{node.lineno}"


def main() -> int:
    """Print the report."""
    house = list(sources())
    tests = list(sources("tests"))
    if not house:
        print("no source files")
        return 0
    lines = [source.lines for source in house]
    functions = [entry for source in house for entry in source.functions]
    lengths = sorted(length for length, _ in functions) or [0]
    total = sum(lines) or 1
    print(
        f"{len(house)} files, {total} lines (median {statistics.median(lines):.0f}, longest {max(lines)}); "
        f"{len(functions)} functions (median {statistics.median(lengths):.0f}, "
        f"p99 {lengths[int(0.99 * (len(lengths) - 1))]}, longest {lengths[-1]})"
    )
    print(
        f"per 100 lines: {100 * sum(s.comments for s in house) / total:.1f} comments "
        f"(aim {COMMENTS_AIM[0]:.0f} to {COMMENTS_AIM[1]:.0f}), "
        f"{100 * sum(s.docstring_lines for s in house) / total:.1f} docstring lines; "
        f"{sum(s.lines for s in tests) / total:.2f} test lines a source line"
    )
    _show(f"files over {FILE_AIM} lines", [f"{s.lines} {s.path}" for s in house if s.lines > FILE_AIM])
    _show(
        f"functions over {FUNCTION_AIM} lines", [f"{n} {place}" for n, place in functions if n > FUNCTION_AIM]
    )
    _show("bare excepts", [place for s in house for place in s.bare_excepts])
    _show("broad excepts", [place for s in house for place in s.broad_excepts])
    _show("functions without full annotations", [place for s in house for place in s.unannotated])
    _show("imports inside functions", [place for s in house for place in s.inner_imports])
    return 0


def _show(title: str, rows: list[str]) -> None:
    if rows:
        print(f"{title}: {len(rows)}", *(f"  {row}" for row in rows), sep="\n")


if __name__ == "__main__":
    sys.exit(main())
