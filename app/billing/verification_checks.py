"""The questions that `ledger_verify` asks of the tables: each gives (row, stored, rebuilt) where the two disagree."""

from app.billing.rollup_checks import ROLLUP_CHECKS

_UNIT = "CASE per_units WHEN 1 THEN 1 WHEN 1000 THEN 0.001 ELSE 0.000001 END"

CHECKS = {
    "line = quantity × unit price": f"""
        SELECT 'ledger line ' || id, amount, unit_price * quantity * {_UNIT} FROM billing_ledgerline
        WHERE amount IS DISTINCT FROM unit_price * quantity * {_UNIT}""",  # noqa: S608 - a constant
    "entry = sum of its lines": """
        SELECT 'ledger entry ' || e.id || ' ' || s.side, s.stored, s.rebuilt
        FROM billing_ledgerentry e
        LEFT JOIN (
          SELECT entry_id, sum(amount) FILTER (WHERE side = 'price') AS price,
            sum(amount) FILTER (WHERE side = 'cost') AS cost
          FROM billing_ledgerline GROUP BY entry_id
        ) l ON l.entry_id = e.id
        CROSS JOIN LATERAL (VALUES ('price', e.price, l.price), ('cost', coalesce(e.cost_native, e.cost), l.cost))
          AS s(side, stored, rebuilt)
        WHERE coalesce(s.stored, 0) <> coalesce(s.rebuilt, 0)""",
    "cost = cost in its own currency at the entry's exchange rate": """
        SELECT 'ledger entry ' || e.id, e.cost, billing_even(e.cost_native * x.rate, 15)
        FROM billing_ledgerentry e LEFT JOIN billing_exchangerate x ON x.id = e.exchange_rate_id
        WHERE e.cost_native IS NOT NULL AND e.cost IS DISTINCT FROM billing_even(e.cost_native * x.rate, 15)""",
    "reservation = sum of its entries": """
        SELECT 'reservation ' || r.id || ' ' || s.side, s.stored, s.rebuilt
        FROM billing_reservation r
        LEFT JOIN (
          SELECT reservation_id, sum(price) AS price, sum(cost) AS cost FROM billing_ledgerentry GROUP BY reservation_id
        ) e ON e.reservation_id = r.id
        CROSS JOIN LATERAL (VALUES ('price', r.price, e.price), ('cost', r.cost, e.cost)) AS s(side, stored, rebuilt)
        WHERE coalesce(s.stored, 0) <> coalesce(s.rebuilt, 0)""",
    "spent of a reservation in a window = what its entries say": """
        SELECT 'reservation ' || l.reservation_id || ' in window ' || l.window_id, l.spent, e.booked
        FROM (
          SELECT reservation_id, window_id, unit, price_key, sum(spent) AS spent FROM billing_reservationline
          WHERE unit <> 'requests' GROUP BY reservation_id, window_id, unit, price_key
        ) l
        CROSS JOIN LATERAL (
          SELECT coalesce(
            sum(CASE WHEN l.unit = 'money' THEN e.price ELSE e.input_tokens + e.output_tokens END), 0) AS booked
          FROM billing_ledgerentry e JOIN billing_usageattempt a ON a.id = e.attempt_id
          WHERE e.reservation_id = l.reservation_id AND a.billed AND l.price_key IN ('', e.price_key)
            AND (l.unit = 'money' OR a.kind = 'chat')
        ) e
        WHERE l.spent <> e.booked""",
    "window = sum of its lines": """
        SELECT 'window ' || w.id || ' ' || s.side, s.stored, s.rebuilt
        FROM billing_budgetwindow w
        LEFT JOIN (
          SELECT window_id, sum(spent) FILTER (WHERE state = 2) AS spent, sum(amount) FILTER (WHERE state < 2) AS held
          FROM billing_reservationline GROUP BY window_id
        ) l ON l.window_id = w.id
        CROSS JOIN LATERAL (VALUES ('spent', w.spent, l.spent), ('held', w.held, l.held)) AS s(side, stored, rebuilt)
        WHERE s.stored <> coalesce(s.rebuilt, 0) AND w.unit NOT IN ('bytes', 'pages')""",
    "prepaid credit = sum of its movements": """
        SELECT 'window ' || w.id, w.limit_snapshot, c.amount
        FROM billing_budgetwindow w
        CROSS JOIN LATERAL (
          SELECT greatest(coalesce(sum(amount), 0), 0) AS amount FROM billing_creditmovement
          WHERE w.subject = 'c:' || team_id
        ) c
        WHERE w.subject LIKE 'c:%' AND w.limit_snapshot <> c.amount""",
    "each movement of credit is booked once": """
        SELECT 'credit ' || coalesce(m.id::text, e.dedupe_key), m.amount, e.credit
        FROM billing_creditmovement m
        FULL JOIN (SELECT * FROM billing_ledgerentry WHERE credit IS NOT NULL) e ON e.dedupe_key = 'credit:' || m.id
        WHERE m.amount IS DISTINCT FROM e.credit OR m.team_id IS DISTINCT FROM e.team_id""",
    "only running calls hold": """
        SELECT 'reservation ' || r.id, r.state, 'has held lines'
        FROM billing_reservation r JOIN billing_reservationline l ON l.reservation_id = r.id
        WHERE l.state = 0 AND r.state <> 'held'""",
    "nothing points at a missing row": """
        SELECT 'line ' || l.id, 'missing', coalesce(w.id, r.id)::text
        FROM billing_reservationline l
        LEFT JOIN billing_budgetwindow w ON w.id = l.window_id
        LEFT JOIN billing_reservation r ON r.id = l.reservation_id
        WHERE w.id IS NULL OR r.id IS NULL
        UNION ALL
        SELECT 'ledger line ' || l.id, 'missing', l.entry_id::text
        FROM billing_ledgerline l LEFT JOIN billing_ledgerentry e ON e.id = l.entry_id WHERE e.id IS NULL
        UNION ALL
        SELECT 'ledger entry ' || e.id, 'missing', e.attempt_id::text
        FROM billing_ledgerentry e LEFT JOIN billing_usageattempt a ON a.id = e.attempt_id
        LEFT JOIN billing_reservation r ON r.id = e.reservation_id
        WHERE (e.attempt_id IS NOT NULL AND a.id IS NULL) OR (e.reservation_id IS NOT NULL AND r.id IS NULL)""",
    "line = the price of its pinned version": """
        SELECT 'ledger line ' || l.id, l.unit_price, p.price
        FROM billing_ledgerline l JOIN billing_ledgerentry e ON e.id = l.entry_id
        LEFT JOIN billing_pricecomponent c ON c.component = l.component AND c.min_prompt_tokens = l.min_prompt_tokens
          AND c.version_id = CASE l.side WHEN 'price' THEN e.price_version_id ELSE e.cost_version_id END
        LEFT JOIN billing_teamrate t ON t.id = e.team_rate_id AND l.side = 'price'
        CROSS JOIN LATERAL (
          SELECT CASE WHEN t.factor IS NULL THEN c.price ELSE billing_even(c.price * t.factor, 9) END) AS p(price)
        WHERE l.unit_price IS NOT NULL AND l.unit_price IS DISTINCT FROM p.price""",
    "each call that used something is booked, and once": """
        SELECT 'attempt ' || a.id, count(e.id)::text, '1'
        FROM billing_usageattempt a LEFT JOIN billing_ledgerentry e ON e.attempt_id = a.id AND e.kind = 'charge'
        WHERE a.billed AND (a.quantities <> '{}' OR a.outcome = 'completed')
        GROUP BY a.id HAVING count(e.id) <> 1""",
    "entry = who its hold says pays, and when": """
        SELECT 'ledger entry ' || e.id, concat_ws(' ', e.team_id, e.account_id, e.key_id, e.currency, e.effective_at),
          concat_ws(' ', r.team_id, r.account_id, r.key_id, r.currency, r.effective_at)
        FROM billing_ledgerentry e JOIN billing_reservation r ON r.id = e.reservation_id
        WHERE (e.team_id, e.account_id, e.key_id, e.currency, e.effective_at)
          IS DISTINCT FROM (r.team_id, r.account_id, r.key_id, r.currency, r.effective_at)""",
    "charge = what its attempt used": """
        SELECT 'ledger entry ' || e.id, concat_ws(' ', e.input_tokens, e.output_tokens, l.used),
          concat_ws(' ', a.input_tokens, a.output_tokens, a.quantities)
        FROM billing_ledgerentry e JOIN billing_usageattempt a ON a.id = e.attempt_id
        CROSS JOIN (VALUES ('price'), ('cost')) AS s(side)
        CROSS JOIN LATERAL (
          SELECT coalesce(jsonb_object_agg(c.component, c.quantity), '{}') AS used FROM (
            SELECT component, sum(quantity) AS quantity FROM billing_ledgerline
            WHERE entry_id = e.id AND side = s.side AND component <> 'request' GROUP BY component) c
        ) l
        WHERE e.kind = 'charge' AND CASE s.side WHEN 'price' THEN a.billed ELSE e.cost_version_id IS NOT NULL END
          AND (e.input_tokens, e.output_tokens, l.used)
            IS DISTINCT FROM (a.input_tokens, a.output_tokens, a.quantities)""",
    "an amount is missing only where the price is": """
        SELECT 'ledger line ' || l.id, 'missing', c.price
        FROM billing_ledgerline l JOIN billing_ledgerentry e ON e.id = l.entry_id
        JOIN billing_pricecomponent c ON c.component = l.component AND c.min_prompt_tokens = 0
          AND c.version_id = CASE l.side WHEN 'price' THEN e.price_version_id ELSE e.cost_version_id END
        WHERE l.unit_price IS NULL
        UNION ALL
        SELECT 'ledger entry ' || e.id, NULL, NULL
        FROM billing_ledgerentry e WHERE e.price_missing <> EXISTS (
          SELECT 1 FROM billing_ledgerline l WHERE l.entry_id = e.id AND l.side = 'price' AND l.amount IS NULL)""",
    "a turn that was admitted counts once": """
        SELECT 'reservation ' || r.id || ' in window ' || l.window_id, l.spent, x.own
        FROM (
          SELECT reservation_id, window_id, sum(spent) AS spent FROM billing_reservationline
          WHERE unit = 'requests' GROUP BY reservation_id, window_id
        ) l
        JOIN billing_reservation r ON r.id = l.reservation_id
        CROSS JOIN LATERAL (
          SELECT count(*) FROM billing_ledgerentry e JOIN billing_usageattempt a ON a.id = e.attempt_id
          WHERE e.reservation_id = r.id AND a.billed AND a.kind = r.kind
        ) AS x(own)
        WHERE l.spent NOT IN (0, 1) OR (l.spent = 1 AND r.state IN ('held', 'released'))
          OR (l.spent = 0 AND x.own > 0 AND NOT r.late)""",
    "limit of a window = its budget's and what was added": """
        SELECT 'window ' || w.id, w.limit_snapshot, b."limit" + w.raised
        FROM billing_budgetwindow w JOIN billing_budget b ON b.id = w.budget_id
        WHERE w.ends_at > now() AND b.scope <> 'prepaid' AND w.limit_snapshot <> b."limit" + w.raised""",
    "what a hold assumes = the dearest of its price": """
        SELECT 'price version ' || v.id, v.dearest, t.tiers
        FROM billing_priceversion v
        CROSS JOIN LATERAL (SELECT coalesce(billing_tiers(v.id, 1), '[]') AS tiers) t
        CROSS JOIN LATERAL (
          SELECT array_agg(row_to_json(x)::jsonb ORDER BY x."from") AS said FROM jsonb_to_recordset(v.dearest)
            AS x("from" bigint, upto bigint, "in" numeric, "out" numeric, fee numeric)) AS s
        CROSS JOIN LATERAL (
          SELECT array_agg(row_to_json(x)::jsonb ORDER BY x."from") AS meant FROM jsonb_to_recordset(t.tiers)
            AS x("from" bigint, upto bigint, "in" numeric, "out" numeric, fee numeric)) AS m
        WHERE v.side = 'price' AND s.said IS DISTINCT FROM m.meant""",
    "holds end in time": """
        SELECT 'reservation ' || id, 'held', 'overdue since ' || expires_at
        FROM billing_reservation WHERE state = 'held' AND expires_at < now() - interval '10 minutes'""",
    "issued statement = sum of its entries and of its lines": """
        SELECT 'statement ' || s.id || ' ' || x.side, x.stored, x.rebuilt
        FROM billing_statement s
        LEFT JOIN LATERAL (
          SELECT coalesce(sum(e.price), 0) AS exact FROM billing_statemententry n
          JOIN billing_ledgerentry e ON e.id = n.entry_id WHERE n.statement_id = s.id
        ) e ON true
        LEFT JOIN LATERAL (
          SELECT coalesce(sum(l.exact) FILTER (WHERE l.section <> 'rounding'), 0) AS exact,
            coalesce(sum(l.amount), 0) AS total
          FROM billing_statementline l WHERE l.statement_id = s.id AND l.section <> 'credit'
        ) l ON true
        CROSS JOIN LATERAL (VALUES ('entries', s.exact, e.exact), ('lines', s.exact, l.exact),
          ('total', s.total, l.total), ('rounded', s.total, billing_even(s.exact, s.places)))
          AS x(side, stored, rebuilt)
        WHERE s.state = 'issued' AND x.stored IS DISTINCT FROM x.rebuilt""",
    "statements are numbered without gaps": """
        SELECT 'statement ' || s.id, s.number::text, s.place::text
        FROM (
          SELECT id, number, row_number() OVER (ORDER BY number) AS place
          FROM billing_statement WHERE state = 'issued'
        ) s
        WHERE s.number <> s.place""",
    "nobody is told of an entry that is not there": """
        SELECT 'delivery ' || d.id, 'missing', coalesce(e.id, w.id)::text
        FROM billing_delivery d LEFT JOIN billing_ledgerentry e ON e.id = d.entry_id
        LEFT JOIN billing_webhook w ON w.id = d.webhook_id WHERE e.id IS NULL OR w.id IS NULL""",
} | ROLLUP_CHECKS
