-- A year of calls in bulk: per part, `n` turns, each a chat call with the embedding of its question.
CREATE TEMP TABLE turn ON COMMIT DROP AS
SELECT i, billing_uuid7() AS r, billing_uuid7() AS a1, billing_uuid7() AS a2, billing_uuid7() AS e1, billing_uuid7() AS e2,
  now() - (random() ^ 0.8) * interval '365 days' AS at, 1 + floor(random() ^ 2 * 50)::int AS team,
  floor(random() ^ 1.5 * 20)::int AS person, 1 + floor(random() * 5)::int AS model,
  (800 + 2200 * random() ^ 3)::bigint AS input, (300 * random())::bigint AS cached, (60 + 500 * random() ^ 2)::bigint AS output,
  random() < 0.02 AS estimated, ('00000000-0000-4000-8000-' || lpad(to_hex((random() * %(threads)s)::int), 12, '0'))::uuid
    AS thread
FROM generate_series(1, %(n)s) i;

INSERT INTO billing_reservation (id, created_at, state, kind, team_id, account_id, deployment_id, turn_id, thread_id,
  collections, request_id, dedupe_key, fingerprint, price_key, mode, pins, currency, held_input_tokens, held_output_tokens,
  asked_output_tokens, held_price, effective_at, heartbeat_at, expires_at, settled_at, ended_at, settled_by)
SELECT t.r, t.at, 'settled', 'chat', g.id, p.id, d.id, t.a1, t.thread, ARRAY[g.id], '', '', '', d.price_key, 'standard', '{}',
  'EUR', t.input, 1024, 1024, 1, t.at, t.at, t.at, t.at, t.at, 'caller'
FROM turn t JOIN bench_team g ON g.n = t.team JOIN bench_person p ON p.team = t.team AND p.n = t.person
JOIN bench_deployment d ON d.n = t.model;

INSERT INTO billing_usageattempt (id, created_at, reservation_id, number, outcome, billed, kind, team_id, deployment_id,
  price_key, requested_model, served_model, upstream_id, request_id, finish_reason, finish_raw, error, source, estimated,
  estimate_reason, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, reasoning_tokens, quantities,
  local_input_tokens, tokenizer, total_ms, ttft_ms, flags)
SELECT CASE k WHEN 1 THEN t.a1 ELSE t.a2 END, t.at, t.r, k, 'completed', true, CASE k WHEN 1 THEN 'chat' ELSE 'embedding' END,
  g.id, d.id, d.price_key, d.name, d.name, '', '', 'stop', '', '', 'server_final', t.estimated, '',
  CASE k WHEN 1 THEN t.input ELSE 20 END, CASE k WHEN 1 THEN t.output ELSE 0 END, CASE k WHEN 1 THEN t.cached ELSE 0 END, 0, 0,
  '{}', CASE k WHEN 1 THEN (t.input * (0.98 + random() * 0.04))::bigint END, 'o200k_base', 2000, 300, '[]'
FROM turn t CROSS JOIN (VALUES (1), (2)) AS k(k) JOIN bench_team g ON g.n = t.team
JOIN bench_deployment d ON d.n = CASE k WHEN 1 THEN t.model ELSE 6 END;

INSERT INTO billing_ledgerline (entry_id, side, component, quantity, unit_price, per_units, min_prompt_tokens, amount)
SELECT t.e1, s.side, c.component, c.quantity, c.price * s.factor, 1000000, 0, c.quantity * c.price * s.factor * 0.000001
FROM turn t JOIN bench_deployment d ON d.n = t.model CROSS JOIN (VALUES ('price', 1), ('cost', 0.8)) AS s(side, factor)
CROSS JOIN LATERAL (VALUES ('input', t.input - t.cached, d.price), ('cache_read', t.cached, d.price / 10),
  ('output', t.output, d.price * 4)) AS c(component, quantity, price)
UNION ALL
SELECT t.e2, 'price', 'input', 20, 0.02, 1000000, 0, 20 * 0.02 * 0.000001 FROM turn t;

INSERT INTO billing_ledgerentry (id, kind, dedupe_key, effective_at, recorded_at, currency, price, cost, price_missing,
  reservation_id, attempt_id, team_id, account_id, deployment_id, call_kind, price_key, model, input_tokens, output_tokens,
  estimated, overshoot, late, recreated, actor, reason)
SELECT CASE k WHEN 1 THEN t.e1 ELSE t.e2 END, 'charge', t.r || ':' || k, t.at, t.at, 'EUR', l.price, l.cost, false, t.r,
  CASE k WHEN 1 THEN t.a1 ELSE t.a2 END, g.id, p.id, d.id, CASE k WHEN 1 THEN 'chat' ELSE 'embedding' END, d.price_key, d.name,
  CASE k WHEN 1 THEN t.input ELSE 20 END, CASE k WHEN 1 THEN t.output ELSE 0 END, t.estimated AND k = 1, false, false, false,
  '', ''
FROM turn t CROSS JOIN (VALUES (1), (2)) AS k(k) JOIN bench_team g ON g.n = t.team
JOIN bench_person p ON p.team = t.team AND p.n = t.person
JOIN bench_deployment d ON d.n = CASE k WHEN 1 THEN t.model ELSE 6 END
CROSS JOIN LATERAL (SELECT sum(amount) FILTER (WHERE side = 'price') AS price, sum(amount) FILTER (WHERE side = 'cost') AS cost
  FROM billing_ledgerline WHERE entry_id = CASE k WHEN 1 THEN t.e1 ELSE t.e2 END) l;
