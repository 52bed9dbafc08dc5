/** Parses answers of an external OCS. It may be of another make: only the status is certain. */
import { parseMoney } from '../../../schema/columns.ts'
import type { Account } from '../../../schema/contracts/charging.ts'

export interface Grant {
  readonly account: Account
  /** Infinity: the OCS names no limit. */
  readonly grantedSeconds: number
}

/** Reads a 200 to authorize. Undefined: the body says that the call is not authorized. */
export function readGrant(body: unknown, customerId: number | null): Grant | undefined {
  const answer = fields(body)
  if (answer.authorized === false) return undefined
  return {
    account: {
      customerId: integer(answer.customer_id) ?? customerId,
      tenantId: null,
      ratePrefix: text(answer.rate_prefix) ?? null,
      currency: text(answer.currency) ?? null,
      isUnauthorizedByOcs: false,
    },
    grantedSeconds: readGrantedSeconds(body),
  }
}

export function readGrantedSeconds(body: unknown): number {
  const seconds = fields(body).granted_seconds
  return typeof seconds === 'number' && seconds >= 0 ? seconds : Infinity
}

/** The denial code, one snake_case word. */
export function readDenialCode(body: unknown, status: number): string {
  const code = text(fields(body).code)
  return code !== undefined && /^[a-z][a-z0-9_]{0,63}$/.test(code) ? code : `ocs_status_${status}`
}

/** Reads a 200 to a CDR. Undefined: it names no cost. */
export function readCost(
  body: unknown,
): { readonly costMicros: number; readonly currency: string | null } | undefined {
  const answer = fields(body)
  const amount = answer.cost_exact ?? answer.cost
  if (typeof amount !== 'string' && typeof amount !== 'number') return undefined
  const costMicros = parseMoney(amount)
  if (costMicros === undefined || costMicros < 0) return undefined
  return { costMicros, currency: text(answer.currency) ?? null }
}

function fields(body: unknown): Record<string, unknown> {
  return typeof body === 'object' && body !== null ? { ...body } : {}
}

const text = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined)

const integer = (value: unknown): number | undefined =>
  typeof value === 'number' && Number.isSafeInteger(value) ? value : undefined
