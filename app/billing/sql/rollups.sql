-- Roll-ups of the ledger. A trigger notes each entry as pending; folding adds pending entries up and takes the note away in
-- one statement, so each entry is counted once, whenever it comes and whatever its time. Readers add what is pending.

-- One entry as roll-ups count it. Cached and reasoning tokens come from its lines, so that adjustments count too.
CREATE OR REPLACE VIEW billing_spendfact AS
SELECT e.id, e.effective_at AS at, e.team_id, e.account_id, e.key_id, e.deployment_id, e.model, e.call_kind, e.collections,
  e.thread_id, e.kind, e.reservation_id, 1 AS entries,
  (e.kind = 'charge' AND e.call_kind = 'chat' AND NOT EXISTS (
    SELECT 1 FROM billing_ledgerentry x WHERE x.reservation_id = e.reservation_id AND x.kind = 'charge'
      AND x.call_kind = 'chat' AND x.id < e.id))::integer AS requests,
  coalesce(e.price, 0) AS price, coalesce(e.cost, 0) AS cost, CASE WHEN e.estimated THEN coalesce(e.price, 0) ELSE 0 END
    AS estimated_price,
  e.estimated::integer AS estimated, e.price_missing::integer AS unpriced, (e.cost IS NULL)::integer AS uncosted,
  e.input_tokens, e.output_tokens, coalesce(l.cached, 0) AS cached_tokens, coalesce(l.reasoning, 0) AS reasoning_tokens
FROM billing_ledgerentry e
-- The price side names every component; where the payer does not pay there is a cost side alone.
LEFT JOIN LATERAL (
  SELECT coalesce(sum(quantity) FILTER (WHERE component = 'cache_read' AND side = 'price'),
      sum(quantity) FILTER (WHERE component = 'cache_read')) AS cached,
    coalesce(sum(quantity) FILTER (WHERE component = 'reasoning' AND side = 'price'),
      sum(quantity) FILTER (WHERE component = 'reasoning')) AS reasoning
  FROM billing_ledgerline l WHERE l.entry_id = e.id
) l ON true
WHERE e.credit IS NULL;


CREATE OR REPLACE FUNCTION billing_rollup_queue() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO billing_rolluppending (entry_id) SELECT id FROM added;
  RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER billing_ledgerentry_rollup AFTER INSERT ON billing_ledgerentry
  REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION billing_rollup_queue();


-- The first instant of the sum that an instant falls into. Quarters of an hour of UTC are parts of every zone's days; what
-- is summed over a whole life stands at one instant.
CREATE OR REPLACE FUNCTION billing_rollup_at(p_grain text, p_at timestamptz, p_zone text) RETURNS timestamptz
LANGUAGE sql STABLE AS $$
  SELECT CASE WHEN p_grain = 'quarter' THEN date_bin('15 minutes', p_at, '2000-01-01 00:00+00')
    WHEN p_grain = 'threadlife' THEN '2000-01-01 00:00+00'
    ELSE billing_instant(date_trunc(CASE WHEN p_grain LIKE '%day' THEN 'day' ELSE 'month' END, p_at AT TIME ZONE p_zone),
      p_zone) END
$$;


-- Adds pending entries up, the oldest first; all entries from the beginning when `p_limit` is null. Returns how many.
CREATE OR REPLACE FUNCTION billing_rollup_fold(p_zone text, p_limit integer) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
  v_all boolean := p_limit IS NULL;
  v_zone text;
  v_count integer;
BEGIN
  PERFORM pg_advisory_xact_lock(hashtextextended('rollups', 0));
  SELECT zone INTO v_zone FROM billing_rollupzone WHERE id = 1;
  IF v_zone IS DISTINCT FROM p_zone THEN
    v_all := true;
    INSERT INTO billing_rollupzone (id, zone) VALUES (1, p_zone) ON CONFLICT (id) DO UPDATE SET zone = EXCLUDED.zone;
  END IF;
  IF v_all THEN
    DELETE FROM billing_rollup;
  END IF;
  -- One statement, so one snapshot: what is taken from the notes is what is added up, also while calls are booked.
  WITH taken AS (
    DELETE FROM billing_rolluppending WHERE v_all
      OR entry_id = ANY (ARRAY(SELECT entry_id FROM billing_rolluppending ORDER BY entry_id LIMIT p_limit))
    RETURNING entry_id
  ), facts AS MATERIALIZED (
    SELECT f.* FROM billing_spendfact f WHERE v_all
    UNION ALL
    SELECT f.* FROM taken JOIN billing_spendfact f ON f.id = taken.entry_id WHERE NOT v_all
  ), added AS (
    INSERT INTO billing_rollup AS r (
      grain, at, team_id, account_id, key_id, deployment_id, model, call_kind, collections, thread_id, entries, requests,
      price, cost, estimated_price, estimated, unpriced, uncosted, input_tokens, output_tokens, cached_tokens,
      reasoning_tokens)
    -- What a set does not name is null in it, so the one time that it names is its own.
    SELECT
      CASE GROUPING(thread_id, team_id, account_id, model)
        WHEN 8 THEN '' WHEN 9 THEN 'payer' WHEN 10 THEN 'team' WHEN 14 THEN 'house' ELSE 'thread' END
      || CASE WHEN GROUPING(quarter) = 0 THEN 'quarter' WHEN GROUPING(day) = 0 THEN 'day'
        WHEN GROUPING(month) = 1 THEN 'life' WHEN GROUPING(thread_id) = 0 THEN '' ELSE 'month' END,
      coalesce(quarter, day, month, billing_rollup_at('threadlife', NULL, p_zone)),
      team_id, account_id, key_id, deployment_id, coalesce(model, ''), coalesce(call_kind, ''), collections, thread_id,
      sum(entries), sum(requests), sum(price), sum(cost), sum(estimated_price), sum(estimated), sum(unpriced), sum(uncosted),
      sum(input_tokens), sum(output_tokens), sum(cached_tokens), sum(reasoning_tokens)
    FROM (
      SELECT f.*, billing_rollup_at('quarter', f.at, p_zone) AS quarter, billing_rollup_at('day', f.at, p_zone) AS day,
        billing_rollup_at('month', f.at, p_zone) AS month
      FROM facts f
    ) f
    GROUP BY GROUPING SETS (
      (quarter, team_id, account_id, key_id, deployment_id, model, call_kind, collections),
      (day, team_id, account_id, key_id, deployment_id, model, call_kind, collections),
      (month, team_id, account_id, key_id, deployment_id, model, call_kind, collections),
      (day, team_id, deployment_id, model, call_kind, collections),
      (month, team_id, deployment_id, model, call_kind, collections),
      (day, team_id, account_id, key_id), (month, team_id, account_id, key_id),
      (day, deployment_id, model, call_kind), (month, deployment_id, model, call_kind),
      (month, team_id, account_id, thread_id), (team_id, account_id, thread_id))
    HAVING GROUPING(thread_id) = 1 OR thread_id IS NOT NULL
    ON CONFLICT (grain, at, team_id, account_id, key_id, deployment_id, model, call_kind, collections, thread_id)
    DO UPDATE SET entries = r.entries + EXCLUDED.entries, requests = r.requests + EXCLUDED.requests,
      price = r.price + EXCLUDED.price, cost = r.cost + EXCLUDED.cost,
      estimated_price = r.estimated_price + EXCLUDED.estimated_price, estimated = r.estimated + EXCLUDED.estimated,
      unpriced = r.unpriced + EXCLUDED.unpriced, uncosted = r.uncosted + EXCLUDED.uncosted,
      input_tokens = r.input_tokens + EXCLUDED.input_tokens, output_tokens = r.output_tokens + EXCLUDED.output_tokens,
      cached_tokens = r.cached_tokens + EXCLUDED.cached_tokens,
      reasoning_tokens = r.reasoning_tokens + EXCLUDED.reasoning_tokens
  )
  SELECT CASE WHEN v_all THEN (SELECT count(*) FROM facts) ELSE (SELECT count(*) FROM taken) END INTO v_count;
  RETURN v_count;
END $$;
