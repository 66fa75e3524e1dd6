-- What an entry takes from its reservation, and its cost centre, both pinned when it is booked. The cost centre is that of
-- what it corrects, else of its call's earlier entries, else of the key, else of the team. Later changes of a tag change
-- nothing that was booked.
CREATE OR REPLACE FUNCTION billing_entry_stamp() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.reservation_id IS NOT NULL THEN
    SELECT r.thread_id, r.collections INTO NEW.thread_id, NEW.collections
    FROM billing_reservation r WHERE r.id = NEW.reservation_id;
  END IF;
  IF NEW.cost_centre <> '' THEN
    RETURN NEW;
  END IF;
  IF NEW.supersedes_id IS NOT NULL OR NEW.late THEN
    SELECT e.cost_centre INTO NEW.cost_centre FROM billing_ledgerentry e
    WHERE e.id = NEW.supersedes_id OR (NEW.supersedes_id IS NULL AND e.reservation_id = NEW.reservation_id) LIMIT 1;
    IF FOUND THEN
      RETURN NEW;
    END IF;
  END IF;
  NEW.cost_centre := coalesce(
    nullif((SELECT k.cost_centre FROM accounts_apikey k WHERE k.id = NEW.key_id), ''),
    (SELECT t.cost_centre FROM accounts_team t WHERE t.id = NEW.team_id), '');
  RETURN NEW;
END $$;

CREATE OR REPLACE TRIGGER billing_ledgerentry_stamp BEFORE INSERT ON billing_ledgerentry
  FOR EACH ROW EXECUTE FUNCTION billing_entry_stamp();


-- Lays an entry out for each webhook that wants it, in the entry's own transaction: both are there or neither.
CREATE OR REPLACE FUNCTION billing_entry_tell() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  -- Most installations have none. One that is being opened waits for this entry: see billing_webhook_open.
  IF NOT EXISTS (SELECT 1 FROM billing_webhook WHERE open) THEN
    RETURN NULL;
  END IF;
  INSERT INTO billing_delivery (created_at, webhook_id, entry_id, state, next_at)
  SELECT NEW.recorded_at, w.id, NEW.id, 'pending', NEW.recorded_at
  FROM billing_webhook w WHERE w.open AND (w.team_id IS NULL OR w.team_id = NEW.team_id)
  ON CONFLICT DO NOTHING;
  RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER billing_ledgerentry_tell AFTER INSERT ON billing_ledgerentry
  FOR EACH ROW EXECUTE FUNCTION billing_entry_tell();


-- Opens a webhook between two entries: those being written are waited for, later ones find it open. Where the wait would
-- keep others waiting, it fails instead and is tried again. The application's role may not lock the ledger itself.
CREATE OR REPLACE FUNCTION billing_webhook_open(p_webhook uuid) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT SET lock_timeout = '2s' AS $$
BEGIN
  LOCK TABLE billing_ledgerentry IN SHARE ROW EXCLUSIVE MODE;
  UPDATE billing_webhook SET open = true, paused_until = NULL, failures = 0 WHERE id = p_webhook;
END $$;
