/**
 * Versions of what the API shows: `ETag`, and `If-Match`, by which a change is made only to the
 * version that its author has seen (RFC 9110 §13.1.1).
 */
import { createHash } from 'node:crypto'
import type { Context, MiddlewareHandler } from 'hono'
import { ApiError } from './api-error.ts'
import { type ControlEnv, requestHeader, setAnswerHeader } from './control-env.ts'
import { describeHandler, isVersioned } from './validate.ts'

/**
 * The version of a state, as a strong `ETag`. The state is what a request may change, and when it
 * was changed last; without secrets, which could be guessed from it, and without figures that
 * change by themselves.
 */
export function versionOf(state: unknown): string {
  const digest = createHash('sha256').update(JSON.stringify(state)).digest('base64url')
  return `"${digest.slice(0, 22)}"`
}

/** Describes a route that shows a version, or carries out a change only of a named one. */
export function versioned(): MiddlewareHandler<ControlEnv> {
  const pass: MiddlewareHandler<ControlEnv> = (c, next) => {
    // Refuses a header that nobody can read before anything is done.
    if (isChange(c)) wantedBy(c)
    return next()
  }
  describeHandler(pass, { isVersioned: true })
  return pass
}

export const showVersion = (c: Context<ControlEnv>, version: string): void =>
  setAnswerHeader(c, 'ETag', version)

/** The present version, and what the route shows of it. */
interface Present {
  readonly version: string
  /** Absent: the asker may not see it. */
  readonly shown?: (() => unknown) | undefined
}

/**
 * Throws 412 when the request names other versions than the present one. Call it in the transaction
 * of the change: nobody changes it in between.
 */
export function refuseOtherVersion(c: Context<ControlEnv>, { version, shown }: Present): void {
  const wanted = wantedBy(c)
  if (wanted === undefined || wanted === 'any' || wanted.includes(version)) return
  throw new ApiError(
    412,
    'precondition_failed',
    'It was changed meanwhile: nothing was done. Look at it as it is now, then send its ETag',
    { headers: { ETag: version }, ...(shown !== undefined && { current: shown() }) },
  )
}

/** Refuses the header at a route that would ignore it: its sender relies on it. */
export function refuseUnversioned(c: Context<ControlEnv>): void {
  if (!isChange(c) || requestHeader(c, 'if-match') === undefined || isVersioned(c)) return
  throw new ApiError(
    400,
    'if_match_not_supported',
    'This operation does not support If-Match. Nothing was done: send it without the header',
  )
}

const isChange = ({ req: { method } }: Context<ControlEnv>): boolean => !/^(GET|HEAD)$/.test(method)

/** A list of tags; those of weak versions are never equal to a strong one. */
const tagList =
  /^(?:W\/)?"[\x21\x23-\x7E\x80-\xFF]*"(?:[ \t]*,[ \t]*(?:W\/)?"[\x21\x23-\x7E\x80-\xFF]*")*$/

/** Undefined: the request has no condition. */
function wantedBy(c: Context<ControlEnv>): readonly string[] | 'any' | undefined {
  const given = requestHeader(c, 'if-match')?.trim()
  if (given === undefined) return undefined
  if (given === '*') return 'any'
  if (!tagList.test(given))
    throw new ApiError(400, 'validation_failed', 'The header If-Match is not valid', {
      details: [{ path: 'If-Match', message: 'must be * or ETags in quotation marks' }],
    })
  return given.match(/(?:W\/)?"[^"]*"/g) ?? []
}
