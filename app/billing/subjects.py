"""Whom a budget covers, as the text that the SQL functions look it up by."""

from uuid import UUID

from app.billing.types import Scope


def subject_of(
    scope: Scope, *, team_id: UUID | None = None, account_id: UUID | None = None, key_id: UUID | None = None
) -> str:
    """`i`, `t:<team>`, `a:<team>:<account>`, `p:<account>` or `k:<key>`; `*` stands for an id left out.

    Raises ValueError for an id that the scope does not take.
    """
    takes = {
        "team": {"team_id"},
        "allowance": {"team_id", "account_id"},
        "person": {"account_id"},
        "key": {"key_id"},
    }
    if scope == "prepaid":
        raise ValueError("Prepaid credit is not set as a limit: give the team credit, or correct a grant.")
    given = {"team_id": team_id, "account_id": account_id, "key_id": key_id}
    unused = [name for name, value in given.items() if value and name not in takes.get(scope, set())]
    if unused:
        raise ValueError(f"A limit of scope {scope} takes no {unused[0]}.")
    if scope == "allowance":
        if account_id and not team_id:
            raise ValueError("An allowance of one person needs the team that grants it.")
        return f"a:{team_id or '*'}:{account_id or '*'}"
    if scope == "installation":
        return "i"
    return f"{scope[0]}:{team_id or account_id or key_id or '*'}"
