/** Whether the number in From determines the payer of a carrier without a customer. */
export const sql = `
ALTER TABLE carrier ADD COLUMN payer TEXT NOT NULL DEFAULT 'customer'
  CHECK (payer IN ('customer', 'from_number'));
`
