-- What roll-ups of the ledger are made of. A trigger notes each entry as pending; folding (`folding.sql`) adds pending entries
-- up and takes the note away in one statement, so each entry is counted once, whenever it comes and whatever its time.
-- Readers add what is pending.

-- One entry as roll-ups count it. Cached and reasoning tokens come from its lines, so that adjustments count too.
CREATE OR REPLACE VIEW billing_spendfact AS
SELECT e.id, e.effective_at AS at, e.team_id, e.account_id, e.key_id, e.deployment_id, e.model, e.call_kind, e.collections,
  e.thread_id, e.kind, e.reservation_id, 1 AS entries,
  (e.kind = 'charge' AND e.call_kind = 'chat' AND NOT EXISTS (
    SELECT 1 FROM billing_ledgerentry x WHERE x.reservation_id = e.reservation_id AND x.kind = 'charge'
      AND x.call_kind = 'chat' AND x.id < e.id))::integer AS requests,
  coalesce(e.price, 0) AS price, coalesce(e.cost, 0) AS cost, CASE WHEN e.estimated THEN coalesce(e.price, 0) ELSE 0 END
    AS estimated_price,
  e.estimated::integer AS estimated, e.price_missing::integer AS unpriced, (e.cost IS NULL)::integer AS uncosted,
  e.input_tokens, e.output_tokens, coalesce(l.cached, 0) AS cached_tokens, coalesce(l.reasoning, 0) AS reasoning_tokens
FROM billing_ledgerentry e
-- The price side names every component; where the payer does not pay there is a cost side alone.
LEFT JOIN LATERAL (
  SELECT coalesce(sum(quantity) FILTER (WHERE component = 'cache_read' AND side = 'price'),
      sum(quantity) FILTER (WHERE component = 'cache_read')) AS cached,
    coalesce(sum(quantity) FILTER (WHERE component = 'reasoning' AND side = 'price'),
      sum(quantity) FILTER (WHERE component = 'reasoning')) AS reasoning
  FROM billing_ledgerline l WHERE l.entry_id = e.id
) l ON true
WHERE e.credit IS NULL;


CREATE OR REPLACE FUNCTION billing_rollup_queue() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO billing_rolluppending (entry_id) SELECT id FROM added;
  RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER billing_ledgerentry_rollup AFTER INSERT ON billing_ledgerentry
  REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION billing_rollup_queue();
