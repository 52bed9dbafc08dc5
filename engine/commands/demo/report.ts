import { exactSum, moneyToDecimal } from '../../../schema/columns.ts'
import type { Store } from '../../../schema/storage/store.ts'
import { all } from '../../../schema/sql/query.ts'
import type { CommandContext } from '../command.ts'

const POLL_MS = 200
/**
 * Several instances store records at the same time: one with a lower number may be seen after a
 * higher one.
 */
const LATE = 100

/**
 * Prints a line for each call record as it is stored, until the returned function is called.
 *
 * @param instanceOf the instance that has calls of this number; undefined: there is one.
 */
export function reportCalls(
  store: Store,
  context: CommandContext,
  instanceOf: (caller: string) => string | undefined = () => undefined,
): () => Promise<void> {
  let last = 0
  let printed = new Set<number>()
  const poll = async (): Promise<void> => {
    for (const call of await recordsAfter(store, last - LATE)) {
      last = Math.max(last, call.id)
      if (printed.has(call.id)) continue
      printed.add(call.id)
      const instance = instanceOf(call.caller)
      context.print(instance === undefined ? lineOf(call) : `${lineOf(call)}  by ${instance}`)
    }
    printed = new Set([...printed].filter((id) => id > last - LATE))
  }
  const pollAgain = async (): Promise<void> => {
    // The next poll reads the rest.
    await poll().catch(() => undefined)
    if (!isOver) cancel = context.schedule(() => void pollAgain(), POLL_MS)
  }
  let isOver = false
  let cancel = context.schedule(() => void pollAgain(), POLL_MS)
  return async () => {
    isOver = true
    cancel()
    await poll()
  }
}

type EndedCalls = Awaited<ReturnType<typeof recordsAfter>>[number]

const recordsAfter = (store: Store, id: number) =>
  all(
    store,
    store.db
      .selectFrom('cdr')
      .leftJoin('wallet', 'wallet.customer_id', 'cdr.customer_id')
      .select([
        'cdr.id',
        'end_stamp',
        'disposition',
        'billsec',
        'cdr.currency',
        'node',
        'caller_id_number as caller',
        'destination_number as called',
        'cost_micros as cost',
        exactSum('wallet.balance_micros').as('balance'),
      ])
      .where('cdr.id', '>', id)
      .orderBy('cdr.id'),
  )

function lineOf(call: EndedCalls): string {
  const { caller, called, disposition, billsec, currency, node } = call
  const time = new Date(call.end_stamp).toISOString().slice(11, 19)
  const cost = `${moneyToDecimal(call.cost)} ${currency ?? ''}`
  const balance = call.balance === null ? '–' : moneyToDecimal(BigInt(call.balance))
  const where = node?.replace(/^sip:|;.*$/g, '') ?? 'no node'
  const outcome = `${disposition.padEnd(10)} ${billsec} s`
  return `${time}  ${caller} → ${called}  ${outcome}  ${cost}  balance ${balance}  ${where}`
}
