/** Maps a refused call start to an error response, by the code that its call record would have. */
import { denialText } from '../../schema/contracts/denials.ts'
import { ApiError, conflict } from '../http/api-error.ts'

/** Seconds after which to retry a refused start. */
const RETRY_AFTER = { 'Retry-After': '5' }

/** Guards of charging that refuse a call which its payer may afford. */
const guards = new Set([
  'records_waiting',
  'too_many_calls',
  'database_away',
  'lease_unheard',
  'limit_unheard',
  'cap_unheard',
  'lease_contended',
])

const passing = new Set([
  ...guards,
  'ocs_unreachable',
  'draining',
  'overload',
  'storage_unavailable',
  'node_fenced',
  'fault',
])

/** What a test call through a carrier is refused for, besides what stops any call. */
const tests = new Set([
  'no_route',
  'no_gateway',
  'carrier_limit',
  'emergency_number',
  'internal_number',
])

export function refusedStart(code: string): ApiError {
  const text = denialText(code)
  if (code === 'insufficient_funds') return new ApiError(402, code, text)
  if (tests.has(code)) return conflict(code, text)
  if (!passing.has(code)) return new ApiError(403, code, text)
  return new ApiError(503, code, text, { headers: RETRY_AFTER })
}
