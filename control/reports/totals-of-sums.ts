/**
 * The daily sums say what the calls of a filter come to, where they have the filter: while the
 * blocks of columns are being made, such as after an upgrade.
 */
import { moneyToDecimal } from '../../schema/columns.ts'
import { type CallFilters, type CallSources, PREFIX_LENGTH } from './call-filters.ts'
import type { CdrMatch } from './cdr-match.ts'
import type { RecordScope } from './columns/record-tests.ts'
import { type FilterTotals, totalsOf } from './columns/record-totals.ts'
import { summarize, totalOf } from './summarize.ts'

/**
 * Without what carriers took, which the sums have by other groups. Undefined: only the records have
 * the answer. Yields between statements.
 */
export async function* totalsOfSums(
  sources: CallSources,
  { tenantId, from, before, match, filters: given }: RecordScope,
): AsyncGenerator<void, FilterTotals | undefined, undefined> {
  const filters = given === undefined ? filtersOfSums(match) : undefined
  if (filters === undefined) return undefined
  const period = { tenantId, from, before, filters }
  // The sums by tenant have every filter of one thing.
  const order = { groupBy: 'tenant', orderBy: 'count', limit: 1 } as const
  const summed = yield* summarize(sources, { ...period, ...order })
  if (!summed.isComplete || !summed.isFromTotals) return undefined
  const { figures, costs } = totalOf(summed)
  const paid = [...costs].filter(([currency]) => currency !== '')
  return totalsOf({
    ...figures,
    cost: Object.fromEntries(
      paid
        .toSorted(([one], [other]) => (one < other ? -1 : 1))
        .map(([currency, micros]) => [currency, moneyToDecimal(micros)]),
    ),
    carrier_cost: {},
    margin: {},
  })
}

/** Undefined: the sums have no such groups. */
function filtersOfSums(match: CdrMatch = {}): CallFilters | undefined {
  const { customer_id: customers, carrier, node, caller, called, ...others } = match
  if (Object.values(others).some((value) => value !== undefined)) return undefined
  if ([customers, carrier, node].some((list) => list !== undefined && list.length > 1))
    return undefined
  if (caller?.endsWith('*') === true) return undefined
  const start = called === undefined ? undefined : startOf(called)
  if (called !== undefined && start === undefined) return undefined
  const members = { caller, callee_prefix: start, node: node?.[0], carrier: carrier?.[0] }
  return {
    customerId: customers?.[0],
    members: Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined)),
  }
}

/** The first digits that are asked for; undefined: the sums have fewer, or it is a whole number. */
function startOf(called: string): string | undefined {
  const digits = /^\+?(\d+)\*$/.exec(called)?.[1]
  return digits !== undefined && digits.length <= PREFIX_LENGTH ? digits : undefined
}
