-- The pinned versions of a route: those of the hold, else those in force when the call counts.
CREATE OR REPLACE FUNCTION billing_pin(r billing_reservation, p_price_key text) RETURNS jsonb
LANGUAGE plpgsql STABLE AS $$
BEGIN
  IF r.pins ? p_price_key THEN
    RETURN r.pins -> p_price_key;
  END IF;
  RETURN (SELECT jsonb_build_object('price', v.price_id, 'cost', v.cost_id, 'rate', v.rate_id)
    FROM billing_versions(ARRAY[p_price_key], r.mode, r.team_id, r.effective_at) v);
END $$;


-- A reservation as `billing_settle` answers it; amounts are text, so that no reader turns them into floats.
CREATE OR REPLACE FUNCTION billing_settled(r billing_reservation, p_replayed boolean) RETURNS jsonb
LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN jsonb_build_object(
    'reservation_id', r.id, 'state', r.state, 'price', r.price::text, 'cost', r.cost::text, 'currency', r.currency,
    'input_tokens', r.input_tokens, 'output_tokens', r.output_tokens, 'estimated', r.estimated,
    'price_missing', r.price_missing, 'overshoot', r.overshoot, 'late', r.late, 'recreated', r.recreated,
    'replayed', p_replayed, 'entries', coalesce((
      SELECT jsonb_agg(jsonb_build_object('id', e.id, 'attempt', a.number, 'kind', e.kind, 'price', e.price::text,
        'cost', e.cost::text) ORDER BY e.recorded_at, e.id)
      FROM billing_ledgerentry e LEFT JOIN billing_usageattempt a ON a.id = e.attempt_id
      WHERE e.reservation_id = r.id), '[]'));
END $$;


-- What a component list costs at the pinned versions, price side and cost side, line by line. A component without a rate
-- makes a line without an amount: unknown, not 0. The whole prompt chooses one tier for all of it; in a version with
-- marginal tiers each component's units above a bound alone have the bound's rate. See `pricing.charge_lines`.
CREATE OR REPLACE FUNCTION billing_priced(
  p_quantities jsonb, p_prompt bigint, p_billed boolean, p_price uuid, p_cost uuid, p_rate uuid
) RETURNS TABLE (
  side text, component text, quantity bigint, unit_price numeric, per_units integer, min_prompt_tokens bigint, amount numeric
) LANGUAGE sql STABLE AS $$
  SELECT s.side, q.component, coalesce(c.quantity, q.quantity), c.price, c.per_units, c.bound,
    -- Multiplied, never divided: exact to the last of 15 decimals.
    c.price * c.quantity * billing_per(c.per_units)
  FROM (VALUES ('price', p_price, p_billed, (SELECT t.factor FROM billing_teamrate t WHERE t.id = p_rate)),
    ('cost', p_cost, p_cost IS NOT NULL, NULL)) AS s(side, version, wanted, factor)
  CROSS JOIN (
    SELECT key AS component, value::bigint AS quantity FROM jsonb_each_text(p_quantities)
    UNION ALL SELECT 'request', 1
  ) q
  LEFT JOIN billing_priceversion v ON v.id = s.version
  LEFT JOIN LATERAL (
    SELECT t.per_units, t.bound, CASE WHEN s.factor IS NULL THEN t.price ELSE billing_even(t.price * s.factor, 9) END AS price,
      CASE WHEN v.tier_mode = 'marginal' THEN least(q.quantity, t.next) - t.bound ELSE q.quantity END AS quantity
    FROM (
      SELECT x.price, x.per_units, x.min_prompt_tokens AS bound,
        coalesce(lead(x.min_prompt_tokens) OVER (ORDER BY x.min_prompt_tokens), 9223372036854775807) AS next
      FROM billing_pricecomponent x WHERE x.version_id = s.version AND x.component = q.component
    ) t
    WHERE CASE WHEN v.tier_mode = 'marginal' THEN t.bound < q.quantity ELSE p_prompt >= t.bound AND p_prompt < t.next END
  ) c ON true
  WHERE s.wanted AND (q.component <> 'request' OR c.price IS NOT NULL)
$$;


DROP FUNCTION IF EXISTS billing_lines(uuid, jsonb, bigint, boolean, uuid, uuid);
-- Books one component list and returns the sums, each in its version's currency.
CREATE OR REPLACE FUNCTION billing_lines(
  p_entry uuid, p_quantities jsonb, p_prompt bigint, p_billed boolean, p_price uuid, p_cost uuid, p_rate uuid,
  OUT price numeric, OUT cost numeric, OUT missing boolean, OUT cost_missing boolean
) LANGUAGE plpgsql AS $$
BEGIN
  WITH l AS (
    INSERT INTO billing_ledgerline
      (entry_id, side, component, quantity, unit_price, per_units, min_prompt_tokens, amount)
    SELECT p_entry, x.* FROM billing_priced(p_quantities, p_prompt, p_billed, p_price, p_cost, p_rate) x
    RETURNING side, amount
  )
  SELECT sum(amount) FILTER (WHERE side = 'price'), sum(amount) FILTER (WHERE side = 'cost'),
    coalesce(bool_or(amount IS NULL) FILTER (WHERE side = 'price'), false),
    coalesce(bool_or(amount IS NULL) FILTER (WHERE side = 'cost'), false)
  INTO price, cost, missing, cost_missing FROM l;
END $$;


-- A cost in the currency of the books: at the exchange rate in force, half-even to 15 decimals. Without a rate it is not
-- known; `native` keeps what is owed in its own currency.
CREATE OR REPLACE FUNCTION billing_exchanged(
  p_cost numeric, p_version uuid, p_currency text, p_at timestamptz,
  OUT cost numeric, OUT native numeric, OUT currency text, OUT exchange_id uuid
) LANGUAGE plpgsql STABLE AS $$
DECLARE
  v_rate numeric;
BEGIN
  cost := p_cost;
  IF p_cost IS NOT NULL THEN
    SELECT v.currency INTO currency FROM billing_priceversion v WHERE v.id = p_version;
  END IF;
  IF p_cost IS NULL OR currency = p_currency THEN
    currency := '';
    RETURN;
  END IF;
  SELECT x.id, x.rate INTO exchange_id, v_rate FROM billing_exchangerate x
  WHERE x.currency = billing_exchanged.currency AND x.to_currency = p_currency AND x.effective_from <= p_at
  ORDER BY x.effective_from DESC LIMIT 1;
  native := p_cost;
  cost := billing_even(p_cost * v_rate, 15);
END $$;


-- The cost version that counts for a deployment: none where it is paid by the hour, or its work would be counted twice.
CREATE OR REPLACE FUNCTION billing_cost_pin(p_cost uuid, p_deployment uuid, p_at timestamptz) RETURNS uuid
LANGUAGE sql STABLE AS $$
  SELECT p_cost WHERE NOT EXISTS (
    SELECT 1 FROM billing_priceversion v WHERE v.price_key = 'provisioned/' || p_deployment AND v.side = 'cost'
      AND v.effective_from <= p_at AND (v.effective_to IS NULL OR v.effective_to > p_at))
$$;


-- Takes back what was booked for a reservation, entry by entry, so that the truth can be booked instead.
CREATE OR REPLACE FUNCTION billing_reverse(r billing_reservation, p_reason text) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  e billing_ledgerentry%ROWTYPE;
  v_id uuid;
BEGIN
  FOR e IN SELECT * FROM billing_ledgerentry WHERE reservation_id = r.id LOOP
    v_id := billing_uuid7();
    INSERT INTO billing_ledgerline
      (entry_id, side, component, quantity, unit_price, per_units, min_prompt_tokens, amount)
    SELECT v_id, side, component, -quantity, unit_price, per_units, min_prompt_tokens, -amount
    FROM billing_ledgerline WHERE entry_id = e.id;
    INSERT INTO billing_ledgerentry (
      id, kind, dedupe_key, effective_at, recorded_at, currency, price, cost, cost_native, cost_currency, price_missing,
      reservation_id, attempt_id, price_version_id, cost_version_id, team_rate_id, exchange_rate_id, team_id, account_id,
      key_id, deployment_id, call_kind, price_key, model, input_tokens, output_tokens, estimated, overshoot, late, recreated,
      supersedes_id, actor, reason
    ) VALUES (
      v_id, 'adjust', e.dedupe_key || ':reversed', e.effective_at, clock_timestamp(), e.currency, -e.price, -e.cost,
      -e.cost_native, e.cost_currency, e.price_missing, e.reservation_id, e.attempt_id, e.price_version_id,
      e.cost_version_id, e.team_rate_id, e.exchange_rate_id, e.team_id, e.account_id, e.key_id, e.deployment_id,
      e.call_kind, e.price_key, e.model, -e.input_tokens, -e.output_tokens, e.estimated, false, true, e.recreated, e.id, 'billing', p_reason
    );
  END LOOP;
END $$;


-- Writes one attempt down, and books it when it used anything. Returns what the payer owes and what it used.
CREATE OR REPLACE FUNCTION billing_attempt(
  r billing_reservation, a jsonb, p_billed boolean, p_late boolean, p_price_before numeric, p_tokens_before bigint,
  OUT used boolean, OUT price_key text, OUT price numeric, OUT cost numeric, OUT missing boolean,
  OUT tokens_in bigint, OUT tokens_out bigint, OUT overshoot boolean, OUT own boolean
) LANGUAGE plpgsql AS $$
DECLARE
  v_quantities jsonb := coalesce(a -> 'quantities', '{}');
  v_attempt uuid := billing_uuid7();
  v_entry uuid := billing_uuid7();
  v_now timestamptz := coalesce((a ->> 'at')::timestamptz, clock_timestamp());
  v_deployment uuid := coalesce((a ->> 'deployment_id')::uuid, r.deployment_id);
  v_kind text := coalesce(a ->> 'kind', r.kind);
  v_flags jsonb := coalesce(a -> 'flags', '[]');
  v_reported numeric := a ->> 'reported_cost';
  v_written bigint;
  v_pin jsonb;
  v_cost_version uuid;
  l record;
  x record;
BEGIN
  own := v_kind = r.kind;
  price_key := coalesce(nullif(a ->> 'price_key', ''), r.price_key);
  SELECT coalesce(sum(value::bigint) FILTER (WHERE key LIKE 'input%' OR key LIKE 'cache\_%'), 0),
    coalesce(sum(value::bigint) FILTER (WHERE key IN ('output', 'reasoning', 'output_audio', 'rejected_prediction')), 0),
    coalesce(sum(value::bigint) FILTER (WHERE key LIKE 'cache\_write%'), 0)
  INTO tokens_in, tokens_out, v_written FROM jsonb_each_text(v_quantities);
  used := v_quantities <> '{}' OR a ->> 'outcome' = 'completed';
  overshoot := false;
  missing := false;

  v_pin := billing_pin(r, price_key);
  v_cost_version := billing_cost_pin((v_pin ->> 'cost')::uuid, v_deployment, r.effective_at);
  used := used AND (p_billed OR v_cost_version IS NOT NULL);
  IF used THEN
    l := billing_lines(v_entry, v_quantities, tokens_in, p_billed, (v_pin ->> 'price')::uuid, v_cost_version,
      (v_pin ->> 'rate')::uuid);
    price := l.price;
    missing := l.missing;
    x := billing_exchanged(l.cost, v_cost_version, r.currency, r.effective_at);
    cost := x.cost;
    IF l.cost_missing THEN
      v_flags := v_flags || '"cost_incomplete"';
    END IF;
    -- A provider's own figure is a witness: it is never booked, and where it says otherwise somebody should look.
    IF abs(v_reported - coalesce(x.native, cost)) > (a ->> 'tolerance')::numeric * greatest(v_reported, coalesce(x.native, cost))
      AND a ->> 'reported_currency' = coalesce(nullif(x.currency, ''), r.currency) THEN
      v_flags := v_flags || '"cost_disagrees"';
    END IF;
  END IF;

  INSERT INTO billing_usageattempt (
    id, created_at, reservation_id, number, outcome, billed, kind, team_id, deployment_id, price_key, requested_model,
    served_model, upstream_id, request_id, turn_id, finish_reason, finish_raw, error, source, estimated, estimate_reason,
    input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, reasoning_tokens, quantities, raw_usage,
    reported_cost, reported_currency, local_input_tokens, local_output_tokens, tokenizer, ttft_ms, total_ms, flags,
    queue_ms, itl_ms, prompt_facts
  ) VALUES (
    v_attempt, v_now, r.id, (a ->> 'number')::integer, a ->> 'outcome', p_billed, v_kind, r.team_id, v_deployment,
    price_key, a ->> 'requested_model', a ->> 'served_model', a ->> 'upstream_id', r.request_id, r.turn_id,
    a ->> 'finish_reason', a ->> 'finish_raw', a ->> 'error', a ->> 'source', (a ->> 'estimated')::boolean,
    a ->> 'estimate_reason', tokens_in, tokens_out, coalesce((v_quantities ->> 'cache_read')::bigint, 0),
    v_written, coalesce((v_quantities ->> 'reasoning')::bigint, 0), v_quantities, nullif(a -> 'raw_usage', 'null'),
    v_reported, CASE WHEN v_reported IS NULL THEN '' ELSE a ->> 'reported_currency' END,
    (a ->> 'local_input_tokens')::bigint, (a ->> 'local_output_tokens')::bigint, a ->> 'tokenizer',
    (a ->> 'ttft_ms')::integer, (a ->> 'total_ms')::integer, v_flags,
    (a ->> 'queue_ms')::integer, (a ->> 'itl_ms')::real, nullif(a -> 'prompt_facts', 'null')
  );
  IF NOT used THEN
    RETURN;
  END IF;

  IF NOT p_billed THEN
    price := 0;
  END IF;
  overshoot := p_billed AND (
    coalesce(p_price_before + price > r.held_price, false)
    OR own AND (tokens_out > r.held_output_tokens
      OR p_tokens_before + tokens_in + tokens_out > r.held_input_tokens + r.held_output_tokens));
  INSERT INTO billing_ledgerentry (
    id, kind, dedupe_key, effective_at, recorded_at, currency, price, cost, cost_native, cost_currency, price_missing,
    reservation_id, attempt_id, price_version_id, cost_version_id, team_rate_id, exchange_rate_id, team_id, account_id,
    key_id, deployment_id, call_kind, price_key, model, input_tokens, output_tokens, estimated, overshoot, late, recreated,
    supersedes_id, actor, reason
  ) VALUES (
    v_entry, 'charge', r.id || ':' || (a ->> 'number'), r.effective_at, v_now, r.currency, price, cost, x.native, x.currency,
    missing, r.id, v_attempt, (v_pin ->> 'price')::uuid, v_cost_version, (v_pin ->> 'rate')::uuid, x.exchange_id, r.team_id,
    r.account_id, r.key_id, v_deployment, v_kind, price_key,
    coalesce(nullif(a ->> 'requested_model', ''), nullif(a ->> 'served_model', ''), price_key),
    tokens_in, tokens_out, (a ->> 'estimated')::boolean, overshoot, p_late, r.recreated, NULL, '', ''
  );
END $$;


-- Books the attempts of a reservation and ends it. A second call returns what the first booked.
--
-- In: reservation_id, attempts[], state? (released: the payer owes nothing), by (caller | sweeper), hold? (as given to
-- billing_reserve: re-creates a reservation that a crash forgot), at? (here and in attempts: when it ended; only what
-- is seeded says so). Out: see billing_settled, or {missing: true}.
-- No window is touched: lines become `ended` and the next reserve folds them, so a durable commit blocks nobody.
CREATE OR REPLACE FUNCTION billing_settle(p jsonb) RETURNS jsonb
LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  v_id uuid := p ->> 'reservation_id';
  v_by text := coalesce(p ->> 'by', 'caller');
  v_released boolean := coalesce(p ->> 'state', '') = 'released';
  v_commit text := current_setting('synchronous_commit');
  v_late boolean;
  r billing_reservation%ROWTYPE;
  a jsonb;
  x record;
  v_billed boolean;
  v_any boolean := false;
  v_turn boolean := coalesce(p ->> 'state', '') = 'settled';
  v_price numeric;
  v_cost numeric;
  v_missing boolean := false;
  v_estimated boolean := false;
  v_overshoot boolean := false;
  v_in bigint := 0;
  v_out bigint := 0;
  v_by_key jsonb := '{}';
  v_old record;
BEGIN
  SELECT * INTO r FROM billing_reservation WHERE id = v_id FOR UPDATE;
  IF NOT FOUND THEN
    IF p -> 'hold' IS NULL THEN
      RETURN '{"missing": true}';
    END IF;
    PERFORM billing_reserve((p -> 'hold') || '{"force": true}');
    PERFORM set_config('synchronous_commit', v_commit, true);
    SELECT * INTO r FROM billing_reservation WHERE id = v_id FOR UPDATE;
  END IF;
  IF r.settled_at IS NOT NULL AND (r.settled_by <> 'sweeper' OR v_by = 'sweeper') THEN
    RETURN billing_settled(r, true);
  END IF;

  v_late := r.state = 'expired' OR r.settled_at IS NOT NULL;
  IF r.settled_at IS NOT NULL THEN
    PERFORM billing_reverse(r, 'The server''s own count replaces the estimate made when the process died.');
  END IF;
  FOR a IN SELECT value FROM jsonb_array_elements(p -> 'attempts') LOOP
    v_billed := NOT v_released AND (a ->> 'billed')::boolean;
    x := billing_attempt(r, a, v_billed, v_late, coalesce(v_price, 0), v_in + v_out);
    CONTINUE WHEN NOT x.used;
    v_cost := CASE WHEN x.cost IS NULL THEN v_cost ELSE coalesce(v_cost, 0) + x.cost END;
    CONTINUE WHEN NOT v_billed;
    v_any := true;
    v_turn := v_turn OR x.own;
    v_price := CASE WHEN x.price IS NULL THEN v_price ELSE coalesce(v_price, 0) + x.price END;
    v_missing := v_missing OR x.missing;
    v_overshoot := v_overshoot OR x.overshoot;
    v_estimated := v_estimated OR (a ->> 'estimated')::boolean;
    IF NOT x.own THEN
      x.tokens_in := 0;
      x.tokens_out := 0;
    END IF;
    v_in := v_in + x.tokens_in;
    v_out := v_out + x.tokens_out;
    v_by_key := v_by_key || jsonb_build_object(x.price_key, jsonb_build_object(
      'money', coalesce((v_by_key -> x.price_key ->> 'money')::numeric, 0) + coalesce(x.price, 0),
      'tokens', coalesce((v_by_key -> x.price_key ->> 'tokens')::bigint, 0) + x.tokens_in + x.tokens_out));
  END LOOP;
  v_any := v_any OR v_turn;
  IF v_price IS NULL AND NOT v_missing THEN
    v_price := 0;
  END IF;

  IF v_late THEN
    -- The held lines have ended long ago: the truth is a new line, less what an estimate booked before.
    INSERT INTO billing_reservationline (reservation_id, window_id, unit, price_key, amount, spent, state)
    SELECT r.id, l.window_id, l.unit, l.price_key, 0, billing_share(l.unit, l.price_key, v_turn, v_price, v_in + v_out, v_by_key)
      - sum(l.spent), 1
    FROM billing_reservationline l WHERE l.reservation_id = r.id GROUP BY l.window_id, l.unit, l.price_key;
  ELSE
    UPDATE billing_reservationline l SET state = 1,
      spent = billing_share(l.unit, l.price_key, v_turn, v_price, v_in + v_out, v_by_key)
    WHERE l.reservation_id = r.id AND l.state = 0;
  END IF;
  UPDATE billing_reservation SET
    state = CASE WHEN state <> 'held' THEN state WHEN v_any THEN 'settled' ELSE 'released' END,
    ended_at = coalesce(ended_at, (p ->> 'at')::timestamptz, clock_timestamp()),
    settled_at = coalesce((p ->> 'at')::timestamptz, clock_timestamp()), price = v_price, cost = v_cost,
    input_tokens = v_in, output_tokens = v_out, settled_by = v_by, estimated = v_estimated, price_missing = v_missing,
    overshoot = v_overshoot, late = v_late
  WHERE id = v_id RETURNING * INTO r;
  RETURN billing_settled(r, false);
END $$;


-- What one window of a reservation was used: its money, its tokens, or the one turn it admitted.
CREATE OR REPLACE FUNCTION billing_share(
  p_unit text, p_price_key text, p_turn boolean, p_price numeric, p_tokens bigint, p_by_key jsonb
) RETURNS numeric LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE
    WHEN p_unit = 'requests' THEN p_turn::integer
    WHEN p_price_key <> '' THEN coalesce((p_by_key -> p_price_key ->> p_unit)::numeric, 0)
    WHEN p_unit = 'tokens' THEN p_tokens
    ELSE coalesce(p_price, 0) END
$$;


-- Books what a process that died left of one call, from the reservation alone. What was seen of an answer is billed as an
-- estimate. A call that was sent and not seen to write is on record too, as our cost and nobody's price, like one that a
-- person stopped before its first token. So is one of which nothing is known (it died between two pulses, or has none): it
-- may have been sent, its input was what was held at most, and the flag `perhaps_sent` says so.
CREATE OR REPLACE FUNCTION billing_orphan(p_id uuid) RETURNS jsonb
LANGUAGE plpgsql AS $$
DECLARE
  r billing_reservation%ROWTYPE;
BEGIN
  SELECT * INTO r FROM billing_reservation WHERE id = p_id FOR UPDATE;
  IF NOT FOUND THEN
    RETURN '{"missing": true}';
  END IF;
  IF r.seen_output_tokens = 0 THEN
    -- Expired rather than released: should its truth come after all, it is a turn that was admitted.
    UPDATE billing_reservation SET state = 'expired', ended_at = clock_timestamp() WHERE id = r.id AND state = 'held';
    UPDATE billing_reservationline SET state = 1 WHERE reservation_id = r.id AND state = 0;
  END IF;
  RETURN billing_settle(jsonb_build_object('reservation_id', r.id, 'by', 'sweeper',
    'state', CASE WHEN r.seen_output_tokens > 0 THEN 'settled' END, 'attempts',
    jsonb_build_array(jsonb_build_object(
      'number', 0, 'outcome', 'failed', 'billed', r.seen_output_tokens > 0, 'source', 'local', 'estimated', true,
      'estimate_reason', 'sweeper', 'error', 'process_died', 'requested_model', '', 'served_model', '',
      'upstream_id', '', 'finish_reason', '', 'finish_raw', '', 'tokenizer', '',
      'flags', CASE WHEN r.seen_input_tokens + r.seen_output_tokens > 0 THEN '[]' ELSE '["perhaps_sent"]' END::jsonb,
      'quantities', jsonb_strip_nulls(jsonb_build_object(
        'input', coalesce(nullif(r.seen_input_tokens, 0), r.held_input_tokens),
        'output', nullif(r.seen_output_tokens, 0)))))));
END $$;


-- Ends the holds of processes that died. A hold that another reserve expired meanwhile is still owed what was seen.
CREATE OR REPLACE FUNCTION billing_sweep(p_limit integer) RETURNS uuid[]
LANGUAGE plpgsql AS $$
DECLARE
  r record;
  v_ids uuid[] := '{}';
BEGIN
  FOR r IN
    SELECT id FROM billing_reservation
    WHERE state = 'held' AND expires_at < clock_timestamp() OR state = 'expired' AND settled_at IS NULL
    ORDER BY id LIMIT p_limit FOR UPDATE SKIP LOCKED
  LOOP
    PERFORM billing_orphan(r.id);
    v_ids := v_ids || r.id;
  END LOOP;
  RETURN v_ids;
END $$;
