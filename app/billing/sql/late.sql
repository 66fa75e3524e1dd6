-- The truth about an attempt that came after it was booked: one entry with the difference, at the versions of the first.
--
-- In: entry_id (of the attempt's charge), quantities (all of it as it truly was), estimated, reason, actor, dedupe_key.
-- Out: {id, attempt, kind, price, cost}, or {missing: true}, {reversed: true}, {conflict: true}, {same: true}.
CREATE OR REPLACE FUNCTION billing_adjust(p jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
  v_key text := 'adjust:' || (p ->> 'dedupe_key');
  v_id uuid := billing_uuid7();
  v_price numeric;
  v_cost numeric;
  v_missing boolean;
  v_lines integer;
  v_in bigint;
  v_out bigint;
  v_tokens bigint;
  e billing_ledgerentry%ROWTYPE;
  a billing_usageattempt%ROWTYPE;
  r billing_reservation%ROWTYPE;
  x record;
BEGIN
  SELECT * INTO e FROM billing_ledgerentry WHERE id = (p ->> 'entry_id')::uuid AND kind = 'charge' AND attempt_id IS NOT NULL;
  IF NOT FOUND THEN
    RETURN '{"missing": true}';
  END IF;
  SELECT * INTO r FROM billing_reservation WHERE id = e.reservation_id FOR UPDATE;
  SELECT * INTO a FROM billing_usageattempt WHERE id = e.attempt_id;
  SELECT l.id, l.supersedes_id, l.kind, l.price, l.cost INTO x FROM billing_ledgerentry l WHERE l.dedupe_key = v_key;
  IF FOUND THEN
    RETURN CASE WHEN x.supersedes_id <> e.id THEN '{"conflict": true}'
      ELSE jsonb_build_object('id', x.id, 'attempt', a.number, 'kind', x.kind, 'price', x.price::text, 'cost', x.cost::text)
      END;
  ELSIF EXISTS (SELECT 1 FROM billing_ledgerentry WHERE dedupe_key = e.dedupe_key || ':reversed') THEN
    RETURN '{"reversed": true}';
  END IF;

  SELECT coalesce(sum(value::bigint) FILTER (WHERE key LIKE 'input%' OR key LIKE 'cache\_%'), 0),
    coalesce(sum(value::bigint) FILTER (WHERE key IN ('output', 'reasoning', 'output_audio', 'rejected_prediction')), 0)
  INTO v_in, v_out FROM jsonb_each_text(p -> 'quantities');
  -- All of it as it truly was, less all that is booked: another tier of the prompt takes its lines back and writes new ones.
  INSERT INTO billing_ledgerline (entry_id, side, component, quantity, unit_price, per_units, min_prompt_tokens, amount)
  SELECT v_id, d.side, d.component, sum(d.quantity), d.unit_price, d.per_units, d.min_prompt_tokens, sum(d.amount)
  FROM (
    SELECT * FROM billing_priced(p -> 'quantities', v_in, a.billed, e.price_version_id, e.cost_version_id, e.team_rate_id)
    UNION ALL
    SELECT l.side, l.component, -l.quantity, l.unit_price, l.per_units, l.min_prompt_tokens, -l.amount
    FROM billing_ledgerline l JOIN billing_ledgerentry b ON b.id = l.entry_id WHERE b.attempt_id = e.attempt_id
  ) d
  GROUP BY d.side, d.component, d.unit_price, d.per_units, d.min_prompt_tokens HAVING sum(d.quantity) <> 0;
  SELECT count(*), coalesce(sum(amount) FILTER (WHERE side = 'price'), 0), sum(amount) FILTER (WHERE side = 'cost'),
    coalesce(bool_or(amount IS NULL) FILTER (WHERE side = 'price'), false)
  INTO v_lines, v_price, v_cost, v_missing FROM billing_ledgerline WHERE entry_id = v_id;
  IF v_lines = 0 THEN
    RETURN '{"same": true}';
  END IF;
  SELECT v_in - sum(input_tokens), v_out - sum(output_tokens) INTO v_in, v_out
  FROM billing_ledgerentry WHERE attempt_id = e.attempt_id;
  -- At the exchange rate of the first entry, not today's.
  SELECT billing_even(v_cost * f.rate, 15) AS cost, v_cost AS native INTO x
  FROM (SELECT 1) one LEFT JOIN billing_exchangerate f ON f.id = e.exchange_rate_id;
  IF e.cost_currency = '' THEN
    x.cost := v_cost;
    x.native := NULL;
  END IF;
  INSERT INTO billing_ledgerentry (
    id, kind, dedupe_key, effective_at, recorded_at, currency, price, cost, cost_native, cost_currency, price_missing,
    reservation_id, attempt_id, price_version_id, cost_version_id, team_rate_id, exchange_rate_id, team_id, account_id,
    key_id, deployment_id, call_kind, price_key, model, input_tokens, output_tokens, estimated, overshoot, late, recreated,
    supersedes_id, actor, reason
  ) VALUES (
    v_id, 'adjust', v_key, e.effective_at, clock_timestamp(), e.currency, v_price, x.cost, x.native, e.cost_currency,
    v_missing, e.reservation_id, e.attempt_id, e.price_version_id, e.cost_version_id, e.team_rate_id, e.exchange_rate_id,
    e.team_id, e.account_id, e.key_id, e.deployment_id, e.call_kind, e.price_key, e.model, v_in, v_out,
    (p ->> 'estimated')::boolean, false, true, e.recreated, e.id, p ->> 'actor', left(p ->> 'reason', 400)
  );

  v_tokens := CASE WHEN a.kind = r.kind AND a.billed THEN v_in + v_out ELSE 0 END;
  -- The windows the call was held in learn of it as of any truth that comes late: by a new line.
  INSERT INTO billing_reservationline (reservation_id, window_id, unit, price_key, amount, spent, state)
  SELECT DISTINCT r.id, l.window_id, l.unit, l.price_key, 0,
    CASE l.unit WHEN 'money' THEN v_price WHEN 'tokens' THEN v_tokens ELSE 0 END, 1
  FROM billing_reservationline l WHERE l.reservation_id = r.id AND l.price_key IN ('', e.price_key);
  UPDATE billing_reservation SET price = coalesce(price, 0) + v_price,
    cost = CASE WHEN x.cost IS NULL THEN cost ELSE coalesce(cost, 0) + x.cost END, late = true,
    input_tokens = input_tokens + CASE WHEN a.kind = r.kind AND a.billed THEN v_in ELSE 0 END,
    output_tokens = output_tokens + CASE WHEN a.kind = r.kind AND a.billed THEN v_out ELSE 0 END
  WHERE id = r.id;
  RETURN jsonb_build_object('id', v_id, 'attempt', a.number, 'kind', 'adjust', 'price', v_price::text, 'cost', x.cost::text);
END $$;


-- Books what deployments cost by the hour, for every full hour that has ended and is not booked yet. Returns how many.
-- Nothing remembers how far it came: each hour has its own dedupe key, so hours missed while all was down are caught up.
CREATE OR REPLACE FUNCTION billing_provision(p_currency text, p_at timestamptz) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
  h record;
  x record;
  v_id uuid;
  v_count integer := 0;
BEGIN
  PERFORM pg_advisory_xact_lock(hashtextextended('provisioned', 0));
  FOR h IN
    SELECT v.id AS version, substr(v.price_key, 13)::uuid AS deployment, c.component, c.price, t AS at,
      v.price_key || ':' || to_char(t AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24') AS dedupe
    FROM billing_priceversion v JOIN billing_pricecomponent c ON c.version_id = v.id
    CROSS JOIN LATERAL generate_series(
      v.effective_from, least(coalesce(v.effective_to, p_at), p_at) - interval '1 hour', '1 hour') t
    WHERE v.price_key LIKE 'provisioned/%' AND v.side = 'cost' AND v.effective_from < p_at
      AND NOT EXISTS (SELECT 1 FROM billing_ledgerentry e
        WHERE e.dedupe_key = v.price_key || ':' || to_char(t AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24'))
    ORDER BY t
  LOOP
    v_id := billing_uuid7();
    SELECT * INTO x FROM billing_exchanged(h.price, h.version, p_currency, h.at);
    INSERT INTO billing_ledgerline (entry_id, side, component, quantity, unit_price, per_units, min_prompt_tokens, amount)
    VALUES (v_id, 'cost', h.component, 1, h.price, 1, 0, h.price);
    INSERT INTO billing_ledgerentry (
      id, kind, dedupe_key, effective_at, recorded_at, currency, price, cost, cost_native, cost_currency, price_missing,
      cost_version_id, exchange_rate_id, deployment_id, call_kind, price_key, model, input_tokens, output_tokens, estimated,
      overshoot, late, recreated, actor, reason
    ) VALUES (
      v_id, 'charge', h.dedupe, h.at, clock_timestamp(), p_currency, 0, x.cost, x.native, x.currency, false,
      h.version, x.exchange_id, h.deployment, 'provisioned', 'provisioned/' || h.deployment, '', 0, 0, false,
      false, h.at < p_at - interval '2 hours', false, 'billing', 'An hour of a server, used or not.'
    );
    v_count := v_count + 1;
  END LOOP;
  RETURN v_count;
END $$;
