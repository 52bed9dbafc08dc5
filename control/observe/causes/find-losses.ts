/** Findings in what calls earn: carriers that have answered calls at a loss (`warn`). */
import { moneyToDecimal, moneyToNumber } from '../../../schema/columns.ts'
import type { LossTrouble } from '../../../schema/contracts/losses.ts'
import { plural } from '../../http/clean-text.ts'
import type { AnomalyDeps, Finding, Span } from './finding.ts'

/** Each owner sees what its own loss protection warns of; the platform's operator sees all. */
export function findLosses(
  { lossTroubles, tenantId }: Pick<AnomalyDeps, 'lossTroubles' | 'tenantId'>,
  { from, before }: Span,
): readonly Finding[] {
  if (lossTroubles === undefined) return []
  return lossTroubles()
    .filter((trouble) => tenantId === null || trouble.tenantId === tenantId)
    .filter(({ firstAt, lastAt }) => lastAt >= from && firstAt < before)
    .map(findingOf)
}

function findingOf(trouble: LossTrouble): Finding {
  const { customerId, carrier, prefix, currency, calls, seconds, firstAt, lastAt } = trouble
  const amount = (micros: number): string => `${moneyToDecimal(micros)} ${currency}`
  return {
    kind: 'margin',
    ownerId: trouble.tenantId,
    severity: trouble.marginMicros < 0 ? 'high' : 'medium',
    subject: `prefix ${prefix || 'any'} of customer ${customerId} by ${carrier}`,
    what:
      `${plural(calls, 'call')} of customer ${customerId} to ${prefix || 'any prefix'} went out ` +
      `by ${carrier} below the wanted margin: a call of ${plural(seconds, 'second')} is sold for ` +
      `${amount(trouble.saleMicros)} and bought for ${amount(trouble.costMicros)}`,
    firstAt,
    lastAt,
    figures: {
      calls,
      expected_seconds: seconds,
      expected_price: moneyToNumber(trouble.saleMicros),
      expected_cost: moneyToNumber(trouble.costMicros),
      expected_margin: moneyToNumber(trouble.marginMicros),
    },
    evidence: [trouble.lastCallUuid],
    advice:
      'Raise the selling price, route the prefix by a cheaper carrier, or set loss_protection to ' +
      'refuse.',
    next: { tool: 'list_routes', arguments: {} },
    firstStep: null,
  }
}
