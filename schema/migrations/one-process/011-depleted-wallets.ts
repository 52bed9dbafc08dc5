/** Whether the depletion of a wallet was already reported. */
export const sql = `
ALTER TABLE wallet ADD COLUMN is_depleted INTEGER NOT NULL DEFAULT 0 CHECK (is_depleted IN (0, 1));
UPDATE wallet SET is_depleted = 1
  WHERE balance_micros + (SELECT credit_limit_micros FROM customer WHERE id = customer_id) <= 0
    AND EXISTS (SELECT 1 FROM ledger_entry WHERE wallet_id = wallet.id);
`
