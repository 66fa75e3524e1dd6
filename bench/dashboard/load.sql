-- One part of a year of calls in bulk: `n` turns, each a chat call with the embedding of its question. The triggers of the
-- ledger are off meanwhile, so what they write stands here: thread and collections of the reservation, no cost centre.
CREATE TEMP TABLE turn ON COMMIT DROP AS
WITH drawn AS MATERIALIZED (
  SELECT i, %(from)s + (random() * (%(to)s - %(from)s)) AS at, 1 + floor(random() ^ 2 * 50)::int AS team,
    floor(random() ^ 1.5 * 20)::int AS person, 1 + floor(random() * 5)::int AS model, (800 + 2200 * random() ^ 3)::bigint AS input,
    (300 * random())::bigint AS cached, (60 + 500 * random() ^ 2)::bigint AS output, random() < 0.02 AS estimated,
    random() AS draw, floor(random() * 3)::int AS which
  FROM generate_series(1, %(n)s) i
)
SELECT gen_random_uuid() AS r, gen_random_uuid() AS a1, gen_random_uuid() AS a2, billing_uuid7() AS e1, billing_uuid7() AS e2,
  t.at, g.id AS team, p.id AS account, CASE WHEN t.draw < 0.2 THEN g.keys[1 + t.which] END AS key, d.id AS deployment,
  d.name AS model, d.price_key, d.price, t.input, t.cached, t.output, t.estimated,
  -- Three conversations a person and week, and one that goes on for the whole year.
  md5(p.id::text || CASE WHEN t.draw > 0.97 THEN 'long' ELSE date_trunc('week', t.at)::text || t.which END)::uuid AS thread,
  CASE WHEN t.draw < 0.1 THEN NULL WHEN t.draw < 0.2 THEN g.shelf[1:2] ELSE g.shelf[1 + t.which:1 + t.which] END AS collections
FROM drawn t JOIN bench_team g ON g.n = t.team JOIN bench_person p ON p.team = t.team AND p.n = t.person
JOIN bench_deployment d ON d.n = t.model ORDER BY t.at;

INSERT INTO billing_reservation (id, created_at, state, kind, team_id, account_id, key_id, deployment_id, turn_id, thread_id,
  collections, request_id, dedupe_key, fingerprint, price_key, mode, pins, currency, held_input_tokens, held_output_tokens,
  asked_output_tokens, held_price, effective_at, heartbeat_at, expires_at, settled_at, ended_at, settled_by)
SELECT r, at, 'settled', 'chat', team, account, key, deployment, a1, thread, collections, '', '', '', price_key, 'standard', '{}',
  'EUR', input, 1024, 1024, 1, at, at, at, at, at, 'caller'
FROM turn;

INSERT INTO billing_usageattempt (id, created_at, reservation_id, number, outcome, billed, kind, team_id, deployment_id,
  price_key, requested_model, served_model, upstream_id, request_id, finish_reason, finish_raw, error, source, estimated,
  estimate_reason, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, reasoning_tokens, quantities,
  local_input_tokens, tokenizer, total_ms, ttft_ms, flags)
SELECT a1, at, r, 1, 'completed', true, 'chat', team, deployment, price_key, model, model, '', '', 'stop', '', '', 'server_final',
  estimated, '', input, output, cached, 0, 0, '{}'::jsonb, (input * (0.98 + random() * 0.04))::bigint, 'o200k_base', 2000, 300,
  '[]'::jsonb
FROM turn
UNION ALL
SELECT t.a2, t.at, t.r, 2, 'completed', true, 'embedding', t.team, d.id, d.price_key, d.name, d.name, '', '', 'stop', '', '',
  'server_final', false, '', 20, 0, 0, 0, 0, '{}'::jsonb, NULL, 'o200k_base', 25, NULL, '[]'::jsonb
FROM turn t, bench_deployment d WHERE d.n = 6;

INSERT INTO billing_ledgerline (entry_id, side, component, quantity, unit_price, per_units, min_prompt_tokens, amount)
SELECT t.e1, s.side, c.component, c.quantity, c.price * s.factor, 1000000, 0, c.quantity * c.price * s.factor * 0.000001
FROM turn t CROSS JOIN (VALUES ('price', 1), ('cost', 0.8)) AS s(side, factor)
CROSS JOIN LATERAL (VALUES ('input', t.input - t.cached, t.price), ('cache_read', t.cached, t.price / 10),
  ('output', t.output, t.price * 4)) AS c(component, quantity, price)
UNION ALL
SELECT t.e2, 'price', 'input', 20, 0.02, 1000000, 0, 20 * 0.02 * 0.000001 FROM turn t;

INSERT INTO billing_ledgerentry (id, kind, dedupe_key, effective_at, recorded_at, currency, price, cost, price_missing,
  reservation_id, attempt_id, team_id, account_id, key_id, deployment_id, call_kind, price_key, model, thread_id, collections,
  input_tokens, output_tokens, estimated, overshoot, late, recreated, actor, reason)
SELECT e1, 'charge', r || ':1', at, at, 'EUR', price * units * 0.000001, price * 0.8 * units * 0.000001, false, r, a1, team,
  account, key, deployment, 'chat', price_key, model, thread, collections, input, output, estimated, false, false, false, '', ''
FROM (SELECT *, input - cached + cached * 0.1 + output * 4 AS units FROM turn) t
UNION ALL
SELECT t.e2, 'charge', t.r || ':2', t.at, t.at, 'EUR', 20 * 0.02 * 0.000001, NULL, false, t.r, t.a2, t.team, t.account, t.key,
  d.id, 'embedding', d.price_key, d.name, t.thread, t.collections, 20, 0, false, false, false, false, '', ''
FROM turn t, bench_deployment d WHERE d.n = 6;
