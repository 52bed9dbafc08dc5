/** Fields that require a scope beyond that of their resource, such as money. */
import { ApiError } from '../http/api-error.ts'
import type { Principal } from './principal.ts'
import { admitScope } from './requires.ts'
import type { Scope } from './scopes.ts'

export interface BeyondScope {
  /** The name in the body. */
  readonly field: string
  /** One of them is enough. */
  readonly scopes: readonly [Scope, ...Scope[]]
}

/** Throws 403, with the field's path, for the first field that the principal may not write. */
export function refuseBeyondScope(principal: Principal, fields: readonly BeyondScope[]): void {
  for (const { field, scopes } of fields) {
    const held = scopes.find((scope) => principal.scopes.has(scope)) ?? scopes[0]
    try {
      admitScope(principal, held)
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      const { status, code, message } = error
      const details = [{ path: field, message: `requires the scope ${scopes.join(' or ')}` }]
      throw new ApiError(status, code, message, { details })
    }
  }
}

/** The change that a write made to a row, as the API shows it. */
export interface Written<View> {
  /** The body, or the given part of a PATCH. */
  readonly given: Readonly<Record<string, unknown>>
  /** Absent for a new row. */
  readonly before?: View
  readonly after: View
}

/** Returns `fields` whose condition is true. */
export const fieldsWhere = (
  ...fields: readonly (readonly [boolean, BeyondScope['field'], BeyondScope['scopes']])[]
): readonly BeyondScope[] =>
  fields.flatMap(([isWritten, field, scopes]) => (isWritten ? [{ field, scopes }] : []))

/** The scopes that undoing a write takes: those of its resource, and of the fields on the way there and back. */
export function scopesToUndo<View>(
  { scopes: held }: Principal,
  scope: Scope,
  written: Written<View> & { readonly before: View },
  beyond: (written: Written<View>) => readonly BeyondScope[] = () => [],
): readonly Scope[] {
  const { before, after } = written
  const fields = [...beyond(written), ...beyond({ given: {}, before: after, after: before })]
  const ofFields = fields.map(({ scopes }) => scopes.find((each) => held.has(each)) ?? scopes[0])
  return [...new Set([scope, ...ofFields])]
}
