-- Rounded half to even, as Python rounds; numeric's own round() goes away from zero.
CREATE OR REPLACE FUNCTION billing_even(p numeric, p_scale integer) RETURNS numeric
LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE WHEN abs(p - trunc(p, p_scale)) * power(10::numeric, p_scale) = 0.5
      AND mod(trunc(p, p_scale) * power(10::numeric, p_scale), 2) = 0
    THEN trunc(p, p_scale) ELSE round(p, p_scale) END
$$;


CREATE OR REPLACE FUNCTION billing_per(p_units integer) RETURNS numeric LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE p_units WHEN 1 THEN 1 WHEN 1000 THEN 0.001 ELSE 0.000001 END
$$;


-- The price and cost versions in force for each route at an instant. Of a team's own terms the nearest counts: its fixed
-- price of the key, its factor on the key, its fixed price of everything, its factor on everything.
DROP FUNCTION IF EXISTS billing_versions(text[], text, uuid, timestamptz);
CREATE FUNCTION billing_versions(p_price_keys text[], p_mode text, p_team uuid, p_at timestamptz)
RETURNS TABLE (price_key text, price_id uuid, cost_id uuid, dearest jsonb, rate_id uuid, factor numeric)
LANGUAGE sql STABLE AS $$
  SELECT k.price_key, p.id, c.id, p.dearest, CASE WHEN p.general THEN f.id END, CASE WHEN p.general THEN f.factor END
  FROM unnest(p_price_keys) AS k(price_key)
  LEFT JOIN LATERAL (
    SELECT t.id, t.factor, t.price_key <> '' AS of_key FROM billing_teamrate t
    WHERE t.team_id = p_team AND t.price_key IN (k.price_key, '') AND t.effective_from <= p_at
      AND (t.effective_to IS NULL OR t.effective_to > p_at)
    ORDER BY t.price_key = '' LIMIT 1
  ) f ON true
  LEFT JOIN LATERAL (
    SELECT v.id, v.dearest, v.team_id IS NULL AS general FROM billing_priceversion v
    WHERE v.price_key IN (k.price_key, '*') AND v.side = 'price' AND v.mode = p_mode AND v.effective_from <= p_at
      AND (v.effective_to IS NULL OR v.effective_to > p_at) AND (v.team_id IS NULL OR v.team_id = p_team)
    ORDER BY CASE WHEN v.team_id IS NULL THEN CASE WHEN f.of_key THEN 2 WHEN f.id IS NOT NULL THEN 4 ELSE 5 END
      WHEN v.price_key <> '*' THEN 1 ELSE 3 END LIMIT 1
  ) p ON true
  LEFT JOIN LATERAL (
    SELECT v.id FROM billing_priceversion v
    WHERE v.price_key = k.price_key AND v.side = 'cost' AND v.mode = p_mode AND v.effective_from <= p_at
      AND (v.effective_to IS NULL OR v.effective_to > p_at) AND (v.team_id IS NULL OR v.team_id = p_team)
    ORDER BY v.team_id NULLS LAST LIMIT 1
  ) c ON true
$$;


-- `PriceVersion.dearest` under a factor, from unit prices rounded as a charge rounds them. See `pricing.dearest`.
CREATE OR REPLACE FUNCTION billing_tiers(p_version uuid, p_factor numeric) RETURNS jsonb
LANGUAGE sql STABLE AS $$
  WITH c AS (
    SELECT x.component, x.min_prompt_tokens AS bound, v.tier_mode = 'marginal' AS marginal,
      billing_even(x.price * p_factor, 9) * billing_per(x.per_units) AS rate,
      CASE WHEN x.component LIKE 'input%' OR x.component LIKE 'cache\_%' THEN 'in'
        WHEN x.component IN ('output', 'reasoning', 'output_audio', 'rejected_prediction') THEN 'out'
        WHEN x.component = 'request' THEN 'fee' END AS side
    FROM billing_pricecomponent x JOIN billing_priceversion v ON v.id = x.version_id WHERE x.version_id = p_version
  ), b AS (
    SELECT d.bound, CASE WHEN NOT d.marginal THEN lead(d.bound) OVER (ORDER BY d.bound) - 1 END AS upto
    FROM (SELECT DISTINCT c.bound, c.marginal FROM c) d
  ), r AS (
    -- What each component costs at each bound; with marginal tiers the dearest of those a call may reach.
    SELECT DISTINCT ON (b.bound, c.component) b.bound, c.side, c.rate FROM b
    JOIN c ON c.bound <= b.bound OR (c.marginal AND c.side = 'out')
    ORDER BY b.bound, c.component, CASE WHEN c.marginal THEN c.rate ELSE c.bound END DESC
  )
  SELECT jsonb_agg(jsonb_build_object('from', b.bound, 'upto', b.upto,
    'in', (SELECT max(r.rate) FROM r WHERE r.bound = b.bound AND r.side = 'in'),
    'out', (SELECT max(r.rate) FROM r WHERE r.bound = b.bound AND r.side = 'out'),
    'fee', (SELECT coalesce(max(r.rate), 0) FROM r WHERE r.bound = b.bound AND r.side = 'fee')) ORDER BY b.bound)
  FROM b
$$;


-- What a call may cost at most, as straight lines over its output: fixed[i] + rate[i] × output tokens, one for each
-- route and each price tier the prompt may fall in.
CREATE OR REPLACE FUNCTION billing_dearest(
  p_price_keys text[], p_mode text, p_team uuid, p_at timestamptz, p_input bigint, p_output bigint,
  OUT pins jsonb, OUT fixed numeric[], OUT rate numeric[], OUT missing_key text, OUT missing_component text
) LANGUAGE plpgsql STABLE AS $$
DECLARE
  v record;
BEGIN
  pins := '{}';
  fixed := '{}';
  rate := '{}';
  FOR v IN
    SELECT k.price_key, k.price_id, k.cost_id, k.rate_id, x."from", x."in" AS in_rate, x."out" AS out_rate, x.upto, x.fee
    FROM billing_versions(p_price_keys, p_mode, p_team, p_at) k
    LEFT JOIN LATERAL jsonb_to_recordset(
      CASE WHEN k.factor IS NULL THEN k.dearest ELSE billing_tiers(k.price_id, k.factor) END
    ) AS x("from" bigint, upto bigint, "in" numeric, "out" numeric, fee numeric) ON x."from" <= p_input
  LOOP
    pins := pins || jsonb_build_object(v.price_key,
      jsonb_strip_nulls(jsonb_build_object('price', v.price_id, 'cost', v.cost_id, 'rate', v.rate_id)));
    IF v.price_id IS NULL THEN
      missing_key := v.price_key;
    END IF;
    CONTINUE WHEN v."from" IS NULL;
    IF (v.in_rate IS NULL AND p_input > 0) OR (v.out_rate IS NULL AND p_output > 0) THEN
      missing_key := v.price_key;
      missing_component := CASE WHEN v.in_rate IS NULL AND p_input > 0 THEN 'input' ELSE 'output' END;
    END IF;
    fixed := fixed || (v.fee + coalesce(v.in_rate, 0) * least(p_input, coalesce(v.upto, p_input)));
    rate := rate || coalesce(v.out_rate, 0);
  END LOOP;
END $$;


-- The most a call can cost with an output: over all its routes and tiers.
CREATE OR REPLACE FUNCTION billing_most(p_fixed numeric[], p_rate numeric[], p_output bigint) RETURNS numeric
LANGUAGE sql IMMUTABLE AS $$
  SELECT max(x.fixed + x.rate * p_output) FROM unnest(p_fixed, p_rate) AS x(fixed, rate)
$$;
