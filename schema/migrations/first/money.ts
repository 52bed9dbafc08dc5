/** Wallets, their ledger, payments, and guards on spending. */
import { noteAnyChange } from './instances.ts'

export const sql = `
-- spent_micros is what was debited on the day spent_on (UTC, milliseconds of its midnight).
-- is_depleted: the depletion was reported.
CREATE TABLE wallet (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  customer_id INTEGER NOT NULL UNIQUE REFERENCES customer (id),
  currency TEXT NOT NULL CHECK (length(currency) = 3),
  balance_micros INTEGER NOT NULL DEFAULT 0,
  is_depleted INTEGER NOT NULL DEFAULT 0 CHECK (is_depleted IN (0, 1)),
  spent_micros INTEGER NOT NULL DEFAULT 0,
  spent_on INTEGER NOT NULL DEFAULT 0,
  updated_at INTEGER NOT NULL
) STRICT;

CREATE TABLE ledger_entry (
  id INTEGER PRIMARY KEY,
  wallet_id INTEGER NOT NULL REFERENCES wallet (id),
  kind TEXT NOT NULL CHECK (kind IN ('topup', 'debit', 'adjust', 'refund')),
  amount_micros INTEGER NOT NULL,
  balance_after_micros INTEGER NOT NULL,
  ref TEXT NOT NULL,
  actor TEXT NOT NULL,
  note TEXT,
  created_at INTEGER NOT NULL,
  UNIQUE (kind, ref)
) STRICT;
CREATE INDEX ledger_entry_wallet ON ledger_entry (wallet_id, id);
CREATE TRIGGER ledger_entry_no_update BEFORE UPDATE ON ledger_entry
  BEGIN SELECT RAISE(ABORT, 'ledger entries are append-only'); END;
CREATE TRIGGER ledger_entry_no_delete BEFORE DELETE ON ledger_entry
  BEGIN SELECT RAISE(ABORT, 'ledger entries are append-only'); END;

CREATE TABLE payment_event (
  event_id TEXT PRIMARY KEY,
  kind TEXT NOT NULL,
  outcome TEXT NOT NULL CHECK (outcome IN ('credited', 'duplicate', 'ignored', 'alert')),
  received_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE payment_reference (
  reference TEXT PRIMARY KEY,
  payment TEXT NOT NULL,
  customer_id INTEGER NOT NULL REFERENCES customer (id),
  amount_micros INTEGER NOT NULL CHECK (amount_micros > 0)
) STRICT, WITHOUT ROWID;

-- Payments that need attention.
CREATE TABLE billing_alert (
  id INTEGER PRIMARY KEY,
  kind TEXT NOT NULL,
  event_id TEXT NOT NULL,
  event_kind TEXT NOT NULL,
  customer_id INTEGER REFERENCES customer (id),
  reference TEXT,
  amount_micros INTEGER,
  currency TEXT,
  detail TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  resolved_at INTEGER,
  resolved_by TEXT,
  UNIQUE (event_id, kind)
) STRICT;
CREATE INDEX billing_alert_open ON billing_alert (id) WHERE resolved_at IS NULL;
CREATE INDEX billing_alert_reference ON billing_alert (reference);
CREATE INDEX billing_alert_customer ON billing_alert (customer_id);

-- Brakes on calls to a prefix: of a customer, an extension or a tenant, until they expire or are
-- removed. A removed one stays for a while, so that a refused call can be explained.
CREATE TABLE spend_guard (
  guard_uuid TEXT PRIMARY KEY,
  customer_id INTEGER REFERENCES customer (id) ON DELETE CASCADE,
  extension_id INTEGER REFERENCES extension (id) ON DELETE CASCADE,
  tenant_id INTEGER REFERENCES tenant (id) ON DELETE CASCADE,
  set_by_tenant_id INTEGER REFERENCES tenant (id) ON DELETE CASCADE,
  prefix TEXT NOT NULL,
  action TEXT NOT NULL CHECK (action IN ('block', 'cap')),
  amount_micros INTEGER NOT NULL DEFAULT 0 CHECK (amount_micros >= 0),
  currency TEXT,
  per TEXT CHECK (per IN ('duration', 'day')),
  reason TEXT NOT NULL,
  created_by TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  changed_at INTEGER NOT NULL,
  expires_at INTEGER,
  ends_calls_before INTEGER,
  ended_at INTEGER,
  ended_by TEXT,
  CHECK (CASE WHEN customer_id IS NULL THEN 0 ELSE 1 END
    + CASE WHEN extension_id IS NULL THEN 0 ELSE 1 END
    + CASE WHEN tenant_id IS NULL THEN 0 ELSE 1 END = 1),
  CHECK ((action = 'cap') = (currency IS NOT NULL)),
  CHECK ((action = 'cap') = (per IS NOT NULL))
) STRICT, WITHOUT ROWID;
CREATE INDEX spend_guard_customer ON spend_guard (customer_id, ended_at);
CREATE INDEX spend_guard_extension ON spend_guard (extension_id, ended_at);
CREATE INDEX spend_guard_tenant ON spend_guard (tenant_id, ended_at);
CREATE INDEX spend_guard_setter ON spend_guard (set_by_tenant_id);
CREATE INDEX spend_guard_ended ON spend_guard (ended_at, created_at);
CREATE INDEX spend_guard_created ON spend_guard (created_at);
`

export const forServer = `
${noteAnyChange('spend_guard')}
CREATE FUNCTION note_changed_wallet() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM note_change_of('wallet', coalesce(NEW.customer_id, OLD.customer_id)::text);
  RETURN NULL;
END $$;
CREATE TRIGGER note_change AFTER INSERT OR DELETE OR UPDATE OF customer_id, currency ON wallet
  FOR EACH ROW EXECUTE FUNCTION note_changed_wallet();
`
