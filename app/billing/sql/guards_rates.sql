ALTER TABLE billing_teamrate ADD CONSTRAINT billing_team_rate_no_overlap EXCLUDE USING gist (
  team_id WITH =, price_key WITH =, tstzrange(effective_from, effective_to) WITH &&
);

CREATE OR REPLACE TRIGGER billing_teamrate_closing BEFORE UPDATE ON billing_teamrate
  FOR EACH ROW EXECUTE FUNCTION billing_price_guard();
CREATE OR REPLACE TRIGGER billing_exchangerate_no_update BEFORE UPDATE ON billing_exchangerate
  FOR EACH ROW EXECUTE FUNCTION billing_refuse();

DO $do$
DECLARE
  t text;
BEGIN
  FOREACH t IN ARRAY ARRAY['billing_teamrate', 'billing_exchangerate'] LOOP
    EXECUTE format('CREATE OR REPLACE TRIGGER %I BEFORE DELETE ON %I FOR EACH ROW EXECUTE FUNCTION billing_refuse()',
      t || '_no_delete', t);
    EXECUTE format('CREATE OR REPLACE TRIGGER %I BEFORE TRUNCATE ON %I FOR EACH STATEMENT EXECUTE FUNCTION billing_refuse()',
      t || '_no_truncate', t);
  END LOOP;
END $do$;
