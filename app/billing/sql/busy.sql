-- How long an own server worked in one hour, in seconds; calls that overlap count once. Calls are known by when they ended,
-- and none is as long as two hours.
CREATE OR REPLACE FUNCTION billing_busy_seconds(p_deployment uuid, p_hour timestamptz) RETURNS numeric
LANGUAGE sql STABLE AS $$
  SELECT coalesce(sum(extract(epoch FROM upper(r) - lower(r))), 0) FROM unnest((
    SELECT range_agg(tstzrange(a.created_at - a.total_ms * interval '1 millisecond', a.created_at)
      * tstzrange(p_hour, p_hour + interval '1 hour'))
    FROM billing_usageattempt a
    WHERE a.deployment_id = p_deployment AND a.created_at > p_hour AND a.created_at < p_hour + interval '3 hours'
      AND a.total_ms > 0)) AS r
$$;


-- Sums up booked hours to which no call can be added any more, the oldest first. Returns how many.
CREATE OR REPLACE FUNCTION billing_busy_sum(p_at timestamptz, p_limit integer) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
  v_count integer;
BEGIN
  INSERT INTO billing_busyhour (deployment_id, at, seconds)
  SELECT e.deployment_id, e.effective_at, billing_busy_seconds(e.deployment_id, e.effective_at)
  FROM (
    SELECT e.deployment_id, e.effective_at FROM billing_ledgerentry e
    WHERE e.call_kind = 'provisioned' AND e.effective_at < p_at - interval '3 hours' AND NOT EXISTS (
      SELECT 1 FROM billing_busyhour h WHERE h.deployment_id = e.deployment_id AND h.at = e.effective_at)
    ORDER BY e.effective_at LIMIT p_limit
  ) e
  ON CONFLICT DO NOTHING;
  GET DIAGNOSTICS v_count = ROW_COUNT;
  RETURN v_count;
END $$;
