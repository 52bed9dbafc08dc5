/** An authorization as the call sees it: plain data. */
import type { Account, Funds, NodeVerdict, Verdict } from '../../../schema/contracts/charging.ts'
import type { Customer } from '../customers/customer.ts'
import { longestCall, type Authorization, type Decision } from './authorize.ts'

const retryAfterSeconds = 5

export function toVerdict(authorization: Authorization | Decision): Verdict {
  switch (authorization.kind) {
    case 'granted': {
      const granted = 'grant' in authorization ? authorization.grant : authorization.reservation
      const { payer, tariff, grantedSeconds, isTrusted = false } = granted
      const account = accountOf(payer, tariff?.prefix ?? null, isTrusted)
      return { kind: 'granted', account, grantedSeconds, funds: fundsOf(payer) }
    }
    case 'denied': {
      const { code, payer, ratePrefix, lack, guardUuid, detail } = authorization
      const account = payer ? accountOf(payer, ratePrefix) : null
      const why = {
        ...(lack && { lack }),
        ...(guardUuid !== undefined && { guardUuid }),
        ...(detail !== undefined && { detail }),
      }
      return { kind: 'denied', code, account, funds: fundsOf(payer), ...why }
    }
    case 'overloaded':
      return { kind: 'unreachable', retryAfterSeconds, by: authorization.by }
  }
}

/** The same for a node that asks over HTTP. */
export function toNodeVerdict(authorization: Authorization, now: number): NodeVerdict {
  if (authorization.kind !== 'granted') return authorization
  const { reservation } = authorization
  const { callUuid, payer, tariff, grantedSeconds, amountMicros } = reservation
  return {
    kind: 'granted',
    callUuid,
    tariff,
    grantedSeconds,
    customerId: payer?.terms.customerId ?? null,
    reservedMicros: amountMicros,
    affordableSeconds: longestCall(reservation, now),
  }
}

const accountOf = (
  payer: Customer | undefined,
  ratePrefix: string | null,
  isUnauthorizedByOcs = false,
): Account => ({
  customerId: payer?.terms.customerId ?? null,
  tenantId: payer?.terms.tenantId ?? null,
  ratePrefix,
  currency: payer?.terms.currency ?? null,
  isUnauthorizedByOcs,
})

const fundsOf = (payer: Customer | undefined): Funds | undefined =>
  payer && {
    balanceMicros: Number(payer.balanceMicros),
    availableMicros: Number(payer.availableMicros),
  }
