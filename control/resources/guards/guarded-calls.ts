/** Who a spend guard brakes, and what they have spent lately. */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { DAY_MS, HOUR_MS } from '../../../schema/clock.ts'
import type { Store } from '../../../schema/open.ts'
import type { Brake } from '../../../schema/contracts/spend-guards.ts'
import type { OcsPort } from '../../../schema/contracts/ocs.ts'
import { coversNumber } from '../../../schema/rules/called-prefix.ts'
import { moneyToNumber } from '../../../schema/columns.ts'
import { all } from '../../../schema/sql/query.ts'
import { readApart } from '../../../schema/sql/read-apart.ts'
import { bodyOf } from '../../nodes/node-client.ts'
import type { AskedNodes } from '../../nodes/other-nodes.ts'
import { guardedAnswer } from '../../nodes/questions.ts'
import { type Window, windows } from '../../../schema/record-windows.ts'

export interface GuardedWorld {
  readonly store: Store
  readonly ocs: Pick<OcsPort, 'callsUnder' | 'exitCodes'>
  /** The other nodes of the installation; undefined: there is none to ask. */
  readonly elsewhere?: AskedNodes | undefined
  /** Milliseconds UTC. */
  readonly now: () => number
}

/** Records of one statement: SIP shares the thread. */
const WINDOW = 1_000
/** Of a period with more than 20,000 records, the newest are looked at. */
const MAX_WINDOWS = 20

/** Live calls of all nodes, and what ended calls to the prefix have cost. */
export async function guardedCalls(
  brake: Brake,
  world: GuardedWorld,
): Promise<Readonly<Record<string, number>>> {
  const at = world.now()
  const { scopeId, scope, extension } = brake
  const reader = scope === 'tenant' ? scopeId : (extension?.tenantId ?? null)
  const costOf = (ms: number) =>
    readApart(world.store, reader, () => costSince(brake, { from: at - ms, before: at + 1 }, world))
  const [lastHour, lastDay] = [await costOf(HOUR_MS), await costOf(DAY_MS)]
  return {
    live_calls: await liveCalls(brake, world),
    calls_last_hour: lastHour.calls,
    ...spending('spent_last_hour', lastHour.costMicros),
    calls_last_day: lastDay.calls,
    ...spending('spent_last_day', lastDay.costMicros),
  }
}

async function liveCalls(brake: Brake, { ocs, elsewhere }: GuardedWorld): Promise<number> {
  const own = ocs.callsUnder(brake)
  if (elsewhere === undefined) return own
  const answers = await elsewhere.question({ kind: 'guarded', ...brake })
  return answers.reduce((sum, answer) => sum + (bodyOf(answer, guardedAnswer)?.calls ?? 0), own)
}

/** In one currency: a plain number; in several, one of each. */
function spending(name: string, costs: ReadonlyMap<string, number>): Record<string, number> {
  if (costs.size < 2) return { [name]: moneyToNumber([...costs.values()][0] ?? 0) }
  return Object.fromEntries(
    [...costs].map(([currency, micros]) => [`${name}_${currency}`, moneyToNumber(micros)]),
  )
}

/** Of answered calls. They are summed by number: the spellings of a prefix are read here. */
async function costSince(
  brake: Brake,
  { from, before }: Window,
  { store, ocs }: Pick<GuardedWorld, 'store' | 'ocs'>,
) {
  const scope = {
    tenantId: brake.scope === 'tenant' ? brake.scopeId : (brake.extension?.tenantId ?? null),
    customerId: brake.scope === 'customer' ? brake.scopeId : undefined,
  }
  const costMicros = new Map<string, number>()
  let calls = 0
  let left = MAX_WINDOWS
  for await (const window of windows(store, scope, { from, before }, WINDOW)) {
    if (left === 0) break
    left -= 1
    for (const row of await costsIn(brake, window, store)) {
      if (!coversNumber(brake.prefix, row.destination_number, ocs.exitCodes)) continue
      calls += row.calls
      if (row.currency !== null)
        costMicros.set(row.currency, (costMicros.get(row.currency) ?? 0) + row.cost)
    }
    await nextTurn()
  }
  return { calls, costMicros }
}

function costsIn(brake: Brake, { from, before }: Window, store: Store) {
  let query = store.db
    .selectFrom('cdr')
    .select(({ fn }) => [
      'destination_number',
      'currency',
      fn.countAll<number>().as('calls'),
      fn.sum<number>('cost_micros').as('cost'),
    ])
    .where('start_stamp', '>=', from)
    .where('start_stamp', '<', before)
    .where('billsec', '>', 0)
    .groupBy(['destination_number', 'currency'])
  if (brake.scope === 'customer') query = query.where('customer_id', '=', brake.scopeId)
  if (brake.scope === 'tenant') query = query.where('tenant_id', '=', brake.scopeId)
  if (brake.extension !== null)
    query = query
      .where('tenant_id', '=', brake.extension.tenantId)
      .where('caller_id_number', '=', brake.extension.number)
  return all(store, query)
}
