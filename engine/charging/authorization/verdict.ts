/** An authorization as the call sees it: plain data. */
import type { Account, Verdict } from '../../../schema/contracts/charging.ts'
import type { Customer } from '../customers/customer.ts'
import type { Authorization } from './authorize.ts'

const retryAfterSeconds = 5

export function toVerdict(authorization: Authorization): Verdict {
  switch (authorization.kind) {
    case 'granted': {
      const { payer, tariff, grantedSeconds } = authorization.reservation
      return { kind: 'granted', account: accountOf(payer, tariff?.prefix ?? null), grantedSeconds }
    }
    case 'denied': {
      const { code, payer, ratePrefix } = authorization
      return { kind: 'denied', code, account: payer ? accountOf(payer, ratePrefix) : null }
    }
    case 'overloaded':
      return { kind: 'unreachable', retryAfterSeconds }
  }
}

const accountOf = (payer: Customer | undefined, ratePrefix: string | null): Account => ({
  customerId: payer?.terms.customerId ?? null,
  tenantId: payer?.terms.tenantId ?? null,
  ratePrefix,
  currency: payer?.terms.currency ?? null,
  isUnauthorizedByOcs: false,
})
