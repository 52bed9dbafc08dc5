/** Decides about a call from outside by the number that is called. Pure. */
import type { OwnedNumber } from '../../schema/contracts/owned-numbers.ts'
import type { InboundTarget } from './routing-records.ts'

/** A number or block, with where calls to it go. */
export interface CalledNumber extends OwnedNumber {
  /** `null`: as routes say. */
  readonly target: InboundTarget | null
}

/** The target of a call, with the row that has chosen it. */
export type NumberDecision =
  | (InboundTarget & { readonly byNumber: CalledNumber })
  /** The number is switched off: nobody is called, whatever the routes say. */
  | { readonly kind: 'inactive_number'; readonly byNumber: CalledNumber }

/** Undefined: the routes decide. A tenant's caller does not reach numbers of another tenant. */
export function numberDecision(
  byNumber: CalledNumber | undefined,
  callerTenantId: number | null,
): NumberDecision | undefined {
  if (byNumber === undefined) return undefined
  const { tenantId, isActive, target } = byNumber
  if (tenantId !== null && callerTenantId !== null && tenantId !== callerTenantId) return undefined
  if (!isActive) return { kind: 'inactive_number', byNumber }
  return target === null ? undefined : { ...target, byNumber }
}
