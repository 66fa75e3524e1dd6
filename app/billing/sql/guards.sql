CREATE EXTENSION IF NOT EXISTS btree_gist;

ALTER TABLE billing_priceversion ADD CONSTRAINT billing_price_no_overlap EXCLUDE USING gist (
  price_key WITH =, side WITH =, mode WITH =,
  coalesce(team_id, '00000000-0000-0000-0000-000000000000'::uuid) WITH =,
  tstzrange(effective_from, effective_to) WITH &&
);

-- Few rows, each changed by every call: room on the page keeps the new row versions beside the old.
ALTER TABLE billing_budgetwindow SET (fillfactor = 20, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_scale_factor = 0);


CREATE OR REPLACE FUNCTION billing_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  -- The only databases ever emptied are those that tests make, whose names begin so.
  IF TG_OP = 'TRUNCATE' AND current_database() LIKE 'test\_%'
    AND coalesce(current_setting('tessera.truncate', true), '') <> 'refuse' THEN
    RETURN NULL;
  END IF;
  RAISE EXCEPTION 'Rows of % are never changed or removed; book an adjusting entry instead.', TG_TABLE_NAME
    USING ERRCODE = 'restrict_violation';
END $$;


-- A price version may only be closed, once, and not in the past.
CREATE OR REPLACE FUNCTION billing_price_guard() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF OLD.effective_to IS NOT NULL OR NEW.effective_to IS NULL OR NEW.effective_to < now()
    OR to_jsonb(NEW) - 'effective_to' <> to_jsonb(OLD) - 'effective_to' THEN
    RAISE EXCEPTION 'A price version is never changed, only closed from now on; write a new version instead.'
      USING ERRCODE = 'restrict_violation';
  END IF;
  RETURN NEW;
END $$;


-- Of an attempt only the server's raw usage block may go, when its retention ends.
CREATE OR REPLACE FUNCTION billing_attempt_guard() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.raw_usage IS NOT NULL OR to_jsonb(NEW) - 'raw_usage' <> to_jsonb(OLD) - 'raw_usage' THEN
    RAISE EXCEPTION 'An attempt is a fact; only its raw usage may be forgotten.' USING ERRCODE = 'restrict_violation';
  END IF;
  RETURN NEW;
END $$;


CREATE OR REPLACE TRIGGER billing_price_closing BEFORE UPDATE ON billing_priceversion
  FOR EACH ROW EXECUTE FUNCTION billing_price_guard();
CREATE OR REPLACE TRIGGER billing_attempt_fact BEFORE UPDATE ON billing_usageattempt
  FOR EACH ROW EXECUTE FUNCTION billing_attempt_guard();

DO $do$
DECLARE
  t text;
BEGIN
  FOREACH t IN ARRAY ARRAY['billing_ledgerentry', 'billing_ledgerline', 'billing_pricecomponent'] LOOP
    EXECUTE format('CREATE OR REPLACE TRIGGER %I BEFORE UPDATE ON %I FOR EACH ROW EXECUTE FUNCTION billing_refuse()',
      t || '_no_update', t);
  END LOOP;
  FOREACH t IN ARRAY ARRAY['billing_ledgerentry', 'billing_ledgerline', 'billing_pricecomponent', 'billing_priceversion',
    'billing_usageattempt'] LOOP
    EXECUTE format('CREATE OR REPLACE TRIGGER %I BEFORE DELETE ON %I FOR EACH ROW EXECUTE FUNCTION billing_refuse()',
      t || '_no_delete', t);
    -- A row trigger does not see a TRUNCATE.
    EXECUTE format('CREATE OR REPLACE TRIGGER %I BEFORE TRUNCATE ON %I FOR EACH STATEMENT EXECUTE FUNCTION billing_refuse()',
      t || '_no_truncate', t);
  END LOOP;
END $do$;
