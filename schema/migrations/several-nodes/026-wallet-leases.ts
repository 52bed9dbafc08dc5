/**
 * What each of several processes may spend of a wallet without asking. `leased_micros` is always the sum of the
 * wallet's leases. `request` grows with each request of a node for a lease, `version` with each change of it.
 * `spent_micros` is what was debited on the day `spent_on` (UTC, milliseconds of its midnight).
 */
export const sql = `
ALTER TABLE wallet ADD COLUMN leased_micros INTEGER NOT NULL DEFAULT 0 CHECK (leased_micros >= 0);
ALTER TABLE wallet ADD COLUMN spent_micros INTEGER NOT NULL DEFAULT 0;
ALTER TABLE wallet ADD COLUMN spent_on INTEGER NOT NULL DEFAULT 0;
CREATE TABLE wallet_lease (
  wallet_id INTEGER NOT NULL REFERENCES wallet (id) ON DELETE CASCADE,
  node TEXT NOT NULL,
  amount_micros INTEGER NOT NULL CHECK (amount_micros >= 0),
  version INTEGER NOT NULL,
  request INTEGER NOT NULL,
  PRIMARY KEY (wallet_id, node)
) STRICT, WITHOUT ROWID;
CREATE INDEX wallet_lease_node ON wallet_lease (node, wallet_id);
`
