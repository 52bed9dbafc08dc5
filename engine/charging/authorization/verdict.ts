/** An authorization as the call sees it: plain data. */
import type {
  Account,
  AuthorizationRequest,
  Forecast,
  Funds,
  Verdict,
  NodeVerdict,
  Tariff,
} from '../../../schema/contracts/charging.ts'
import {
  type Authorization,
  type Books,
  type AuthorizationDecision,
  foreseen,
  longestCall,
  rateOfCall,
  refusedBy,
} from './authorize.ts'
import type { Customer } from '../customers/customer.ts'
import { tariffAt } from '../pricing/call-prices.ts'
import { affordableSeconds, costMicros } from '../pricing/price.ts'

const retryAfterSeconds = 5

export function toVerdict(authorization: Authorization | AuthorizationDecision): Verdict {
  switch (authorization.kind) {
    case 'granted': {
      const granted = 'grant' in authorization ? authorization.grant : authorization.reservation
      const { payer, tariff, grantedSeconds, isTrusted = false } = granted
      const account = accountOf(payer, tariff?.prefix ?? null, isTrusted)
      return { kind: 'granted', account, grantedSeconds, funds: fundsOf(payer) }
    }
    case 'denied': {
      const { code, payer, ratePrefix, lack, capUuid, detail } = authorization
      const account = payer ? accountOf(payer, ratePrefix) : null
      const why = {
        ...(lack && { lack }),
        ...(capUuid !== undefined && { capUuid }),
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

/** `books` undefined: records cannot be stored now, so no call starts. */
export function foresee(
  request: Omit<AuthorizationRequest, 'callUuid'>,
  books: Books | undefined,
  deps: { readonly unknownCaller: 'deny' | 'allow'; readonly now: () => number },
): Forecast {
  const now = deps.now()
  const decision: AuthorizationDecision = books
    ? foreseen(request, books, deps.unknownCaller, now)
    : refusedBy('records_waiting')
  const verdict = toVerdict(decision)
  if (decision.kind === 'granted') {
    const { grant, meters } = decision
    const longest = longestCall({ ...grant, amountMicros: 0 }, now)
    const left = Math.min(...meters.map(({ leftMicros }) => leftMicros))
    const capped =
      grant.tariff === null || meters.length === 0
        ? Infinity
        : affordableSeconds(grant.tariff, left)
    const longestSeconds = Math.min(longest, capped)
    // The price of now: a dearer one may be promised to a call that rings until then.
    const tariff = grant.prices ? tariffAt(grant.prices, request.startedAt) : grant.tariff
    return { verdict, ...priceOf(tariff), longestSeconds }
  }
  const payer = decision.kind === 'denied' ? decision.payer : undefined
  const rate = payer && books && rateOfCall(payer, request, books.rates)
  return { verdict, ...priceOf(rate?.tariff ?? null), longestSeconds: 0 }
}

const priceOf = (tariff: Tariff | null): Pick<Forecast, 'tariff' | 'minuteMicros'> => ({
  tariff,
  minuteMicros: tariff && costMicros(tariff, 60),
})
