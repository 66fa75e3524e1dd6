-- Folding of the ledger into the roll-ups; what an entry is to them stands in `rollups.sql`.

-- The first instant of the sum that an instant falls into. Quarters of an hour of UTC are parts of every zone's days; what
-- is summed over a whole life stands at one instant.
CREATE OR REPLACE FUNCTION billing_rollup_at(p_grain text, p_at timestamptz, p_zone text) RETURNS timestamptz
LANGUAGE sql STABLE AS $$
  SELECT CASE WHEN p_grain IN ('quarter', 'house15min') THEN date_bin('15 minutes', p_at, '2000-01-01 00:00+00')
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
    DELETE FROM billing_rollupbuild;
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
      CASE GROUPING(thread_id, team_id, account_id, model, collections, key_id)
        WHEN 32 THEN '' WHEN 35 THEN 'user' WHEN 38 THEN 'payer' WHEN 41 THEN 'team' WHEN 43 THEN 'plain'
        WHEN 59 THEN 'house' ELSE 'thread' END
      || CASE WHEN GROUPING(quarter) = 0 THEN CASE WHEN GROUPING(team_id) = 0 THEN 'quarter' ELSE '15min' END
        WHEN GROUPING(day) = 0 THEN 'day'
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
      (quarter, deployment_id, model, call_kind),
      (month, team_id, account_id, deployment_id, model, call_kind),
      (day, team_id, deployment_id, model, call_kind), (month, team_id, deployment_id, model, call_kind),
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


-- Makes one more month of a grain that came after entries did, from a finer one. What folding has put there meanwhile is in
-- the finer one as well and is replaced, so each month may be made again. False when nothing is left to make.
CREATE OR REPLACE FUNCTION billing_rollup_build() RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
  v billing_rollupbuild;
  v_zone text;
  v_from timestamptz;
  v_to timestamptz;
BEGIN
  PERFORM pg_advisory_xact_lock(hashtextextended('rollups', 0));
  SELECT * INTO v FROM billing_rollupbuild ORDER BY grain LIMIT 1;
  IF NOT FOUND THEN
    RETURN false;
  END IF;
  SELECT zone INTO v_zone FROM billing_rollupzone WHERE id = 1;
  SELECT billing_rollup_at('month', min(at), v_zone) INTO v_from FROM billing_rollup
  WHERE grain = v.part AND at >= v.done_to;
  IF v_from IS NULL THEN
    DELETE FROM billing_rollupbuild WHERE grain = v.grain;
    RETURN true;
  END IF;
  v_to := billing_instant((v_from AT TIME ZONE v_zone) + interval '1 month', v_zone);
  DELETE FROM billing_rollup WHERE grain = v.grain AND at < v_to AND at >= v.done_to;
  INSERT INTO billing_rollup (grain, at, team_id, account_id, deployment_id, model, call_kind, entries, requests, price, cost,
    estimated_price, estimated, unpriced, uncosted, input_tokens, output_tokens, cached_tokens, reasoning_tokens)
  SELECT v.grain, at, CASE WHEN v.grain <> 'house15min' THEN team_id END AS team, CASE WHEN v.grain = 'usermonth' THEN account_id
    END AS account, deployment_id, model, call_kind, sum(entries), sum(requests), sum(price), sum(cost), sum(estimated_price),
    sum(estimated), sum(unpriced), sum(uncosted), sum(input_tokens), sum(output_tokens), sum(cached_tokens),
    sum(reasoning_tokens)
  FROM billing_rollup WHERE grain = v.part AND at >= v.done_to AND at < v_to
  GROUP BY at, team, account, deployment_id, model, call_kind;
  UPDATE billing_rollupbuild SET done_to = v_to WHERE grain = v.grain;
  RETURN true;
END $$;
