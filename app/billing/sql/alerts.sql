-- Notes which open windows have passed which of their budget's thresholds: each once, whoever looks and how often.
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
    ON CONFLICT (window_id, ratio) DO NOTHING RETURNING window_id
  )
  SELECT array_agg(DISTINCT window_id) INTO v_windows FROM noted;
  RETURN coalesce(v_windows, '{}');
END $$;
