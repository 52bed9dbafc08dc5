/**
 * The reservation of a call, as the journal has it next to the state of the call: made again when
 * the call is resumed.
 */
import type { SavedGrant } from '../../../schema/journal/journal-entries.ts'
import type { RestoredCall } from '../restored-calls.ts'
import { Customer } from '../customers/customer.ts'
import { type Cappable, sourceTenantOf } from '../spending-caps/spending-caps.ts'
import type { Books } from './authorize.ts'
import type { Reservation } from './reservations.ts'

export function toSavedGrant(reservation: Reservation): SavedGrant {
  const { payer, asked } = reservation
  return {
    payerId: payer?.terms.customerId ?? null,
    maxSeconds: toBound(reservation.maxSeconds),
    grantedSeconds: toBound(reservation.grantedSeconds),
    amountMicros: reservation.amountMicros,
    isLastGrant: reservation.isLastGrant,
    // Spend guards have to know this of the source.
    sentAs: asked && sentOf(asked, payer),
    extensionId: asked?.extensionId ?? undefined,
    sourceTenantId: asked && sourceTenantOf(asked),
    mayNamePayer: asked?.mayNamePayer === false ? false : undefined,
    isEmergencyNumber: asked?.isEmergencyNumber === true ? true : undefined,
  }
}

/** The state of a call has a bound. */
const MAX_SENT = 4

function sentOf(
  { sentAs, routingNumber }: Cappable,
  payer: Customer | undefined,
): readonly string[] | undefined {
  const { customerId = null, tenantId = null } = payer?.terms ?? {}
  const sent = sentAs?.(customerId, tenantId) ?? []
  const numbers = routingNumber === undefined ? sent : [routingNumber, ...sent]
  return numbers.length === 0 ? undefined : numbers.slice(0, MAX_SENT)
}

/**
 * Reserves again what the call held, whatever its payer may spend now. One whose payer has been
 * removed is revoked at its next sign of life, as of an inactive customer.
 */
export function holdGrant(
  { callUuid, call, tariff, state: { grant } }: RestoredCall,
  { customers, reservations }: Books,
  now: number,
): void {
  if (grant === undefined) return
  const { payerId, maxSeconds, grantedSeconds, amountMicros, isLastGrant } = grant
  const { extensionId, sourceTenantId = call.tenantId, mayNamePayer, isEmergencyNumber } = grant
  const { sentAs } = grant
  const payer = payerId === null ? undefined : customers.byId(payerId)
  reservations.open(
    {
      callUuid,
      tariff,
      amountMicros,
      isLastGrant,
      // Its part of caps was taken by the process before this one, and counts as spent.
      asked: {
        caller: call.callerNumber,
        callee: call.calledNumber,
        customerId: payerId,
        payerTenantId: sourceTenantId,
        startedAt: call.startedAt,
        ...(extensionId !== undefined && { extensionId }),
        ...(mayNamePayer === false && { mayNamePayer }),
        ...(isEmergencyNumber && { isEmergencyNumber }),
        ...(sentAs && { sentAs: () => sentAs }),
      },
      payer: payerId === null ? payer : (payer ?? removed(payerId, call.tenantId)),
      maxSeconds: maxSeconds ?? Infinity,
      grantedSeconds: grantedSeconds ?? Infinity,
    },
    now,
  )
}

const toBound = (seconds: number): number | null => (seconds === Infinity ? null : seconds)

const removed = (customerId: number, tenantId: number | null): Customer =>
  new Customer(
    {
      customerId,
      name: '',
      tenantId,
      isActive: false,
      planId: null,
      walletId: null,
      currency: null,
      creditLimitMicros: 0,
      maxConcurrentCalls: 0,
      maxCps: 0,
      maxDailySpendMicros: 0,
      maxCallSeconds: 0,
      lowBalanceMicros: 0,
    },
    0n,
  )
