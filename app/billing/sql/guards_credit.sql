CREATE OR REPLACE TRIGGER billing_creditmovement_no_update BEFORE UPDATE ON billing_creditmovement
  FOR EACH ROW EXECUTE FUNCTION billing_refuse();
CREATE OR REPLACE TRIGGER billing_creditmovement_no_delete BEFORE DELETE ON billing_creditmovement
  FOR EACH ROW EXECUTE FUNCTION billing_refuse();
CREATE OR REPLACE TRIGGER billing_creditmovement_no_truncate BEFORE TRUNCATE ON billing_creditmovement
  FOR EACH STATEMENT EXECUTE FUNCTION billing_refuse();
