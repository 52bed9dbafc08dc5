/** Fields by which a resource reaches beyond its own scope, such as money: writing them needs another scope too. */
import { ApiError } from '../http/api-error.ts'
import type { Principal } from './principal.ts'
import { admitScope } from './requires.ts'
import type { Scope } from './scopes.ts'

export interface BeyondScope {
  /** As it stands in the body. */
  readonly field: string
  /** One of them suffices. */
  readonly scopes: readonly [Scope, ...Scope[]]
}

/** Throws 403, at the field, for the first one that the principal may not write. */
export function refuseBeyondScope(principal: Principal, fields: readonly BeyondScope[]): void {
  for (const { field, scopes } of fields) {
    const held = scopes.find((scope) => principal.scopes.has(scope)) ?? scopes[0]
    try {
      admitScope(principal, held)
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      const { status, code, message } = error
      const details = [{ path: field, message: `needs the scope ${scopes.join(' or ')}` }]
      throw new ApiError(status, code, message, { details })
    }
  }
}

/** What a write did to a row, as far as it is shown. */
export interface Written<View> {
  /** The body, or the part of it that a PATCH has. */
  readonly given: Readonly<Record<string, unknown>>
  /** Absent: the row is new. */
  readonly before?: View
  readonly after: View
}

/** `fields` where their condition holds. */
export const fieldsWhere = (
  ...fields: readonly (readonly [boolean, BeyondScope['field'], BeyondScope['scopes']])[]
): readonly BeyondScope[] =>
  fields.flatMap(([isWritten, field, scopes]) => (isWritten ? [{ field, scopes }] : []))
