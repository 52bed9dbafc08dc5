/**
 * Brakes on calls to a prefix: of a customer, an extension or a tenant, until they expire or are removed. A removed one
 * stays for a while, so that a refused call can be explained. `spend_guard_use` has what the processes have taken of a cap
 * in one period of it (`period_start`: its midnight, or the start of the guard); `given_micros` is what the last request got.
 */
export const sql = `
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
  CHECK (CASE WHEN customer_id IS NULL THEN 0 ELSE 1 END + CASE WHEN extension_id IS NULL THEN 0 ELSE 1 END
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

CREATE TABLE spend_guard_use (
  guard_uuid TEXT NOT NULL REFERENCES spend_guard (guard_uuid) ON DELETE CASCADE,
  period_start INTEGER NOT NULL,
  amount_micros INTEGER NOT NULL,
  taken_micros INTEGER NOT NULL CHECK (taken_micros >= 0),
  given_micros INTEGER NOT NULL,
  PRIMARY KEY (guard_uuid, period_start)
) STRICT, WITHOUT ROWID;
`

export const forServer = `
CREATE TRIGGER note_change AFTER INSERT OR DELETE OR UPDATE ON spend_guard
  FOR EACH STATEMENT EXECUTE FUNCTION note_change();
`
