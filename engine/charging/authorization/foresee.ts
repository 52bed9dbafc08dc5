/** What a call would be told, of which nothing is reserved or counted. */
import type { AuthorizationRequest, Foreseen } from '../../../schema/contracts/charging.ts'
import { affordableSeconds } from '../pricing/grant.ts'
import {
  foreseen,
  longestCall,
  rateOfCall,
  refusedBy,
  type Books,
  type Decision,
} from './authorize.ts'
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
    return { verdict, tariff: grant.tariff, longestSeconds: Math.min(longest, capped) }
  }
  const payer = decision.kind === 'denied' ? decision.payer : undefined
  const rate = payer && books && rateOfCall(payer, request, books.rates)
  return { verdict, tariff: rate?.tariff ?? null, longestSeconds: 0 }
}
