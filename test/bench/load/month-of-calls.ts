/** A month of calls of many customers, callers and destinations, some of which are refused or fail. */
import type { Filling } from './many-records.ts'

export const MONTH_DAYS = 30
export const CUSTOMERS = 300

/** Each customer has thirty numbers and calls twenty countries. The divisors differ, so that one group does not say another. */
export const monthOfCalls: Filling = {
  days: MONTH_DAYS,
  insert: `
WITH RECURSIVE
  call (n) AS (
    SELECT CAST(@first AS INTEGER) UNION ALL SELECT n + 1 FROM call WHERE n + 1 < @end
  ),
  drawn AS (
    SELECT n, CAST(@start + n * @stepMs AS INTEGER) AS at, (n / 13) * 37 % 100 AS lot,
      1 + n % ${CUSTOMERS} AS customer, (n / 11) % 30 AS caller, (n / 7) % 20 AS country
    FROM call
  )
INSERT INTO cdr (
  call_uuid, call_id, direction, caller_id_number, destination_number,
  start_stamp, answer_stamp, end_stamp, post_dial_delay_ms, duration, billsec,
  disposition, sip_code, hangup_cause, hangup_by, denial_code, set_id, node, carrier,
  attempts, tenant_id, customer_id, rate_prefix, cost_micros, currency, source_address
)
SELECT
  printf('00000000-0000-4000-8000-%012d', n), n || '-a84b4c76e66710@203.0.113.7', 'outbound',
  '49301' || (10000 + customer * 30 + caller), (1000 + (customer * 7 + country * 29) % 300) || printf('%07d', n % 10000000),
  at, iif(lot < 60, at + 2000, NULL), at + 2000 + n % 120000, 150 + n % 1000,
  2 + n % 120, iif(lot < 60, 1 + n % 120, 0),
  iif(lot < 60, 'ANSWERED', iif(lot < 80, 'BUSY', 'FAILED')), iif(lot < 60, 200, iif(lot < 80, 486, 503)),
  'NORMAL_CLEARING', 'caller', iif(lot < 90, NULL, iif(lot < 95, 'no_rate', 'insufficient_funds')), 1,
  printf('sip:10.0.0.%d:5060;transport=udp', 1 + n / 17 % 4), 'carrier ' || (n / 19 % 5),
  printf('[{"destination":"sip:10.0.0.1:5060;transport=udp","status":200,"reason":"OK","startedAt":%d,"endedAt":%d}]', at, at + 2000),
  1 + customer % 10, customer, '1', iif(lot < 60, 110 * (1 + n % 120), 0), iif(lot < 60, 'USD', NULL),
  '203.0.113.7:5060'
FROM drawn`,
}
