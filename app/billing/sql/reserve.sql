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


-- With one argument less, it would stay beside the new one.
DROP FUNCTION IF EXISTS billing_held(billing_reservation, boolean, uuid[]);

-- A reservation as `billing_reserve` answers it.
CREATE OR REPLACE FUNCTION billing_held(
  r billing_reservation, p_replayed boolean, p_soft uuid[], p_tight uuid[]
) RETURNS jsonb
LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN jsonb_build_object(
    'reservation_id', r.id, 'state', r.state, 'output_tokens', r.held_output_tokens,
    'shrunk', r.held_output_tokens < r.asked_output_tokens, 'price', r.held_price::text, 'currency', r.currency,
    'effective_at', r.effective_at, 'expires_at', r.expires_at, 'replayed', p_replayed,
    'soft', CASE WHEN cardinality(p_soft) > 0 THEN billing_limit_json(p_soft) ELSE '[]' END,
    'tight', CASE WHEN cardinality(p_tight) > 0 THEN billing_limit_json(p_tight) ELSE '[]' END);
END $$;


-- Windows as limits, those that reset last first.
CREATE OR REPLACE FUNCTION billing_limit_json(p_windows uuid[]) RETURNS jsonb
LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN (SELECT coalesce(jsonb_agg(jsonb_build_object(
    'budget_id', b.id, 'window_id', w.id, 'subject', w.subject, 'scope', b.scope, 'name', b.name, 'unit', b.unit,
    'period', b.period, 'zone', b.zone, 'hard', b.hard, 'price_key', nullif(b.price_key, ''), 'limit', w.limit_snapshot::text, 'spent', w.spent::text,
    'held', w.held::text,
    'resets_at', CASE WHEN b.period <> 'lifetime' THEN w.ends_at END
  ) ORDER BY w.ends_at DESC, w.limit_snapshot - w.spent - w.held), '[]')
  FROM billing_budgetwindow w JOIN billing_budget b ON b.id = w.budget_id WHERE w.id = ANY (p_windows));
END $$;


-- Counts ended lines in. The caller holds the windows' locks, so no line is folded twice.
CREATE OR REPLACE FUNCTION billing_fold(p_windows uuid[]) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  WITH f AS (
    UPDATE billing_reservationline SET state = 2 WHERE window_id = ANY (p_windows) AND state = 1
    RETURNING window_id, amount, spent
  ), g AS (
    SELECT window_id, sum(amount) AS amount, sum(spent) AS spent FROM f GROUP BY window_id
  )
  UPDATE billing_budgetwindow w SET held = w.held - g.amount, spent = w.spent + g.spent
  FROM g WHERE w.id = g.window_id;
END $$;


-- Takes back a hold that never was: written down before its windows were asked, and refused by one of them.
-- The application's role may not delete reservations; this is the only case, and only within the same transaction.
CREATE OR REPLACE FUNCTION billing_unwrite(p_id uuid) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
  DELETE FROM billing_reservation WHERE id = p_id AND state = 'held' AND created_at >= now();
  IF FOUND THEN
    DELETE FROM billing_reservationline WHERE reservation_id = p_id;
  END IF;
END $$;


-- How many output tokens the room of one window allows; infinite when output costs nothing there.
-- What costs nothing at all passes a limit of 0, and one that was overshot.
CREATE OR REPLACE FUNCTION billing_fits(
  p_unit text, p_room numeric, p_input bigint, p_fixed numeric[], p_rate numeric[]
) RETURNS numeric LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
  v_fits numeric := 'Infinity';
BEGIN
  IF p_unit = 'tokens' THEN
    RETURN p_room - p_input;
  ELSIF p_unit = 'requests' THEN
    RETURN CASE WHEN p_room >= 1 THEN v_fits ELSE -1 END;
  END IF;
  FOR i IN 1 .. cardinality(p_fixed) LOOP
    IF p_room < p_fixed[i] AND (p_fixed[i] > 0 OR p_rate[i] > 0) THEN
      RETURN -1;
    ELSIF p_rate[i] > 0 THEN
      v_fits := least(v_fits, div(p_room - p_fixed[i], p_rate[i]));
    END IF;
  END LOOP;
  RETURN v_fits;
END $$;


-- Writes a hold down in full, before any window is locked. Null when the same call was already written.
CREATE OR REPLACE FUNCTION billing_write(
  p jsonb, p_price numeric, p_missing boolean, p_pins jsonb, p_at timestamptz, p_windows uuid[], p_units text[],
  p_price_keys text[]
) RETURNS billing_reservation LANGUAGE plpgsql AS $$
DECLARE
  v_now timestamptz := coalesce((p ->> 'at')::timestamptz, clock_timestamp());
  v_input bigint := p ->> 'input_tokens';
  v_output bigint := p ->> 'max_output_tokens';
  v_collections uuid[];
  r billing_reservation%ROWTYPE;
BEGIN
  IF jsonb_array_length(p -> 'collections') > 0 THEN
    SELECT array_agg(c::uuid ORDER BY c) INTO v_collections FROM jsonb_array_elements_text(p -> 'collections') AS c;
  END IF;
  INSERT INTO billing_reservation (
    id, created_at, state, kind, team_id, account_id, key_id, deployment_id, turn_id, thread_id, collections,
    request_id, dedupe_key, fingerprint, price_key, mode, price_version_id, pins, currency, held_input_tokens, held_output_tokens,
    asked_output_tokens, held_price, effective_at, heartbeat_at, expires_at, seen_input_tokens, seen_output_tokens,
    settled_by, estimated, price_missing, overshoot, late, recreated
  ) VALUES (
    -- Written now also where the call is of the past, or it could not be taken back: see billing_unwrite.
    (p ->> 'reservation_id')::uuid, clock_timestamp(), 'held', p ->> 'kind', (p ->> 'team_id')::uuid, (p ->> 'account_id')::uuid,
    (p ->> 'key_id')::uuid, (p ->> 'deployment_id')::uuid, (p ->> 'turn_id')::uuid, (p ->> 'thread_id')::uuid,
    v_collections,
    coalesce(p ->> 'request_id', ''),
    coalesce(p ->> 'dedupe_key', ''), coalesce(p ->> 'fingerprint', ''), p ->> 'price_key', p ->> 'mode',
    (p_pins -> (p ->> 'price_key') ->> 'price')::uuid, p_pins, p ->> 'currency', v_input, v_output, v_output, p_price,
    p_at, v_now,
    coalesce((p ->> 'expires_at')::timestamptz, v_now + (p ->> 'ttl_seconds')::integer * interval '1 second'),
    0, 0, '', false, p_missing, false, false, coalesce((p ->> 'force')::boolean, false)
  ) ON CONFLICT DO NOTHING RETURNING * INTO r;
  IF r.id IS NOT NULL AND p_windows IS NOT NULL THEN
    INSERT INTO billing_reservationline (reservation_id, window_id, unit, price_key, amount, spent, state)
    SELECT r.id, x.id, x.unit, x.price_key, billing_amount(x.unit, p_price, v_input + v_output), 0, 0
    FROM unnest(p_windows, p_units, p_price_keys) AS x(id, unit, price_key);
  END IF;
  RETURN r;
END $$;


-- What a window holds for a call.
CREATE OR REPLACE FUNCTION billing_amount(p_unit text, p_price numeric, p_tokens bigint) RETURNS numeric
LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE p_unit WHEN 'money' THEN coalesce(p_price, 0) WHEN 'tokens' THEN p_tokens ELSE 1 END
$$;


-- The same in every unit of a limit; unknown where the price is.
CREATE OR REPLACE FUNCTION billing_needs(p_price numeric, p_tokens bigint) RETURNS jsonb
LANGUAGE sql IMMUTABLE AS $$
  SELECT jsonb_build_object('money', p_price::text, 'tokens', p_tokens::text, 'requests', '1')
$$;


-- Since when calls that cost money are paused, and why; null while they are not.
CREATE OR REPLACE FUNCTION billing_paused() RETURNS jsonb
LANGUAGE sql STABLE AS $$
  SELECT jsonb_build_object('since', x.created_at, 'reason', x.reason)
  FROM (SELECT created_at, reason, paused FROM billing_pause ORDER BY id DESC LIMIT 1) x WHERE x.paused
$$;


-- Holds what a call may cost at most in every window of its payer, or nothing at all.
--
-- In: reservation_id, team_id, account_id, key_id, kind, price_key, fallback_price_keys[], mode, input_tokens,
-- extra[{price_key, input_tokens}] (calls made besides, such as embedding the query),
-- max_output_tokens, min_output_tokens, currency, allow_unlimited, effective_at?, expires_at? | ttl_seconds, dedupe_key,
-- fingerprint, deployment_id, turn_id, thread_id?, collections[]?, request_id, at? (when it was held; only what is seeded
-- says so); `force` re-creates a forgotten hold without asking for room.
-- Out: the reservation (see billing_held), or {refused: [limit], needs, least} (as asked, and with the shortest
-- answer; by unit), {no_budget: true}, {price_missing: {…}}, {paused: {since, reason}}, {conflict: true}.
CREATE OR REPLACE FUNCTION billing_reserve(p jsonb) RETURNS jsonb
LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  v_team uuid := p ->> 'team_id';
  v_at timestamptz := coalesce((p ->> 'effective_at')::timestamptz, clock_timestamp());
  v_input bigint := p ->> 'input_tokens';
  v_asked bigint := p ->> 'max_output_tokens';
  v_floor bigint := p ->> 'min_output_tokens';
  v_granted bigint;
  v_force boolean := coalesce((p ->> 'force')::boolean, false);
  v_priced boolean;
  v_paused jsonb;
  v_keys text[] := ARRAY[p ->> 'price_key'];
  v_extra_keys text[] := '{}';
  v_extra numeric := 0;
  v_price numeric;
  v_fits numeric;
  v_bound numeric;
  v_full uuid[];
  v_short uuid[];
  v_soft uuid[];
  v_behind boolean;
  v_lapsed boolean;
  r billing_reservation%ROWTYPE;
  d record;
  e record;
  s record;
  w record;
BEGIN
  -- A hold that a crash forgets costs nobody money: settling re-creates it. Lasts to the end of the transaction.
  PERFORM set_config('synchronous_commit', 'off', true);
  SELECT * INTO r FROM billing_reservation WHERE id = (p ->> 'reservation_id')::uuid;
  IF r.id IS NULL AND coalesce(p ->> 'dedupe_key', '') <> '' THEN
    SELECT * INTO r FROM billing_reservation WHERE team_id = v_team AND dedupe_key = p ->> 'dedupe_key';
  END IF;
  IF r.id IS NOT NULL THEN
    RETURN CASE WHEN r.fingerprint <> coalesce(p ->> 'fingerprint', '') THEN '{"conflict": true}'
      ELSE billing_held(r, true, NULL, NULL) END;
  END IF;

  -- What most calls have none of is not asked for, and values are assigned rather than selected: to set a query up takes
  -- the database longer than to run it here.
  IF jsonb_array_length(p -> 'fallback_price_keys') > 0 THEN
    v_keys := v_keys || ARRAY(SELECT jsonb_array_elements_text(p -> 'fallback_price_keys'));
  END IF;
  IF jsonb_array_length(p -> 'extra') > 0 THEN
    v_extra_keys := ARRAY(SELECT x ->> 'price_key' FROM jsonb_array_elements(p -> 'extra') AS x);
  END IF;
  d := billing_dearest(v_keys, p ->> 'mode', v_team, v_at, v_input, v_asked);
  FOR v_n IN 1 .. cardinality(v_extra_keys) LOOP
    e := billing_dearest(
      v_extra_keys[v_n:v_n], p ->> 'mode', v_team, v_at, (p -> 'extra' -> v_n - 1 ->> 'input_tokens')::bigint, 0);
    d.pins := d.pins || e.pins;
    d.missing_key := coalesce(d.missing_key, e.missing_key);
    d.missing_component := coalesce(d.missing_component, e.missing_component);
    v_extra := v_extra + coalesce(billing_most(e.fixed, e.rate, 0), 0);
  END LOOP;
  -- A price in a currency that was the installation's before says nothing in today's.
  FOR e IN
    SELECT x.key FROM jsonb_each(d.pins) AS x JOIN billing_priceversion v ON v.id = (x.value ->> 'price')::uuid
    WHERE v.currency <> p ->> 'currency'
  LOOP
    d.pins := d.pins #- ARRAY[e.key, 'price'];
    d.missing_key := coalesce(d.missing_key, e.key);
    d.missing_component := coalesce(d.missing_component, p ->> 'currency');
  END LOOP;
  IF v_extra > 0 THEN
    d.fixed := ARRAY(SELECT x + v_extra FROM unnest(d.fixed) WITH ORDINALITY AS u(x, n) ORDER BY n);
  END IF;
  s := billing_windows(
    v_team, (p ->> 'account_id')::uuid, (p ->> 'key_id')::uuid, v_keys || v_extra_keys, p ->> 'kind', v_at);
  -- What has no known price is not free.
  v_priced := d.missing_key IS NOT NULL OR 0 < ANY (d.fixed) OR 0 < ANY (d.rate);
  v_paused := CASE WHEN v_priced AND NOT v_force THEN billing_paused() END;
  IF v_paused IS NOT NULL THEN
    RETURN jsonb_build_object('paused', v_paused);
  ELSIF NOT v_force AND d.missing_key IS NOT NULL AND 'money' = ANY (s.units) THEN
    RETURN jsonb_build_object('price_missing',
      jsonb_build_object('price_key', d.missing_key, 'component', d.missing_component));
  ELSIF NOT v_force AND NOT (p ->> 'allow_unlimited')::boolean AND 'money' <> ALL (coalesce(s.units, '{}'))
    AND v_priced AND d.missing_key IS NULL THEN
    RETURN '{"no_budget": true}';
  END IF;

  -- Written before the windows are locked: every call of the installation waits for these locks.
  v_price := CASE WHEN d.missing_key IS NULL THEN billing_most(d.fixed, d.rate, v_asked) END;
  r := billing_write(p, v_price, d.missing_key IS NOT NULL, d.pins, v_at, s.ids, s.units, s.price_keys);
  IF r.id IS NULL THEN
    RETURN billing_reserve(p);
  END IF;

  -- A line that waits holds more than it spent, so to leave it waiting is safe; not so where more was used than held.
  SELECT EXISTS (SELECT 1 FROM billing_reservationline WHERE window_id = ANY (s.ids) AND state = 1 AND spent > amount),
    EXISTS (SELECT 1 FROM billing_budgetwindow WHERE subject = 'c:' || v_team AND review_at <= v_at)
  INTO v_behind, v_lapsed;
  FOR v_try IN 1..3 LOOP
    v_fits := 'Infinity';
    v_full := '{}';
    v_short := '{}';
    v_soft := '{}';
    -- Ascending ids for everyone, so that no two calls wait for each other.
    FOR w IN
      SELECT b.id, x.unit, x.hard, b.limit_snapshot - b.spent - b.held AS room,
        b.limit_snapshot - b.spent - b.held >= billing_amount(x.unit, v_price, v_input + v_asked) AS roomy
      FROM unnest(s.ids, s.units, s.hards) AS x(id, unit, hard) JOIN billing_budgetwindow b ON b.id = x.id
      ORDER BY b.id FOR NO KEY UPDATE OF b
    LOOP
      -- What has room for the dearest that was asked for needs no closer look. Of an unknown price that is not known.
      CONTINUE WHEN w.roomy AND v_price IS NOT NULL;
      v_bound := billing_fits(w.unit, w.room, v_input, d.fixed, d.rate);
      CONTINUE WHEN v_bound >= v_asked;
      IF NOT w.hard THEN
        v_soft := v_soft || w.id;
        CONTINUE;
      END IF;
      v_fits := least(v_fits, v_bound);
      v_full := v_full || w.id;
      IF v_bound < v_floor THEN
        v_short := v_short || w.id;
      END IF;
    END LOOP;
    -- Whoever waited for these locks may have waited for a change of the limit's zone, or for an own limit that takes
    -- the place of a default: what that had used was carried into new windows by then, which would not see a hold that
    -- lands in the old ones.
    IF EXISTS (
      SELECT FROM billing_budgetwindow x JOIN billing_budget g ON g.id = x.budget_id
      WHERE x.id = ANY (s.ids) AND (NOT g.active OR g.subject <> x.subject AND EXISTS (
        SELECT FROM billing_budget o
        WHERE o.active AND o.scope = g.scope AND o.unit = g.unit AND o.price_key = g.price_key
          AND o.subject = ANY (ARRAY[x.subject, 'a:' || v_team || ':*']) AND o.subject <> g.subject)))
    THEN
      PERFORM billing_unwrite(r.id);
      RETURN billing_reserve(p);
    END IF;
    EXIT WHEN v_force OR (v_fits >= v_asked AND NOT (v_try = 1 AND (v_behind OR v_lapsed OR cardinality(v_soft) > 0)));
    -- Not all of it fits. Calls that have ended may not be counted in yet; holds of dead processes may be in the way.
    EXIT WHEN v_try = 3 OR (v_try = 2 AND billing_expire(v_full, 1000) IS NULL);
    PERFORM billing_fold(s.ids);
    IF v_lapsed THEN
      PERFORM billing_credit_lapse(v_team, v_at);
    END IF;
  END LOOP;

  IF cardinality(v_short) > 0 AND NOT v_force THEN
    PERFORM billing_unwrite(r.id);
    RETURN jsonb_build_object(
      'refused', billing_limit_json(v_short),
      'needs', billing_needs(v_price, v_input + v_asked),
      'least', billing_needs(
        CASE WHEN d.missing_key IS NULL THEN billing_most(d.fixed, d.rate, v_floor) END, v_input + v_floor));
  END IF;
  v_granted := CASE WHEN v_force THEN v_asked ELSE least(v_asked, v_fits) END;
  IF v_granted < v_asked THEN
    v_price := CASE WHEN d.missing_key IS NULL THEN billing_most(d.fixed, d.rate, v_granted) END;
    UPDATE billing_reservation SET held_output_tokens = v_granted, held_price = v_price WHERE id = r.id RETURNING * INTO r;
    UPDATE billing_reservationline SET amount = billing_amount(unit, v_price, v_input + v_granted)
    WHERE reservation_id = r.id;
  END IF;
  UPDATE billing_budgetwindow b SET held = b.held + billing_amount(b.unit, v_price, v_input + v_granted)
  WHERE b.id = ANY (s.ids);
  -- So that lines do not pile up where there is always room; more often costs time under the lock.
  IF random() < 0.03 THEN
    PERFORM billing_fold(s.ids);
  END IF;
  RETURN billing_held(r, false, v_soft, CASE WHEN v_granted < v_asked THEN v_full END);
END $$;


-- Gives back what a hold turned out to need less of, once the prompt is known. Never raises it.
--
-- In: reservation_id, price_keys[] (its routes), input_tokens. Out: {price, input_tokens}, or null when nothing was
-- lowered. No window is locked: the freed part becomes an ended line that spent nothing, folded when room is short.
CREATE OR REPLACE FUNCTION billing_lower(p jsonb) RETURNS jsonb
LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  v_input bigint := p ->> 'input_tokens';
  v_keys text[] := ARRAY(SELECT jsonb_array_elements_text(p -> 'price_keys'));
  r billing_reservation%ROWTYPE;
  o record;
  n record;
  v_price numeric;
BEGIN
  PERFORM set_config('synchronous_commit', 'off', true);
  SELECT * INTO r FROM billing_reservation WHERE id = (p ->> 'reservation_id')::uuid FOR UPDATE;
  IF r.state IS DISTINCT FROM 'held' OR v_input >= r.held_input_tokens THEN
    RETURN NULL;
  END IF;
  o := billing_dearest(v_keys, r.mode, r.team_id, r.effective_at, r.held_input_tokens, r.held_output_tokens);
  n := billing_dearest(v_keys, r.mode, r.team_id, r.effective_at, v_input, r.held_output_tokens);
  v_price := r.held_price - coalesce(greatest(0, billing_most(o.fixed, o.rate, r.held_output_tokens)
    - billing_most(n.fixed, n.rate, r.held_output_tokens)), 0);
  INSERT INTO billing_reservationline (reservation_id, window_id, unit, price_key, amount, spent, state)
  SELECT r.id, l.window_id, l.unit, l.price_key, l.amount - x.amount, 0, 1
  FROM billing_reservationline l
  CROSS JOIN LATERAL (SELECT billing_amount(l.unit, v_price, v_input + r.held_output_tokens) AS amount) x
  WHERE l.reservation_id = r.id AND l.state = 0 AND l.amount > x.amount;
  UPDATE billing_reservationline SET amount = billing_amount(unit, v_price, v_input + r.held_output_tokens)
  WHERE reservation_id = r.id AND state = 0;
  UPDATE billing_reservation SET held_input_tokens = v_input, held_price = v_price WHERE id = r.id;
  RETURN jsonb_build_object('price', v_price::text, 'input_tokens', v_input);
END $$;
