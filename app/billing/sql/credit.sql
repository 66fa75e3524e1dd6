-- What is left of each grant of a team when it has spent p_spent. Of the grants that are there, the one that lapses first
-- is spent first; what was spent before a grant was given cannot have come from it. Spending without credit (more was
-- used than held) is owed, and taken from the next grant.
CREATE OR REPLACE FUNCTION billing_credit_lots(p_team uuid, p_spent numeric)
RETURNS TABLE (grant_id bigint, expires_at timestamptz, remaining numeric)
LANGUAGE plpgsql STABLE AS $$
DECLARE
  m record;
  i integer;
  v_ids bigint[] := '{}';
  v_ends timestamptz[] := '{}';
  v_left numeric[] := '{}';
  v_done numeric := 0;
  v_owed numeric := 0;
  v_used numeric;
BEGIN
  FOR m IN
    SELECT c.id, c.kind, c.grant_id AS of, c.amount, coalesce(c.expires_at, 'infinity') AS ends, c.spent_before
    FROM billing_creditmovement c WHERE c.team_id = p_team
    UNION ALL SELECT 9223372036854775807, 'now', NULL, 0, NULL, p_spent
    ORDER BY id
  LOOP
    v_owed := v_owed + m.spent_before - v_done;
    v_done := m.spent_before;
    FOR i IN SELECT n FROM unnest(v_ends) WITH ORDINALITY AS u(ends, n) ORDER BY ends, n LOOP
      v_used := least(v_owed, greatest(v_left[i], 0));
      v_left[i] := v_left[i] - v_used;
      v_owed := v_owed - v_used;
    END LOOP;
    IF m.kind = 'grant' THEN
      v_ids := v_ids || m.id;
      v_ends := v_ends || m.ends;
      v_left := v_left || m.amount;
    ELSIF m.of IS NOT NULL THEN
      i := array_position(v_ids, m.of);
      -- Taken from a grant that was spent already: owed by the others.
      v_owed := v_owed + greatest(-(v_left[i] + m.amount), 0);
      v_left[i] := greatest(v_left[i] + m.amount, 0);
    END IF;
  END LOOP;
  RETURN QUERY SELECT * FROM unnest(v_ids, v_ends, v_left);
END $$;


-- Writes one movement and its ledger entry. The caller holds the lock of the team's prepaid window.
CREATE OR REPLACE FUNCTION billing_credit_write(
  p_team uuid, p_kind text, p_grant bigint, p_amount numeric, p_currency text, p_expires timestamptz, p_spent numeric,
  p_source text, p_reason text, p_actor text, p_dedupe text
) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  v_id bigint;
  v_now timestamptz := clock_timestamp();
BEGIN
  INSERT INTO billing_creditmovement (
    created_at, team_id, kind, grant_id, amount, currency, expires_at, spent_before, source, reason, actor, dedupe_key
  ) VALUES (
    v_now, p_team, p_kind, p_grant, p_amount, p_currency, p_expires, p_spent, p_source, p_reason, p_actor,
    coalesce(nullif(p_dedupe, ''), billing_uuid7()::text)
  ) RETURNING id INTO v_id;
  INSERT INTO billing_ledgerentry (
    id, kind, dedupe_key, effective_at, recorded_at, currency, price, cost, credit, price_missing, team_id, call_kind,
    price_key, model, input_tokens, output_tokens, estimated, overshoot, late, recreated, supersedes_id, actor, reason
  ) VALUES (
    billing_uuid7(), CASE p_kind WHEN 'correction' THEN 'adjust' ELSE p_kind END, 'credit:' || v_id, v_now, v_now,
    p_currency, 0, NULL, p_amount, false, p_team, '', '', '', 0, 0, false, false, false, false,
    (SELECT e.id FROM billing_ledgerentry e WHERE e.dedupe_key = 'credit:' || p_grant), p_actor, left(p_reason, 400)
  );
  RETURN v_id;
END $$;


-- Brings the limit to the sum of the movements, and says when a grant lapses next. Only the window's row changes: a lock
-- of the budget's row after the window's could wait for a call that waits for the window.
CREATE OR REPLACE FUNCTION billing_credit_limit(p_window uuid, p_team uuid) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  w billing_budgetwindow%ROWTYPE;
  v_limit numeric;
  v_next timestamptz;
BEGIN
  SELECT * INTO w FROM billing_budgetwindow WHERE id = p_window;
  SELECT greatest(coalesce(sum(amount), 0), 0) INTO v_limit FROM billing_creditmovement WHERE team_id = p_team;
  SELECT min(l.expires_at) INTO v_next
  FROM billing_credit_lots(p_team, w.spent) l WHERE l.remaining > 0 AND l.expires_at < 'infinity';
  UPDATE billing_budgetwindow SET limit_snapshot = v_limit, review_at = v_next WHERE id = p_window;
END $$;


-- Takes back what is unspent of the grants that have lapsed. What running calls hold is theirs: it lapses when they end.
-- The caller holds the lock of the team's prepaid window, with its ended lines folded in.
CREATE OR REPLACE FUNCTION billing_credit_lapse(p_team uuid, p_at timestamptz) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
  w billing_budgetwindow%ROWTYPE;
  g record;
  v_count integer := 0;
BEGIN
  SELECT * INTO w FROM billing_budgetwindow WHERE subject = 'c:' || p_team;
  FOR g IN
    SELECT l.grant_id, l.remaining, m.currency FROM billing_credit_lots(p_team, w.spent + w.held) l
    JOIN billing_creditmovement m ON m.id = l.grant_id WHERE l.expires_at <= p_at AND l.remaining > 0
  LOOP
    PERFORM billing_credit_write(p_team, 'expiry', g.grant_id, -g.remaining, g.currency, NULL, w.spent, '',
      'Unspent when the grant lapsed.', 'billing', '');
    v_count := v_count + 1;
  END LOOP;
  PERFORM billing_credit_limit(w.id, p_team);
  RETURN v_count;
END $$;


-- Locks a team's prepaid window, made when it is the team's first credit, and counts in what has ended.
-- The budget's own limit stays 0 and is never looked at: the window carries the sum.
CREATE OR REPLACE FUNCTION billing_credit_lock(p_team uuid) RETURNS billing_budgetwindow LANGUAGE plpgsql AS $$
DECLARE
  v_subject text := 'c:' || p_team;
  v_budget uuid;
  w billing_budgetwindow%ROWTYPE;
BEGIN
  PERFORM pg_advisory_xact_lock(hashtextextended('credit:' || p_team, 0));
  SELECT b.id INTO v_budget FROM billing_budget b WHERE b.subject = v_subject;
  IF v_budget IS NULL THEN
    v_budget := billing_uuid7();
    INSERT INTO billing_budget (id, created_at, scope, subject, name, unit, "limit", price_key, period, zone, hard,
      alert_ratios, active, set_by)
    VALUES (v_budget, clock_timestamp(), 'prepaid', v_subject, 'prepaid credit', 'money', 0, '', 'lifetime', 'UTC', true,
      '["0.5", "0.8", "1"]', true, 'billing');
    INSERT INTO billing_budgetwindow
      (id, created_at, budget_id, subject, unit, price_key, starts_at, ends_at, limit_snapshot, spent, held)
    SELECT billing_uuid7(), clock_timestamp(), v_budget, v_subject, 'money', '', t.starts_at, t.ends_at, 0, 0, 0
    FROM billing_window_bounds('lifetime', 'UTC', now()) t;
  END IF;
  UPDATE billing_budget SET active = true WHERE id = v_budget AND NOT active;
  PERFORM 1 FROM billing_budgetwindow WHERE budget_id = v_budget FOR NO KEY UPDATE;
  PERFORM billing_fold(ARRAY(SELECT id FROM billing_budgetwindow WHERE budget_id = v_budget));
  SELECT * INTO w FROM billing_budgetwindow WHERE budget_id = v_budget;
  RETURN w;
END $$;


-- Gives a team credit, or corrects a grant. A repeat of a dedupe key gives back what was written first.
--
-- In: team_id, kind (grant | correction), amount, currency, grant_id?, expires_at?, source, reason, actor, dedupe_key.
-- Out: {id, replayed}, {unknown: true} for a grant that is not this team's, {negative: text} for a correction that takes
-- more than was given.
CREATE OR REPLACE FUNCTION billing_credit_move(p jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
  v_team uuid := p ->> 'team_id';
  v_grant bigint := p ->> 'grant_id';
  v_amount numeric := p ->> 'amount';
  v_given numeric;
  v_id bigint;
  w billing_budgetwindow%ROWTYPE;
BEGIN
  IF v_grant IS NOT NULL AND NOT EXISTS (
    SELECT 1 FROM billing_creditmovement WHERE id = v_grant AND team_id = v_team AND kind = 'grant') THEN
    RETURN '{"unknown": true}';
  END IF;
  w := billing_credit_lock(v_team);
  SELECT id INTO v_id FROM billing_creditmovement WHERE dedupe_key = p ->> 'dedupe_key';
  IF v_id IS NOT NULL THEN
    RETURN jsonb_build_object('id', v_id, 'replayed', true);
  END IF;
  SELECT sum(amount) INTO v_given FROM billing_creditmovement
  WHERE v_grant IN (id, grant_id) AND kind IN ('grant', 'correction');
  IF v_given + v_amount < 0 THEN
    RETURN jsonb_build_object('negative', v_given::text);
  END IF;
  v_id := billing_credit_write(v_team, p ->> 'kind', v_grant, v_amount, p ->> 'currency',
    (p ->> 'expires_at')::timestamptz, w.spent, p ->> 'source', p ->> 'reason', p ->> 'actor', p ->> 'dedupe_key');
  PERFORM billing_credit_limit(w.id, v_team);
  RETURN jsonb_build_object('id', v_id, 'replayed', false);
END $$;


-- Takes back what has lapsed, of every team. A reserve does it for its own team first, so no call is ever admitted by it.
CREATE OR REPLACE FUNCTION billing_credit_sweep() RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
  b record;
  v_count integer := 0;
BEGIN
  FOR b IN SELECT substr(subject, 3)::uuid AS team FROM billing_budgetwindow
    WHERE subject LIKE 'c:%' AND review_at <= clock_timestamp() ORDER BY id
  LOOP
    PERFORM billing_credit_lock(b.team);
    v_count := v_count + billing_credit_lapse(b.team, clock_timestamp());
  END LOOP;
  RETURN v_count;
END $$;
