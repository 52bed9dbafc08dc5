/** What two weeks of an attack, a month of keys in use and years of operation leave in a database, written by SQLite itself. */
import { openDatabase } from '../../../schema/open.ts'

const HOUR_MS = 3_600_000

/** Rows of each kind. */
export interface Histories {
  readonly rates: number
  readonly customers: number
  readonly extensions: number
  readonly audited: number
  /** Of the first wallet. */
  readonly ledger: number
  /** Sources times extensions, in each hour of two weeks. */
  readonly guessedInHour: number
  /** Keys that are used in each hour of 31 days; each on five routes. */
  readonly usedKeys: number
}

/** To the database at `path`, which has keys: up to `now`, milliseconds UTC. */
export function fillHistories(path: string, sizes: Histories, now: number): void {
  const { sqlite, close } = openedForFilling(path)
  const count = (rows: number) => `WITH RECURSIVE c (n) AS (
    SELECT 0 UNION ALL SELECT n + 1 FROM c WHERE n + 1 < ${rows})`
  const hour = Math.floor(now / HOUR_MS)
  try {
    sqlite.exec(`
INSERT INTO tenant (id, slug, name, created_at) VALUES (50, 'filled', 'Filled', 0);
INSERT INTO tenant_domain (domain, tenant_id) VALUES ('filled.example', 50);
INSERT INTO rate_plan (id, name, created_at) VALUES (50, 'filled', 0);
${count(sizes.rates)} INSERT INTO rate (rate_plan_id, prefix, description, rate_per_minute_micros, first_rate_per_minute_micros)
  SELECT 50, '2' || printf('%07d', n), 'Country ' || (n % 200), 10000, 10000 FROM c;
${count(sizes.customers)} INSERT INTO customer (id, name, email, tenant_id, rate_plan_id, created_at, updated_at)
  SELECT 1000 + n, 'customer ' || n, 'c' || n || '@filled.example', 50, 50, 0, 0 FROM c;
INSERT INTO wallet (customer_id, currency, balance_micros, updated_at)
  SELECT id, 'USD', 1000000, 0 FROM customer WHERE id >= 1000;
${count(sizes.extensions)} INSERT INTO extension (id, tenant_id, domain, extension, display_name, ha1_md5, ha1_sha256, created_at, updated_at)
  SELECT 1000 + n, 50, 'filled.example', 1000 + n, 'Phone ' || n, 'a', 'b', 0, 0 FROM c;
${count(sizes.audited)} INSERT INTO audit_entry (at, actor, tenant_id, address, action, target, outcome, status, correlation_id)
  SELECT ${now} - (${sizes.audited} - n) * 1000, 'key:' || (SELECT uuid FROM application_key WHERE id = 1 + n % 20), iif(n % 3 = 0, 50, NULL), '192.0.2.1',
    iif(n % 2 = 0, 'tool get_telemetry', 'POST /api/v1/customers'), '/api/v1/customers/' || n, 'success', 200, 'c-' || n FROM c;
${count(sizes.ledger)} INSERT INTO ledger_entry (wallet_id, kind, amount_micros, balance_after_micros, ref, actor, created_at)
  SELECT (SELECT id FROM wallet WHERE customer_id = 1000), 'debit', -10, 1000000, 'call-' || n, 'system', ${now} - (${sizes.ledger} - n) * 200 FROM c;
${count(sizes.guessedInHour)}, hours (hour) AS (SELECT ${hour} - n FROM c WHERE n < 336)
  INSERT INTO wrong_password (hour, tenant_id, extension_id, source, failures, first_at, last_at)
  SELECT hour, 50, 1000 + n / 20, '203.0.113.' || (n % 20), 3, hour * ${HOUR_MS}, hour * ${HOUR_MS} + 1000 FROM hours, c;
${count(Math.max(744, sizes.usedKeys))}, hours (hour) AS (SELECT ${hour} - n FROM c WHERE n < 744),
  route (name) AS (VALUES ('GET /api/v1/a'), ('GET /api/v1/b'), ('GET /api/v1/c'), ('GET /api/v1/d'), ('GET /api/v1/e'))
  INSERT INTO api_hour (hour, application_key_id, route, outcome, requests, first_at, last_at)
  SELECT hour, 1 + n, route.name, iif(name = 'GET /api/v1/a', 'forbidden', ''), 5, hour * ${HOUR_MS}, hour * ${HOUR_MS} + 1000
  FROM hours, c, route WHERE n < ${sizes.usedKeys};
PRAGMA journal_mode = WAL;`)
  } finally {
    close()
  }
}

function openedForFilling(path: string) {
  const store = openDatabase(path)
  const { sqlite } = store
  sqlite.exec('PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = -200000')
  return { sqlite, close: () => store.close() }
}
