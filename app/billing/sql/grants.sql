-- What the application's role may do. Where the role does not exist (a test database, one role for all) nothing is done.
DO $do$
DECLARE
  t text;
  f regprocedure;
BEGIN
  IF to_regrole('tessera_app') IS NULL THEN
    RETURN;
  END IF;
  FOREACH t IN ARRAY ARRAY['billing_ledgerentry', 'billing_ledgerline', 'billing_pricecomponent',
    'billing_creditmovement', 'billing_exchangerate', 'billing_pause', 'billing_statementline',
    'billing_statemententry'] LOOP
    -- The first migration that runs this does not know every table yet; the last one does.
    CONTINUE WHEN to_regclass(t) IS NULL;
    EXECUTE format('REVOKE ALL ON %I FROM tessera_app', t);
    EXECUTE format('GRANT SELECT, INSERT ON %I TO tessera_app', t);
  END LOOP;
  FOREACH t IN ARRAY ARRAY['billing_priceversion', 'billing_usageattempt', 'billing_budget', 'billing_budgetwindow',
    'billing_reservation', 'billing_reservationline', 'billing_budgetalert', 'billing_limitrequest',
    'billing_overshootalert',
    'billing_teamrate', 'billing_statement'] LOOP
    CONTINUE WHEN to_regclass(t) IS NULL;
    EXECUTE format('REVOKE ALL ON %I FROM tessera_app', t);
    EXECUTE format('GRANT SELECT, INSERT, UPDATE ON %I TO tessera_app', t);
  END LOOP;
  FOR f IN SELECT oid::regprocedure FROM pg_proc WHERE proname LIKE 'billing\_%' AND pronamespace = current_schema()::regnamespace
  LOOP
    EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', f);
    EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO tessera_app', f);
  END LOOP;
END $do$;
