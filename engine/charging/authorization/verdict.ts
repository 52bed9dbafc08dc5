/** What the engine's charging port answers; the same words as `schema/contracts/charging.ts`. */
import type { Account } from '../customers/customer.ts'
import type { Admission } from './authorize.ts'

interface Payer {
  readonly customerId: number | null
  readonly tenantId: number | null
  readonly ratePrefix: string | null
  readonly currency: string | null
  readonly isUnauthorizedByOcs: boolean
}

export type Verdict =
  | { readonly kind: 'granted'; readonly account: Payer; readonly grantedSeconds: number }
  | { readonly kind: 'denied'; readonly code: string; readonly account: Payer | null }
  | { readonly kind: 'unreachable'; readonly retryAfterSeconds: number }

const retryAfterSeconds = 5

export function toVerdict(admission: Admission): Verdict {
  switch (admission.kind) {
    case 'granted': {
      const { account, tariff, grantedSeconds } = admission.reservation
      return { kind: 'granted', account: payer(account, tariff?.prefix ?? null), grantedSeconds }
    }
    case 'denied': {
      const { code, account, ratePrefix } = admission
      return { kind: 'denied', code, account: account ? payer(account, ratePrefix) : null }
    }
    case 'overloaded':
      return { kind: 'unreachable', retryAfterSeconds }
  }
}

const payer = (account: Account | undefined, ratePrefix: string | null): Payer => ({
  customerId: account?.terms.customerId ?? null,
  tenantId: account?.terms.tenantId ?? null,
  ratePrefix,
  currency: account?.terms.currency ?? null,
  isUnauthorizedByOcs: false,
})
