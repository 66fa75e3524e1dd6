"""The tables of faults name tests; each of them is there."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TABLES = "\n".join(
    (ROOT / "docs" / name).read_text(encoding="utf-8")
    for name in ("faults-accounting.md", "faults-people.md", "faults-operations.md", "faults-retrieval.md")
)
NAMED = sorted(set(re.findall(r"`(tests/[\w/]+\.py(?:::\w+)?)`", TABLES)))


def test_the_table_names_tests() -> None:
    assert len(NAMED) > 20


@pytest.mark.parametrize("named", NAMED)
def test_each_named_test_exists(named: str) -> None:
    file, _, name = named.partition("::")
    found = _names_in(file)
    assert not name or name in found


@cache
def _names_in(file: str) -> frozenset[str]:
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    found = {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    found |= {
        t.id for n in tree.body if isinstance(n, ast.Assign) for t in n.targets if isinstance(t, ast.Name)
    }
    return frozenset(found)


@pytest.mark.parametrize("row", [line for line in TABLES.splitlines() if line.startswith("| ")])
def test_each_row_has_a_case_a_reason_and_a_test(row: str) -> None:
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    assert len(cells) == 3
    assert all(cells)
    assert cells[2] in {"Test", "Held by"} or "`tests/" in cells[2]
