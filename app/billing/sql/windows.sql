-- Keys ordered by time, also on servers that have no uuidv7() of their own yet.
DO $do$
BEGIN
  IF to_regprocedure('pg_catalog.uuidv7()') IS NOT NULL THEN
    CREATE OR REPLACE FUNCTION billing_uuid7() RETURNS uuid LANGUAGE sql VOLATILE AS 'SELECT pg_catalog.uuidv7()';
  ELSE
    CREATE OR REPLACE FUNCTION billing_uuid7() RETURNS uuid LANGUAGE sql VOLATILE AS $body$
      SELECT encode(set_bit(set_bit(overlay(uuid_send(gen_random_uuid()) PLACING substring(
        int8send((extract(epoch FROM clock_timestamp()) * 1000)::bigint) FROM 3) FROM 1 FOR 6), 52, 1), 53, 1), 'hex')::uuid
    $body$;
  END IF;
END $do$;


-- The instant of a local time. Of a midnight that happens twice it is the first, where the day begins; a midnight that
-- is skipped is the instant of the jump.
CREATE OR REPLACE FUNCTION billing_instant(p_local timestamp, p_zone text) RETURNS timestamptz
LANGUAGE sql STABLE AS $$
  SELECT CASE WHEN ((p_local AT TIME ZONE p_zone) - interval '1 hour') AT TIME ZONE p_zone = p_local
    THEN (p_local AT TIME ZONE p_zone) - interval '1 hour' ELSE p_local AT TIME ZONE p_zone END
$$;


-- The period of an IANA zone that holds an instant, as UTC instants [starts_at, ends_at).
CREATE OR REPLACE FUNCTION billing_window_bounds(
  p_period text, p_zone text, p_at timestamptz, OUT starts_at timestamptz, OUT ends_at timestamptz
) LANGUAGE plpgsql STABLE AS $$
DECLARE
  v_local timestamp;
BEGIN
  IF p_period = 'lifetime' THEN
    starts_at := '1970-01-01 00:00+00';
    ends_at := '9999-12-31 00:00+00';
    RETURN;
  END IF;
  v_local := date_trunc(p_period, p_at AT TIME ZONE p_zone);
  starts_at := billing_instant(v_local, p_zone);
  ends_at := billing_instant(v_local + ('1 ' || p_period)::interval, p_zone);
END $$;


-- The budgets on a payer's way. Of one scope, unit and model the most specific rows count: an own row replaces the
-- default of its scope. Tokens and requests count chat calls only; bytes and pages are asked for as kind `storage`.
-- p_price_keys NULL: budgets of every model.
CREATE OR REPLACE FUNCTION billing_applicable(
  p_team uuid, p_account uuid, p_key uuid, p_price_keys text[], p_kind text
) RETURNS TABLE (
  budget_id uuid, scope text, subject text, name text, unit text, price_key text, period text, zone text,
  hard boolean, amount numeric
) LANGUAGE sql STABLE AS $$
  SELECT x.id, x.scope, x.subject, x.name, x.unit, x.price_key, x.period, x.zone, x.hard, x.amount
  FROM (
    SELECT b.id, b.scope, b.name, b.unit, b.price_key, b.period, b.zone, b.hard, b."limit" AS amount,
      CASE b.scope WHEN 'installation' THEN 'i' WHEN 'team' THEN 't:' || p_team
        WHEN 'prepaid' THEN 'c:' || p_team
        WHEN 'allowance' THEN 'a:' || p_team || ':' || p_account WHEN 'person' THEN 'p:' || p_account
        ELSE 'k:' || p_key END AS subject,
      rank() OVER (PARTITION BY b.scope, b.unit, b.price_key
        ORDER BY length(b.subject) - length(replace(b.subject, '*', ''))) AS specific
    FROM billing_budget b
    WHERE b.active
      AND b.subject = ANY (ARRAY[
        'i',
        'c:' || p_team, 't:' || p_team, CASE WHEN p_team IS NOT NULL THEN 't:*' END,
        'a:' || p_team || ':' || p_account,
        CASE WHEN p_account IS NOT NULL THEN 'a:' || p_team || ':*' END,
        CASE WHEN p_team IS NOT NULL AND p_account IS NOT NULL THEN 'a:*:*' END,
        'p:' || p_account, CASE WHEN p_account IS NOT NULL THEN 'p:*' END,
        'k:' || p_key, CASE WHEN p_key IS NOT NULL THEN 'k:*' END])
      AND (b.price_key = '' OR p_price_keys IS NULL OR b.price_key = ANY (p_price_keys))
      AND CASE WHEN b.unit IN ('bytes', 'pages') THEN p_kind = 'storage'
        ELSE p_kind <> 'storage' AND (b.unit = 'money' OR p_kind = 'chat') END
  ) x
  WHERE x.specific = 1
$$;


-- A function that answers other columns cannot be replaced in place.
DROP FUNCTION IF EXISTS billing_limits(uuid, uuid, uuid, text[], text, timestamptz);

-- Every limit on a payer's way as it stands: ended lines that no reserve has folded yet are counted in.
CREATE OR REPLACE FUNCTION billing_limits(
  p_team uuid, p_account uuid, p_key uuid, p_price_keys text[], p_kind text, p_at timestamptz
) RETURNS TABLE (
  budget_id uuid, window_id uuid, scope text, subject text, name text, unit text, price_key text, period text,
  zone text, hard boolean, amount numeric, spent numeric, held numeric, resets_at timestamptz
) LANGUAGE sql STABLE AS $$
  SELECT a.budget_id, w.id, a.scope, a.subject, a.name, a.unit, a.price_key, a.period, a.zone, a.hard,
    coalesce(w.limit_snapshot, a.amount), coalesce(w.spent, 0) + coalesce(f.spent, 0),
    coalesce(w.held, 0) - coalesce(f.amount, 0), CASE WHEN a.period <> 'lifetime' THEN b.ends_at END
  FROM billing_applicable(p_team, p_account, p_key, p_price_keys, p_kind) a
  CROSS JOIN LATERAL billing_window_bounds(a.period, a.zone, p_at) b
  LEFT JOIN billing_budgetwindow w
    ON w.budget_id = a.budget_id AND w.subject = a.subject AND w.starts_at = b.starts_at
  LEFT JOIN LATERAL (
    SELECT sum(l.amount) AS amount, sum(l.spent) AS spent
    FROM billing_reservationline l WHERE l.window_id = w.id AND l.state = 1
  ) f ON true
$$;


-- The windows of a payer at an instant, made when missing, so that the first call is counted like every other.
-- No window is locked here: a call that waits for another's new window must not keep a third waiting.
CREATE OR REPLACE FUNCTION billing_windows(
  p_team uuid, p_account uuid, p_key uuid, p_price_keys text[], p_kind text, p_at timestamptz,
  OUT ids uuid[], OUT units text[], OUT price_keys text[], OUT hards boolean[]
) LANGUAGE plpgsql AS $$
BEGIN
  FOR v_try IN 1..5 LOOP
    SELECT array_agg(w.id), array_agg(a.unit), array_agg(a.price_key), array_agg(a.hard)
    INTO ids, units, price_keys, hards
    FROM billing_applicable(p_team, p_account, p_key, p_price_keys, p_kind) a
    LEFT JOIN LATERAL (
      SELECT w.id FROM billing_budgetwindow w
      WHERE w.budget_id = a.budget_id AND w.subject = a.subject AND w.starts_at <= p_at AND w.ends_at > p_at
      ORDER BY w.starts_at DESC LIMIT 1
    ) w ON true;
    IF array_position(ids, NULL) IS NULL THEN
      RETURN;
    END IF;
    -- The share lock orders this with a change of the limit, which then reaches the new window too.
    INSERT INTO billing_budgetwindow
      (id, created_at, budget_id, subject, unit, price_key, starts_at, ends_at, limit_snapshot, spent, held)
    SELECT billing_uuid7(), clock_timestamp(), b.id, a.subject, b.unit, b.price_key, t.starts_at, t.ends_at, b."limit", 0, 0
    FROM billing_applicable(p_team, p_account, p_key, p_price_keys, p_kind) a
    JOIN billing_budget b ON b.id = a.budget_id
    CROSS JOIN LATERAL billing_window_bounds(b.period, b.zone, p_at) t
    ORDER BY b.id, a.subject
    FOR SHARE OF b
    ON CONFLICT (budget_id, subject, starts_at) DO NOTHING;
  END LOOP;
  RAISE EXCEPTION 'The budgets of this payer changed five times while a call was reserved; try again.'
    USING ERRCODE = 'serialization_failure';
END $$;
