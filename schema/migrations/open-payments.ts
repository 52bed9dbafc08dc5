/** Payments that are not credited: what their events have told so far, by each of their names. */
export const sql = `
-- Rows of one payment say the same. amount_micros is null until the money has arrived.
CREATE TABLE open_payment (
  reference TEXT PRIMARY KEY,
  payment TEXT NOT NULL,
  id_or_name TEXT,
  email TEXT,
  amount_micros INTEGER CHECK (amount_micros > 0),
  currency TEXT,
  told_at INTEGER NOT NULL,
  CHECK ((amount_micros IS NULL) = (currency IS NULL))
) STRICT, WITHOUT ROWID;
CREATE INDEX open_payment_payment ON open_payment (payment);
CREATE INDEX open_payment_told ON open_payment (told_at) WHERE amount_micros IS NULL;
`
