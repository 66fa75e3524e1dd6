-- The entries of a statement: of its month, and earlier ones that stand in no statement. Those of a month whose own
-- statement is still a draft wait for that one. Once it is issued they are the ones written down.
CREATE OR REPLACE FUNCTION billing_statement_entries(s billing_statement) RETURNS SETOF billing_ledgerentry
LANGUAGE plpgsql STABLE AS $$
BEGIN
  IF s.state = 'issued' THEN
    RETURN QUERY SELECT e.* FROM billing_statemententry x JOIN billing_ledgerentry e ON e.id = x.entry_id
      WHERE x.statement_id = s.id;
    RETURN;
  END IF;
  RETURN QUERY SELECT e.* FROM billing_ledgerentry e
    WHERE (e.team_id = s.team_id OR (s.team_id IS NULL AND e.team_id IS NULL)) AND e.effective_at < s.ends_at
      AND NOT EXISTS (SELECT 1 FROM billing_statemententry x WHERE x.entry_id = e.id)
      AND NOT EXISTS (SELECT 1 FROM billing_statement d
        WHERE d.team_id IS NOT DISTINCT FROM s.team_id AND d.state = 'draft' AND d.month < s.month
          AND e.effective_at >= d.starts_at AND e.effective_at < d.ends_at);
END $$;


-- The lines of a statement as its entries give them, without the rounding line, in their order. All amounts are exact.
CREATE OR REPLACE FUNCTION billing_statement_lines(s billing_statement) RETURNS TABLE (
  section text, month date, cost_centre text, model text, component text, price_version_id uuid, quantity bigint,
  unit_price numeric, per_units integer, min_prompt_tokens bigint, exact numeric, estimated numeric, entries bigint
) LANGUAGE sql STABLE AS $$
  WITH e AS (
    SELECT x.*, x.effective_at < s.starts_at AS earlier,
      CASE WHEN x.effective_at < s.starts_at
        THEN date_trunc('month', x.effective_at AT TIME ZONE s.zone)::date END AS of_month
    FROM billing_statement_entries(s) x
  ), priced AS (
    SELECT e.id, e.earlier, e.of_month, e.cost_centre, e.model, e.estimated, l.component, e.price_version_id, l.quantity,
      l.unit_price, l.per_units, l.min_prompt_tokens, l.amount
    FROM e JOIN billing_ledgerline l ON l.entry_id = e.id AND l.side = 'price' WHERE e.credit IS NULL
    UNION ALL
    -- Booked as a whole, such as a refund.
    SELECT e.id, e.earlier, e.of_month, e.cost_centre, e.model, e.estimated, e.kind, e.price_version_id, NULL, NULL, NULL,
      NULL, e.price
    FROM e WHERE e.credit IS NULL AND e.price <> 0
      AND NOT EXISTS (SELECT 1 FROM billing_ledgerline l WHERE l.entry_id = e.id AND l.side = 'price')
  ), grouped AS (
    SELECT CASE WHEN p.earlier THEN 'adjustment' ELSE 'charge' END AS section, p.of_month, p.cost_centre, p.model,
      p.component, p.price_version_id, sum(p.quantity)::bigint AS quantity, p.unit_price, p.per_units, p.min_prompt_tokens,
      -- A line without an amount is one whose price is not known; it stands by itself.
      sum(p.amount) AS exact, sum(p.amount) FILTER (WHERE p.estimated) AS estimated, count(DISTINCT p.id) AS entries
    FROM priced p
    GROUP BY p.earlier, p.of_month, p.cost_centre, p.model, p.component, p.price_version_id, p.unit_price, p.per_units,
      p.min_prompt_tokens, p.amount IS NULL
    UNION ALL
    SELECT 'credit', e.of_month, e.cost_centre, '',
      CASE e.kind WHEN 'grant' THEN 'given' WHEN 'expiry' THEN 'lapsed' ELSE 'corrected' END
        || coalesce(': ' || nullif(coalesce(nullif(m.source, ''), e.reason), ''), ''),
      NULL, NULL, NULL, NULL, NULL, e.credit, NULL, 1
    FROM e LEFT JOIN billing_creditmovement m ON e.dedupe_key = 'credit:' || m.id WHERE e.credit IS NOT NULL
  )
  SELECT g.section, g.of_month, g.cost_centre, g.model, g.component, g.price_version_id, g.quantity, g.unit_price,
    g.per_units, g.min_prompt_tokens, g.exact, g.estimated, g.entries
  FROM grouped g
  ORDER BY array_position(ARRAY['charge', 'adjustment', 'credit'], g.section), g.of_month NULLS FIRST, g.cost_centre,
    g.model, array_position(ARRAY['input', 'cache_read', 'cache_write', 'output', 'reasoning'], g.component), g.component,
    g.min_prompt_tokens, g.unit_price, g.price_version_id
$$;


-- The sums of a statement. Credit pays an entry when its call was held against the team's prepaid window.
CREATE OR REPLACE FUNCTION billing_statement_sums(
  s billing_statement, OUT exact numeric, OUT missing bigint, OUT credit_opening numeric, OUT credit_moved numeric,
  OUT credit_used numeric
) LANGUAGE plpgsql STABLE AS $$
DECLARE
  v_moved numeric;
  v_used numeric;
BEGIN
  SELECT coalesce(sum(e.price), 0), count(*) FILTER (WHERE e.price_missing), coalesce(sum(e.credit), 0),
    coalesce(sum(e.price) FILTER (WHERE billing_prepaid(e.reservation_id, e.team_id)), 0)
  INTO exact, missing, credit_moved, credit_used FROM billing_statement_entries(s) e;
  IF NOT EXISTS (SELECT 1 FROM billing_ledgerentry WHERE team_id = s.team_id AND credit IS NOT NULL) THEN
    credit_opening := NULL;
    RETURN;
  END IF;
  SELECT coalesce(sum(e.credit), 0), coalesce(sum(e.price) FILTER (WHERE billing_prepaid(e.reservation_id, e.team_id)), 0)
  INTO v_moved, v_used FROM billing_ledgerentry e
  LEFT JOIN billing_statemententry x ON x.entry_id = e.id LEFT JOIN billing_statement o ON o.id = x.statement_id
  WHERE e.team_id = s.team_id AND CASE
    -- What stands in an earlier statement, or will.
    WHEN o.id IS NOT NULL THEN o.month < s.month
    ELSE e.effective_at < s.starts_at AND EXISTS (SELECT 1 FROM billing_statement d WHERE d.team_id = s.team_id
      AND d.state = 'draft' AND d.month < s.month AND e.effective_at >= d.starts_at AND e.effective_at < d.ends_at) END;
  credit_opening := v_moved - v_used;
END $$;


CREATE OR REPLACE FUNCTION billing_prepaid(p_reservation uuid, p_team uuid) RETURNS boolean LANGUAGE sql STABLE AS $$
  SELECT EXISTS (SELECT 1 FROM billing_reservationline l JOIN billing_budgetwindow w ON w.id = l.window_id
    WHERE l.reservation_id = p_reservation AND w.subject = 'c:' || p_team)
$$;


-- Makes drafts of the months that are over: of each month with entries that stand in no statement, or, where that month
-- or a later one has been issued, of the last month that is over. Returns how many.
CREATE OR REPLACE FUNCTION billing_statements_draft(p_zone text, p_currency text, p_places integer, p_at timestamptz)
RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
  v_this date := date_trunc('month', p_at AT TIME ZONE p_zone)::date;
  v_count integer;
BEGIN
  INSERT INTO billing_statement
    (id, created_at, team_id, team_name, month, zone, starts_at, ends_at, currency, places, state, issued_by)
  SELECT billing_uuid7(), clock_timestamp(), m.team_id,
    CASE WHEN m.team_id IS NULL THEN 'The installation itself'
      ELSE coalesce((SELECT t.name FROM accounts_team t WHERE t.id = m.team_id), 'A team that was deleted') END,
    m.month, p_zone, w.starts_at, w.ends_at, p_currency, p_places, 'draft', ''
  FROM (
    SELECT DISTINCT l.team_id, CASE WHEN i.month >= l.month THEN (v_this - interval '1 month')::date ELSE l.month END AS month
    FROM (
      SELECT e.team_id, date_trunc('month', e.effective_at AT TIME ZONE p_zone)::date AS month
      FROM billing_ledgerentry e
      WHERE e.effective_at < (SELECT b.starts_at FROM billing_window_bounds('month', p_zone, p_at) b)
        AND NOT EXISTS (SELECT 1 FROM billing_statemententry x WHERE x.entry_id = e.id)
      GROUP BY 1, 2
    ) l
    LEFT JOIN LATERAL (
      SELECT max(s.month) AS month FROM billing_statement s
      WHERE s.team_id IS NOT DISTINCT FROM l.team_id AND s.state = 'issued'
    ) i ON true
  ) m
  CROSS JOIN LATERAL billing_window_bounds('month', p_zone, billing_instant(m.month, p_zone)) w
  ON CONFLICT DO NOTHING;
  GET DIAGNOSTICS v_count = ROW_COUNT;
  RETURN v_count;
END $$;


-- Issues a draft: writes down its entries and its lines, and gives it the next number. Returns the number, null when it
-- is issued already, and raises when an earlier month of the team is still a draft.
CREATE OR REPLACE FUNCTION billing_statement_issue(p_id uuid, p_by text) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
  s billing_statement%ROWTYPE;
  z record;
  v_total numeric;
  v_rounded numeric;
  v_number integer;
  v_last integer;
BEGIN
  -- One at a time over the installation: numbers have no gaps, and no entry is taken twice.
  PERFORM pg_advisory_xact_lock(hashtextextended('statements', 0));
  SELECT * INTO s FROM billing_statement WHERE id = p_id FOR UPDATE;
  IF s.state IS DISTINCT FROM 'draft' THEN
    RETURN NULL;
  END IF;
  INSERT INTO billing_statemententry (entry_id, statement_id) SELECT e.id, s.id FROM billing_statement_entries(s) e;
  s.state := 'issued';
  SELECT * INTO z FROM billing_statement_sums(s);
  INSERT INTO billing_statementline (statement_id, position, section, month, cost_centre, model, component,
    price_version_id, quantity, unit_price, per_units, min_prompt_tokens, exact, estimated, amount, entries)
  SELECT s.id, row_number() OVER (), l.section, l.month, l.cost_centre, l.model, l.component, l.price_version_id, l.quantity,
    l.unit_price, l.per_units, l.min_prompt_tokens, l.exact, l.estimated, billing_even(l.exact, s.places), l.entries
  FROM billing_statement_lines(s) l;
  v_total := billing_even(z.exact, s.places);
  SELECT coalesce(sum(amount), 0) INTO v_rounded FROM billing_statementline
  WHERE statement_id = s.id AND section IN ('charge', 'adjustment');
  SELECT coalesce(max(position), 0) INTO v_last FROM billing_statementline WHERE statement_id = s.id;
  IF v_total <> v_rounded THEN
    INSERT INTO billing_statementline (statement_id, position, section, cost_centre, model, component, exact, amount, entries)
    VALUES (s.id, v_last + 1, 'rounding', '', '', '', v_total - v_rounded, v_total - v_rounded, 0);
  END IF;
  SELECT coalesce(max(number), 0) + 1 INTO v_number FROM billing_statement;
  UPDATE billing_statement SET state = 'issued', number = v_number, issued_at = clock_timestamp(), issued_by = p_by,
    exact = z.exact, total = v_total, missing = z.missing, credit_opening = z.credit_opening, credit_used = z.credit_used
  WHERE id = s.id;
  RETURN v_number;
END $$;


-- An issued statement is never edited, nor is a draft taken away; numbers follow each other.
CREATE OR REPLACE FUNCTION billing_statement_guard() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF OLD.state = 'issued' THEN
    RAISE EXCEPTION 'An issued statement is never changed; what became known later stands in the next.'
      USING ERRCODE = 'restrict_violation';
  ELSIF NEW.state = 'issued' AND NEW.number <> (SELECT coalesce(max(number), 0) + 1 FROM billing_statement) THEN
    RAISE EXCEPTION 'Statements are numbered one after the other.' USING ERRCODE = 'restrict_violation';
  ELSIF NEW.state = 'issued' AND EXISTS (SELECT 1 FROM billing_statement d
    WHERE d.team_id IS NOT DISTINCT FROM NEW.team_id AND d.state = 'draft' AND d.month < NEW.month) THEN
    RAISE EXCEPTION 'An earlier month of this team is not issued yet.' USING ERRCODE = 'restrict_violation';
  END IF;
  RETURN NEW;
END $$;

CREATE OR REPLACE FUNCTION billing_statement_part_guard() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF (SELECT state FROM billing_statement WHERE id = NEW.statement_id) <> 'draft' THEN
    RAISE EXCEPTION 'An issued statement is never changed; what became known later stands in the next.'
      USING ERRCODE = 'restrict_violation';
  END IF;
  RETURN NEW;
END $$;

CREATE OR REPLACE TRIGGER billing_statement_issued BEFORE UPDATE ON billing_statement
  FOR EACH ROW EXECUTE FUNCTION billing_statement_guard();

DO $do$
DECLARE
  t text;
BEGIN
  FOREACH t IN ARRAY ARRAY['billing_statement', 'billing_statementline', 'billing_statemententry'] LOOP
    IF t <> 'billing_statement' THEN
      EXECUTE format('CREATE OR REPLACE TRIGGER %I BEFORE INSERT ON %I FOR EACH ROW EXECUTE FUNCTION billing_statement_part_guard()',
        t || '_draft_only', t);
      EXECUTE format('CREATE OR REPLACE TRIGGER %I BEFORE UPDATE ON %I FOR EACH ROW EXECUTE FUNCTION billing_refuse()',
        t || '_no_update', t);
    END IF;
    EXECUTE format('CREATE OR REPLACE TRIGGER %I BEFORE DELETE ON %I FOR EACH ROW EXECUTE FUNCTION billing_refuse()',
      t || '_no_delete', t);
    EXECUTE format('CREATE OR REPLACE TRIGGER %I BEFORE TRUNCATE ON %I FOR EACH STATEMENT EXECUTE FUNCTION billing_refuse()',
      t || '_no_truncate', t);
  END LOOP;
END $do$;
