/** Who may change a spend guard. */
import type { Principal } from '../../auth/principal.ts'
import { ApiError } from '../../http/api-error.ts'
import type { GuardState } from './guard-store.ts'

/** As in an error: `Spend guard not found`. */
export const noun = 'Spend guard'

/** Throws 403 when the platform has set it: a tenant must not take the brake off that the platform has put on. */
export function refuseForeign(
  { set_by_tenant_id: setBy }: Pick<GuardState, 'set_by_tenant_id'>,
  principal: Setter,
): void {
  const tenantId = setterOf(principal)
  if (tenantId === null || setBy === tenantId) return
  throw new ApiError(
    403,
    'platform_only',
    'The platform has set this spend guard. Nothing was changed: only the platform can change or remove it',
  )
}

type Setter = Pick<Principal, 'tenantId' | 'isGlobal'>

/** Whose a guard is that it sets; null: the platform's, also where it acts in a tenant. */
export const setterOf = ({ tenantId, isGlobal = false }: Setter): number | null =>
  isGlobal ? null : tenantId
