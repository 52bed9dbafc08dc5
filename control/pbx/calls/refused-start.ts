/** Maps a refused call start to an error response, by the code that its call record would have. */
import { ApiError, conflict } from '../../http/api-error.ts'

/** Seconds after which to retry a refused start. */
const RETRY_AFTER = { 'Retry-After': '5' }

const passing = new Set([
  ...['ocs_unreachable', 'draining', 'overload', 'storage_unavailable', 'node_fenced', 'fault'],
])

/** What a test call through a carrier is refused for, besides what stops any call. */
const tests: Readonly<Record<string, string>> = {
  no_route: 'No outbound route of the extension leads this number to the carrier',
  no_gateway: 'No gateway of the carrier can take the call: it is inactive, or fails its probes',
  carrier_limit: 'The carrier has reached max_calls or max_cps',
  emergency_number: 'An emergency number is not called for a test',
  internal_number: 'The number is reached without a carrier: test with one outside',
}

export function refusedStart(code: string): ApiError {
  if (code === 'insufficient_funds')
    return new ApiError(
      402,
      code,
      'The wallet of the paying customer has insufficient funds for this call',
    )
  const untested = tests[code]
  if (untested !== undefined) return conflict(code, untested)
  if (!passing.has(code)) return new ApiError(403, code, 'The call is not allowed')
  const reason =
    code === 'ocs_unreachable'
      ? 'The charging system does not answer'
      : 'No call is started at the moment'
  return new ApiError(503, code, reason, { headers: RETRY_AFTER })
}
