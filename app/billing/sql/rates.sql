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


-- The most a call can cost with an output: over all its routes and tiers.
CREATE OR REPLACE FUNCTION billing_most(p_fixed numeric[], p_rate numeric[], p_output bigint) RETURNS numeric
LANGUAGE sql IMMUTABLE AS $$
  SELECT max(x.fixed + x.rate * p_output) FROM unnest(p_fixed, p_rate) AS x(fixed, rate)
$$;
