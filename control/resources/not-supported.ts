/** Rejects fields without effect, by name: nothing is accepted and then ignored. */
import { ApiError, type ErrorDetail } from '../http/api-error.ts'

/** Throws 400 `not_supported` when `details` is not empty. */
export function refuseUnsupported(details: readonly (ErrorDetail | false)[]): void {
  const problems = details.filter((detail) => detail !== false)
  if (problems.length === 0) return
  throw new ApiError(400, 'not_supported', 'The body contains unsupported fields', {
    details: problems,
  })
}
