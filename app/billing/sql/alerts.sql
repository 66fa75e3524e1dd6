-- Notes which open windows have passed which of their budget's thresholds: each once, whoever looks and how often, and once
-- more after the limit was raised above all that was told of.
-- Ended calls that no hold has folded yet count. A window that has just ended is still looked at, once the last calls
-- of its day are booked. Returns the windows in which something was passed.
CREATE OR REPLACE FUNCTION billing_alerts_note() RETURNS uuid[]
LANGUAGE plpgsql AS $$
DECLARE
  v_windows uuid[];
BEGIN
  WITH passed AS (
    SELECT w.id, x.ratio, u.used, w.limit_snapshot
    FROM billing_budgetwindow w
    JOIN billing_budget b ON b.id = w.budget_id AND b.active
    CROSS JOIN LATERAL (
      SELECT w.spent + coalesce(sum(l.spent), 0) AS used
      FROM billing_reservationline l WHERE l.window_id = w.id AND l.state = 1) u
    CROSS JOIN LATERAL (SELECT value::numeric AS ratio FROM jsonb_array_elements_text(b.alert_ratios)) x
    WHERE w.starts_at <= clock_timestamp() AND w.ends_at > clock_timestamp() - interval '1 hour'
      AND u.used > 0 AND u.used >= x.ratio * w.limit_snapshot
  ), noted AS (
    INSERT INTO billing_budgetalert (id, created_at, window_id, ratio, used, "limit", attempts)
    SELECT billing_uuid7(), clock_timestamp(), id, ratio, used, limit_snapshot, 0 FROM passed
    WHERE NOT EXISTS (SELECT 1 FROM billing_budgetalert a
      WHERE a.window_id = passed.id AND a.ratio = passed.ratio AND a."limit" >= passed.limit_snapshot)
    ON CONFLICT (window_id, ratio, "limit") DO NOTHING RETURNING window_id
  )
  SELECT array_agg(DISTINCT window_id) INTO v_windows FROM noted;
  RETURN coalesce(v_windows, '{}');
END $$;


-- Notes which teams had calls that used more than was held: once for a team and hour, whoever looks and how often. A day
-- is looked back, so that nothing is missed while nobody looks.
CREATE OR REPLACE FUNCTION billing_overshoots_note() RETURNS integer
LANGUAGE plpgsql AS $$
DECLARE
  v_noted integer;
BEGIN
  INSERT INTO billing_overshootalert (id, created_at, team_id, hour, calls, reservation_id, price_key, held_tokens,
    used_tokens, held_price, price, attempts)
  SELECT DISTINCT ON (x.team_id, x.hour) billing_uuid7(), clock_timestamp(), x.team_id, x.hour, x.calls, x.id, x.price_key,
    x.held_input_tokens + x.held_output_tokens, coalesce(x.input_tokens, 0) + coalesce(x.output_tokens, 0), x.held_price,
    x.price, 0
  FROM (
    SELECT r.*, h.hour, count(*) OVER (PARTITION BY r.team_id, h.hour) AS calls
    FROM billing_reservation r CROSS JOIN LATERAL (SELECT date_trunc('hour', r.settled_at, 'UTC') AS hour) h
    WHERE r.overshoot AND r.settled_at > clock_timestamp() - interval '1 day'
  ) x
  ORDER BY x.team_id, x.hour, x.settled_at
  ON CONFLICT (team_id, hour) DO NOTHING;
  GET DIAGNOSTICS v_noted = ROW_COUNT;
  RETURN v_noted;
END $$;
