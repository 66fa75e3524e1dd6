from django.db import migrations, models

from app.billing.migrations._sql import run

_SUMS = (
    "entries, requests, price, cost, estimated_price, estimated, unpriced, uncosted, input_tokens, output_tokens, "
    "cached_tokens, reasoning_tokens"
)
_OF_MODELS = "deployment_id, model, call_kind"


def _filled(grain: str, at: str, part: str, owners: str, *, empty: str = "") -> str:
    """One more grain, from the finer one that it is the sum of."""
    added = ", ".join(f"sum({name})" for name in _SUMS.split(", "))
    return f"""
      CREATE TABLE billing_rollup_{grain} PARTITION OF billing_rollup FOR VALUES IN ('{grain}') WITH (fillfactor = 80);
      INSERT INTO billing_rollup (grain, at, {owners}{", model, call_kind" if empty else ""}, {_SUMS})
      SELECT '{grain}', {at}, {owners}{empty}, {added} FROM billing_rollup WHERE grain = '{part}'
      GROUP BY {at}, {owners};
    """  # noqa: S608 - constants


_UNNAMED = ", '', ''"
_FILL = (
    "SELECT pg_advisory_xact_lock(hashtextextended('rollups', 0));"
    + _filled("teammonth", "at", "month", f"team_id, {_OF_MODELS}, collections")
    + _filled("payerday", "at", "day", "team_id, account_id, key_id", empty=_UNNAMED)
    + _filled("payermonth", "at", "month", "team_id, account_id, key_id", empty=_UNNAMED)
    + _filled("houseday", "at", "teamday", _OF_MODELS)
    + _filled("housemonth", "at", "teammonth", _OF_MODELS)
    + _filled(
        "threadlife",
        "'2000-01-01 00:00+00'::timestamptz",
        "thread",
        "team_id, account_id, thread_id",
        empty=_UNNAMED,
    )
    + """
    CREATE INDEX billing_rollup_team ON billing_rollup_teamday (team_id, at);
    CREATE INDEX billing_rollup_collections ON billing_rollup_teamday USING gin (collections);
    CREATE INDEX billing_rollup_account ON billing_rollup_day (account_id, at);
    CREATE INDEX billing_rollup_key ON billing_rollup_day (key_id, at) WHERE key_id IS NOT NULL;
    CREATE INDEX billing_rollup_of_thread ON billing_rollup_thread (thread_id);
    CREATE INDEX billing_rollup_dearest ON billing_rollup_threadlife (price DESC);
    """
)


class Migration(migrations.Migration):
    dependencies = [("billing", "0018_orphans")]
    operations = [
        migrations.AlterField(
            "rollup",
            "grain",
            models.CharField(
                choices=[
                    ("quarter", "Quarter"),
                    ("day", "Day"),
                    ("month", "Month"),
                    ("teamday", "Team Day"),
                    ("teammonth", "Team Month"),
                    ("payerday", "Payer Day"),
                    ("payermonth", "Payer Month"),
                    ("houseday", "House Day"),
                    ("housemonth", "House Month"),
                    ("thread", "Thread"),
                    ("threadlife", "Thread Life"),
                ],
                max_length=10,
            ),
        ),
        migrations.RunSQL(_FILL, migrations.RunSQL.noop),
        run("rollups.sql"),
        migrations.AddIndex(
            "ledgerentry",
            models.Index(
                fields=["key_id", "effective_at"],
                condition=models.Q(key_id__isnull=False),
                name="billing_entry_key",
            ),
        ),
        migrations.AddIndex(
            "ledgerentry",
            models.Index(
                fields=["thread_id", "effective_at"],
                condition=models.Q(thread_id__isnull=False),
                name="billing_entry_thread",
            ),
        ),
        migrations.AddIndex(
            "ledgerentry",
            models.Index(
                fields=["effective_at"],
                condition=models.Q(estimated=True)
                | models.Q(price_missing=True)
                | models.Q(overshoot=True)
                | models.Q(late=True),
                name="billing_entry_marked",
            ),
        ),
        migrations.AddIndex(
            "usageattempt",
            models.Index(
                fields=["deployment_id", "created_at"],
                condition=models.Q(kind="chat", source="server_final", local_input_tokens__gt=0),
                name="billing_attempt_drift",
            ),
        ),
        run("grants.sql"),
    ]
