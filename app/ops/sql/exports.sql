-- The end of an export, for the webhooks of its person; see app/api/sql/jobs.sql.
CREATE OR REPLACE FUNCTION ops_export_ended() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM api_job_tell(
    'export.' || NEW.state, NEW.user_id, NULL,
    jsonb_build_object('export', NEW.id, 'status', NEW.state, 'url', '/api/v1/me/export/' || NEW.id || '/'));
  RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER ops_export_ended AFTER UPDATE ON ops_export FOR EACH ROW
  WHEN (OLD.state IS DISTINCT FROM NEW.state AND NEW.state IN ('ready', 'failed'))
  EXECUTE FUNCTION ops_export_ended();
