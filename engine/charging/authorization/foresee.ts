/** What a call would be told, of which nothing is reserved or counted. */
import type { AuthorizationRequest, Foreseen } from '../../../schema/contracts/charging.ts'
import { foreseen, longestCall, rateOf, type Books, type Decision } from './authorize.ts'
import { toVerdict } from './verdict.ts'

/** `books` undefined: records cannot be stored now, so no call starts. */
export function foresee(
  request: Omit<AuthorizationRequest, 'callUuid'>,
  books: Books | undefined,
  deps: { readonly unknownCaller: 'deny' | 'allow'; readonly now: () => number },
): Foreseen {
  const now = deps.now()
  const decision: Decision = books
    ? foreseen(request, books, deps.unknownCaller, now)
    : { kind: 'overloaded' }
  const verdict = toVerdict(decision)
  if (decision.kind === 'granted') {
    const longestSeconds = longestCall({ ...decision.grant, amountMicros: 0 }, now)
    return { verdict, tariff: decision.grant.tariff, longestSeconds }
  }
  const payer = decision.kind === 'denied' ? decision.payer : undefined
  const rate = payer && books && rateOf(payer, request.callee, request.startedAt, books.rates)
  return { verdict, tariff: rate?.tariff ?? null, longestSeconds: 0 }
}
