from datetime import UTC, datetime

from django.db import migrations, models

from app.billing.migrations._sql import run

_GRAINS = (
    ("quarter", "Quarter"),
    ("house15min", "House Quarter"),
    ("day", "Day"),
    ("month", "Month"),
    ("teamday", "Team Day"),
    ("teammonth", "Team Month"),
    ("plainday", "Plain Day"),
    ("plainmonth", "Plain Month"),
    ("usermonth", "User Month"),
    ("payerday", "Payer Day"),
    ("payermonth", "Payer Month"),
    ("houseday", "House Day"),
    ("housemonth", "House Month"),
    ("thread", "Thread"),
    ("threadlife", "Thread Life"),
)
_PARTS = {"house15min": "quarter", "plainday": "teamday", "plainmonth": "teammonth", "usermonth": "month"}
"""Each new grain with the one that it is made from, month by month, by the task that folds."""


def _empty(grain: str) -> str:
    """A table that is attached when it is there, which no reader waits for."""
    return f"""
      CREATE TABLE billing_rollup_{grain} (LIKE billing_rollup INCLUDING DEFAULTS) WITH (fillfactor = 80);
      ALTER TABLE billing_rollup ATTACH PARTITION billing_rollup_{grain} FOR VALUES IN ('{grain}');
    """


_TABLES = "".join(_empty(grain) for grain in _PARTS) + """
    CREATE INDEX billing_rollup_user ON billing_rollup_usermonth (account_id, at);
    CREATE INDEX billing_rollup_plain ON billing_rollup_plainday (team_id, at);
    CREATE INDEX billing_rollup_payer ON billing_rollup_payerday (account_id, at);
    CREATE INDEX billing_rollup_payer_key ON billing_rollup_payerday (key_id, at) WHERE key_id IS NOT NULL;
"""
_BUILDS = "".join(
    f"INSERT INTO billing_rollupbuild (grain, part, done_to) SELECT '{grain}', '{part}', '1900-01-01 00:00+00' "  # noqa: S608 - constants
    "WHERE EXISTS (SELECT 1 FROM billing_rollup);"
    for grain, part in _PARTS.items()
)


class Migration(migrations.Migration):
    """Four more grains. Where there are entries, they are made afterwards, and readers do without them until then."""

    dependencies = (("billing", "0025_own_limits"),)

    operations = (
        migrations.CreateModel(
            name="RollupBuild",
            fields=[
                ("grain", models.CharField(choices=_GRAINS, max_length=10, primary_key=True, serialize=False)),
                ("part", models.CharField(choices=_GRAINS, max_length=10)),
                ("done_to", models.DateTimeField(default=datetime(1900, 1, 1, tzinfo=UTC))),
            ],
        ),
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.AlterField("rollup", "grain", models.CharField(choices=_GRAINS, max_length=10)),
            ],
        ),
        # An identity is no default, and cannot be had in a part alone: the parent gives it.
        migrations.RunSQL("SELECT pg_advisory_xact_lock(hashtextextended('rollups', 0));" + _TABLES + _BUILDS, migrations.RunSQL.noop),
        run("folding.sql"),
        run("grants.sql"),
    )
