/** Nothing is accepted and then ignored: a field without effect yet is refused, and named. */
import { ApiError, type ErrorDetail } from '../http/api-error.ts'

/** Throws 400 `not_supported` when any of `details` is there. */
export function refuseUnsupported(details: readonly (ErrorDetail | false)[]): void {
  const problems = details.filter((detail) => detail !== false)
  if (problems.length === 0) return
  throw new ApiError(400, 'not_supported', 'The body asks for what is not supported', {
    details: problems,
  })
}
