/** Maps a refused call start to an error response, by the code that its call record would have. */
import { ApiError } from '../../http/api-error.ts'

/** Seconds after which to retry a refused start. */
const RETRY_AFTER = { 'Retry-After': '5' }

const passing = new Set(['ocs_unreachable', 'draining', 'overload', 'storage_unavailable', 'fault'])

export function refusedStart(code: string): ApiError {
  if (code === 'insufficient_funds')
    return new ApiError(
      402,
      code,
      'The wallet of the paying customer has insufficient funds for this call',
    )
  if (!passing.has(code)) return new ApiError(403, code, 'The call is not allowed')
  const reason =
    code === 'ocs_unreachable'
      ? 'The charging system does not answer'
      : 'No call is started at the moment'
  return new ApiError(503, code, reason, { headers: RETRY_AFTER })
}
