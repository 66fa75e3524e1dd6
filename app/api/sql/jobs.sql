-- Lays the end of a job out for each webhook that wants to hear of it, in the transaction that ends the job: both are
-- there or neither. Ids and states only; whoever may read the rest fetches it.
CREATE OR REPLACE FUNCTION api_job_tell(p_type text, p_user uuid, p_team uuid, p_data jsonb) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  v_event uuid := gen_random_uuid();
  v_at timestamptz := clock_timestamp();
BEGIN
  INSERT INTO api_jobdelivery (created_at, webhook_id, event_id, type, data, state, next_at)
  SELECT v_at, w.id, v_event, p_type, p_data, 'pending', v_at
  FROM api_jobwebhook w
  WHERE w.open AND p_type = ANY (w.events) AND (w.user_id = p_user OR w.team_id = p_team);
END $$;


-- Of a person: what they put in. Of a team: what lies in its collections, but not what is attached to conversations.
CREATE OR REPLACE FUNCTION api_document_ended() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM api_job_tell(
    'document.' || NEW.status,
    CASE WHEN NEW.created_by ~ '^user:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' THEN substr(NEW.created_by, 6)::uuid END,
    (SELECT NEW.team_id FROM retrieval_collection c WHERE c.id = NEW.collection_id AND c.kind = 'library'),
    jsonb_build_object(
      'document', NEW.id, 'collection', NEW.collection_id, 'team', NEW.team_id, 'version', NEW.version,
      'status', NEW.status, 'error', nullif(NEW.error_code, ''), 'url', '/api/v1/documents/' || NEW.id || '/'));
  RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER retrieval_document_ended AFTER UPDATE ON retrieval_document FOR EACH ROW
  WHEN (OLD.status IS DISTINCT FROM NEW.status AND NEW.status IN ('ready', 'failed'))
  EXECUTE FUNCTION api_document_ended();


-- Of a person: what they asked. Of a team: what its own keys asked.
CREATE OR REPLACE FUNCTION api_turn_ended() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM api_job_tell(
    CASE NEW.state WHEN 'failed' THEN 'turn.failed' ELSE 'turn.finished' END,
    NEW.asked_by_id,
    CASE WHEN NEW.asked_by_id IS NULL THEN NEW.team_id END,
    jsonb_build_object(
      'turn', NEW.id, 'conversation', NEW.conversation_id, 'team', NEW.team_id, 'state', NEW.state,
      'finish_reason', nullif(NEW.finish_reason, ''), 'error', NEW.error ->> 'code',
      'url', '/api/v1/turns/' || NEW.id || '/'));
  RETURN NULL;
END $$;

-- A process that was thought dead may tell another end than the sweeper did: that is told as well.
CREATE OR REPLACE TRIGGER chat_turn_ended AFTER UPDATE ON chat_turn FOR EACH ROW
  WHEN (OLD.state IS DISTINCT FROM NEW.state AND NEW.state <> 'running')
  EXECUTE FUNCTION api_turn_ended();
