-- The price and cost versions in force for each route at an instant; a team's own rate goes before the general one.
CREATE OR REPLACE FUNCTION billing_versions(p_price_keys text[], p_mode text, p_team uuid, p_at timestamptz)
RETURNS TABLE (price_key text, price_id uuid, cost_id uuid, dearest jsonb)
LANGUAGE sql STABLE AS $$
  SELECT k.price_key, p.id, c.id, p.dearest
  FROM unnest(p_price_keys) AS k(price_key)
  LEFT JOIN LATERAL (
    SELECT v.id, v.dearest FROM billing_priceversion v
    WHERE v.price_key = k.price_key AND v.side = 'price' AND v.mode = p_mode AND v.effective_from <= p_at
      AND (v.effective_to IS NULL OR v.effective_to > p_at) AND (v.team_id IS NULL OR v.team_id = p_team)
    ORDER BY v.team_id NULLS LAST LIMIT 1
  ) p ON true
  LEFT JOIN LATERAL (
    SELECT v.id FROM billing_priceversion v
    WHERE v.price_key = k.price_key AND v.side = 'cost' AND v.mode = p_mode AND v.effective_from <= p_at
      AND (v.effective_to IS NULL OR v.effective_to > p_at) AND (v.team_id IS NULL OR v.team_id = p_team)
    ORDER BY v.team_id NULLS LAST LIMIT 1
  ) c ON true
$$;


-- What a call may cost at most, as straight lines over its output: fixed[i] + rate[i] × output tokens, one for each
-- route and each price tier the prompt may fall in.
CREATE OR REPLACE FUNCTION billing_dearest(
  p_price_keys text[], p_mode text, p_team uuid, p_at timestamptz, p_input bigint, p_output bigint,
  OUT pins jsonb, OUT fixed numeric[], OUT rate numeric[], OUT missing_key text, OUT missing_component text
) LANGUAGE plpgsql STABLE AS $$
DECLARE
  v record;
  t record;
BEGIN
  pins := '{}';
  fixed := '{}';
  rate := '{}';
  FOR v IN SELECT * FROM billing_versions(p_price_keys, p_mode, p_team, p_at) LOOP
    pins := pins || jsonb_build_object(v.price_key, jsonb_build_object('price', v.price_id, 'cost', v.cost_id));
    IF v.price_id IS NULL THEN
      missing_key := v.price_key;
      CONTINUE;
    END IF;
    FOR t IN
      SELECT x."in" AS in_rate, x."out" AS out_rate, x.upto, x.fee
      FROM jsonb_to_recordset(v.dearest) AS x("from" bigint, upto bigint, "in" numeric, "out" numeric, fee numeric)
      WHERE x."from" <= p_input
    LOOP
      IF (t.in_rate IS NULL AND p_input > 0) OR (t.out_rate IS NULL AND p_output > 0) THEN
        missing_key := v.price_key;
        missing_component := CASE WHEN t.in_rate IS NULL AND p_input > 0 THEN 'input' ELSE 'output' END;
      END IF;
      fixed := fixed || (t.fee + coalesce(t.in_rate, 0) * least(p_input, coalesce(t.upto, p_input)));
      rate := rate || coalesce(t.out_rate, 0);
    END LOOP;
  END LOOP;
END $$;


-- Ends overdue holds, of some windows or of all, passing over those another process works on. Returns their ids.
CREATE OR REPLACE FUNCTION billing_expire(p_windows uuid[], p_limit integer) RETURNS uuid[]
LANGUAGE plpgsql AS $$
DECLARE
  v_ids uuid[];
BEGIN
  WITH due AS (
    SELECT r.id FROM billing_reservation r
    WHERE r.state = 'held' AND r.expires_at < clock_timestamp()
      AND (p_windows IS NULL OR EXISTS (
        SELECT 1 FROM billing_reservationline l WHERE l.reservation_id = r.id AND l.window_id = ANY (p_windows)))
    ORDER BY r.expires_at LIMIT p_limit FOR UPDATE SKIP LOCKED
  ), gone AS (
    UPDATE billing_reservation r SET state = 'expired', ended_at = clock_timestamp()
    FROM due WHERE r.id = due.id RETURNING r.id
  ), freed AS (
    UPDATE billing_reservationline l SET state = 1 FROM gone WHERE l.reservation_id = gone.id AND l.state = 0
  )
  SELECT array_agg(gone.id) INTO v_ids FROM gone;
  RETURN v_ids;
END $$;


-- A reservation as `billing_reserve` answers it.
CREATE OR REPLACE FUNCTION billing_held(r billing_reservation, p_replayed boolean, p_soft uuid[]) RETURNS jsonb
LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN jsonb_build_object(
    'reservation_id', r.id, 'state', r.state, 'output_tokens', r.held_output_tokens,
    'shrunk', r.held_output_tokens < r.asked_output_tokens, 'price', r.held_price::text, 'currency', r.currency,
    'effective_at', r.effective_at, 'expires_at', r.expires_at, 'replayed', p_replayed,
    'soft', CASE WHEN cardinality(p_soft) > 0 THEN billing_limit_json(p_soft) ELSE '[]' END);
END $$;


-- Windows as limits, those that reset last first.
CREATE OR REPLACE FUNCTION billing_limit_json(p_windows uuid[]) RETURNS jsonb
LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN (SELECT coalesce(jsonb_agg(jsonb_build_object(
    'budget_id', b.id, 'scope', b.scope, 'name', b.name, 'unit', b.unit, 'period', b.period, 'hard', b.hard,
    'price_key', nullif(b.price_key, ''), 'limit', w.limit_snapshot::text, 'spent', w.spent::text,
    'held', w.held::text, 'resets_at', CASE WHEN b.period <> 'lifetime' THEN w.ends_at END
  ) ORDER BY w.ends_at DESC, w.limit_snapshot - w.spent - w.held), '[]')
  FROM billing_budgetwindow w JOIN billing_budget b ON b.id = w.budget_id WHERE w.id = ANY (p_windows));
END $$;


-- Holds what a call may cost at most in every window of its payer, or nothing at all.
--
-- In: reservation_id, team_id, account_id, key_id, kind, price_key, fallback_price_keys[], mode, input_tokens,
-- max_output_tokens, min_output_tokens, currency, allow_unlimited, effective_at?, expires_at? | ttl_seconds, dedupe_key,
-- fingerprint, deployment_id, turn_id, request_id; `force` re-creates a forgotten hold without asking for room.
-- Out: the reservation (see billing_held), or {refused: limit}, {no_budget: true}, {price_missing: {…}}, {conflict: true}.
CREATE OR REPLACE FUNCTION billing_reserve(p jsonb) RETURNS jsonb
LANGUAGE plpgsql AS $$
DECLARE
  v_id uuid := p ->> 'reservation_id';
  v_team uuid := p ->> 'team_id';
  v_account uuid := p ->> 'account_id';
  v_key uuid := p ->> 'key_id';
  v_kind text := p ->> 'kind';
  v_now timestamptz := clock_timestamp();
  v_at timestamptz := coalesce((p ->> 'effective_at')::timestamptz, v_now);
  v_input bigint := p ->> 'input_tokens';
  v_asked bigint := p ->> 'max_output_tokens';
  v_floor bigint := least(v_asked, (p ->> 'min_output_tokens')::bigint);
  v_force boolean := coalesce((p ->> 'force')::boolean, false);
  v_dedupe text := coalesce(p ->> 'dedupe_key', '');
  v_keys text[] := ARRAY[p ->> 'price_key'] || ARRAY(SELECT jsonb_array_elements_text(p -> 'fallback_price_keys'));
  r billing_reservation%ROWTYPE;
  d record;
  s record;
  w record;
  f_ids uuid[];
  f_amounts numeric[];
  f_spents numeric[];
  v_amounts numeric[];
  v_full uuid[];
  v_short uuid[];
  v_soft uuid[];
  v_fits numeric;
  v_bound numeric;
  v_price numeric;
BEGIN
  -- A hold that a crash forgets costs nobody money: settling re-creates it. Lasts to the end of the transaction.
  PERFORM set_config('synchronous_commit', 'off', true);
  SELECT * INTO r FROM billing_reservation WHERE id = v_id;
  IF NOT FOUND AND v_dedupe <> '' THEN
    SELECT * INTO r FROM billing_reservation WHERE team_id = v_team AND dedupe_key = v_dedupe;
  END IF;
  IF r.id IS NOT NULL THEN
    RETURN CASE WHEN r.fingerprint <> coalesce(p ->> 'fingerprint', '') THEN '{"conflict": true}'
      ELSE billing_held(r, true, NULL) END;
  END IF;

  SELECT * INTO d FROM billing_dearest(v_keys, p ->> 'mode', v_team, v_at, v_input, v_asked);
  SELECT * INTO s FROM billing_windows(v_team, v_account, v_key, v_keys, v_kind, v_at);
  IF NOT v_force THEN
    IF d.missing_key IS NOT NULL AND 'money' = ANY (s.units) THEN
      RETURN jsonb_build_object('price_missing',
        jsonb_build_object('price_key', d.missing_key, 'component', d.missing_component));
    END IF;
    IF 'money' <> ALL (coalesce(s.units, '{}')) AND NOT (p ->> 'allow_unlimited')::boolean
      AND (0 < ANY (d.fixed) OR 0 < ANY (d.rate)) THEN
      RETURN '{"no_budget": true}';
    END IF;
  END IF;

  -- Ascending ids for everyone, so that no two calls wait for each other.
  PERFORM 1 FROM billing_budgetwindow WHERE id = ANY (s.ids) ORDER BY id FOR NO KEY UPDATE;
  FOR v_try IN 1..2 LOOP
    WITH f AS (
      UPDATE billing_reservationline SET state = 2 WHERE window_id = ANY (s.ids) AND state = 1
      RETURNING window_id, amount, spent
    ), g AS (SELECT window_id, sum(amount) AS amount, sum(spent) AS spent FROM f GROUP BY window_id)
    SELECT array_agg(window_id), array_agg(amount), array_agg(spent) INTO f_ids, f_amounts, f_spents FROM g;

    v_fits := 'Infinity';
    v_full := '{}';
    v_short := '{}';
    v_soft := '{}';
    FOR w IN
      SELECT x.id, x.unit, x.hard,
        b.limit_snapshot - b.spent - b.held + coalesce(f.amount - f.spent, 0) AS room
      FROM unnest(s.ids, s.units, s.hards) AS x(id, unit, hard)
      JOIN billing_budgetwindow b ON b.id = x.id
      LEFT JOIN unnest(f_ids, f_amounts, f_spents) AS f(id, amount, spent) ON f.id = x.id
    LOOP
      v_bound := 'Infinity';
      IF w.unit = 'tokens' THEN
        v_bound := w.room - v_input;
      ELSIF w.unit = 'requests' THEN
        v_bound := CASE WHEN w.room >= 1 THEN 'Infinity' ELSE -1 END;
      ELSE
        FOR i IN 1 .. cardinality(d.fixed) LOOP
          -- What costs nothing passes a limit of 0, and one that was overshot.
          CONTINUE WHEN d.fixed[i] = 0 AND d.rate[i] = 0;
          v_bound := least(v_bound, CASE WHEN w.room < d.fixed[i] THEN -1 WHEN d.rate[i] = 0 THEN 'Infinity'
            ELSE div(w.room - d.fixed[i], d.rate[i]) END);
        END LOOP;
      END IF;
      IF v_bound < v_asked THEN
        IF w.hard THEN
          v_full := v_full || w.id;
          v_fits := least(v_fits, v_bound);
          IF v_bound < v_floor THEN
            v_short := v_short || w.id;
          END IF;
        ELSE
          v_soft := v_soft || w.id;
        END IF;
      END IF;
    END LOOP;
    EXIT WHEN v_force OR v_fits >= v_asked OR v_try = 2;

    -- No room for all of it: holds of processes that died may be in the way.
    UPDATE billing_budgetwindow b SET held = b.held - f.amount, spent = b.spent + f.spent
    FROM unnest(f_ids, f_amounts, f_spents) AS f(id, amount, spent) WHERE b.id = f.id;
    f_ids := NULL;
    EXIT WHEN billing_expire(v_full, 1000) IS NULL;
  END LOOP;
  IF cardinality(v_short) > 0 AND NOT v_force THEN
    IF f_ids IS NOT NULL THEN
      UPDATE billing_budgetwindow b SET held = b.held - f.amount, spent = b.spent + f.spent
      FROM unnest(f_ids, f_amounts, f_spents) AS f(id, amount, spent) WHERE b.id = f.id;
    END IF;
    RETURN jsonb_build_object('refused', billing_limit_json(v_short));
  END IF;

  r.held_output_tokens := CASE WHEN v_force THEN v_asked ELSE least(v_asked, v_fits) END;
  IF d.missing_key IS NULL THEN
    SELECT max(x.fixed + x.rate * r.held_output_tokens) INTO v_price FROM unnest(d.fixed, d.rate) AS x(fixed, rate);
  END IF;
  INSERT INTO billing_reservation (
    id, created_at, state, kind, team_id, account_id, key_id, deployment_id, turn_id, request_id, dedupe_key, fingerprint,
    price_key, mode, price_version_id, pins, currency, held_input_tokens, held_output_tokens, asked_output_tokens, held_price,
    effective_at, heartbeat_at, expires_at, seen_input_tokens, seen_output_tokens, settled_by, estimated, price_missing,
    overshoot, late, recreated
  ) VALUES (
    v_id, v_now, 'held', v_kind, v_team, v_account, v_key, (p ->> 'deployment_id')::uuid, (p ->> 'turn_id')::uuid,
    coalesce(p ->> 'request_id', ''), v_dedupe, coalesce(p ->> 'fingerprint', ''), p ->> 'price_key', p ->> 'mode',
    (d.pins -> (p ->> 'price_key') ->> 'price')::uuid, d.pins, p ->> 'currency', v_input, r.held_output_tokens, v_asked,
    v_price, v_at, v_now,
    coalesce((p ->> 'expires_at')::timestamptz, v_now + (p ->> 'ttl_seconds')::integer * interval '1 second'),
    0, 0, '', false, d.missing_key IS NOT NULL, false, false, v_force
  ) ON CONFLICT DO NOTHING RETURNING * INTO r;
  IF NOT FOUND THEN
    -- The same call won on another connection. Ended lines folded above are put back for the next one.
    UPDATE billing_budgetwindow b SET held = b.held - f.amount, spent = b.spent + f.spent
    FROM unnest(f_ids, f_amounts, f_spents) AS f(id, amount, spent) WHERE b.id = f.id;
    RETURN billing_reserve(p);
  END IF;

  IF s.ids IS NOT NULL THEN
    v_amounts := ARRAY(
      SELECT CASE x.unit WHEN 'money' THEN coalesce(v_price, 0) WHEN 'tokens' THEN v_input + r.held_output_tokens ELSE 1 END
      FROM unnest(s.units) WITH ORDINALITY AS x(unit, n) ORDER BY x.n);
    UPDATE billing_budgetwindow b
    SET held = b.held + x.amount - coalesce(f.amount, 0), spent = b.spent + coalesce(f.spent, 0)
    FROM unnest(s.ids, v_amounts) AS x(id, amount)
    LEFT JOIN unnest(f_ids, f_amounts, f_spents) AS f(id, amount, spent) ON f.id = x.id
    WHERE b.id = x.id;
    INSERT INTO billing_reservationline (reservation_id, window_id, unit, price_key, amount, spent, state)
    SELECT v_id, x.id, x.unit, x.price_key, x.amount, 0, 0
    FROM unnest(s.ids, s.units, s.price_keys, v_amounts) AS x(id, unit, price_key, amount);
  END IF;
  RETURN billing_held(r, false, v_soft);
END $$;
