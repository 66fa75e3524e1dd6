CREATE OR REPLACE FUNCTION audit_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  -- The only databases ever emptied are those that tests make, whose names begin so.
  IF TG_OP = 'TRUNCATE' AND current_database() LIKE 'test\_%'
    AND coalesce(current_setting('tessera.truncate', true), '') <> 'refuse' THEN
    RETURN NULL;
  END IF;
  RAISE EXCEPTION 'The audit log is only ever added to.' USING ERRCODE = 'restrict_violation';
END $$;

CREATE OR REPLACE TRIGGER audit_auditentry_no_change BEFORE UPDATE OR DELETE ON audit_auditentry
  FOR EACH ROW EXECUTE FUNCTION audit_refuse();
-- A row trigger does not see a TRUNCATE.
CREATE OR REPLACE TRIGGER audit_auditentry_no_truncate BEFORE TRUNCATE ON audit_auditentry
  FOR EACH STATEMENT EXECUTE FUNCTION audit_refuse();

DO $do$
BEGIN
  IF to_regrole('tessera_app') IS NOT NULL THEN
    REVOKE ALL ON audit_auditentry FROM tessera_app;
    GRANT SELECT, INSERT ON audit_auditentry TO tessera_app;
  END IF;
END $do$;
