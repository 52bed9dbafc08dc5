import { moneyToDecimal } from '../../../schema/columns.ts'
import type { LocalStore } from '../../../schema/open.ts'
import type { World } from '../command.ts'

const lookMs = 200

interface Ended {
  readonly id: number
  readonly end_stamp: number
  readonly caller: string
  readonly called: string
  readonly disposition: string
  readonly billsec: number
  readonly cost: number
  readonly currency: string | null
  readonly node: string | null
  readonly balance: string | null
}

/** Prints a line for each call record as it is stored, until the returned function is called. */
export function reportCalls(store: LocalStore, world: World): () => void {
  const newer = store.sqlite.prepare<[number], Ended>(
    `SELECT cdr.id, end_stamp, caller_id_number AS caller, destination_number AS called, disposition,
            billsec, cost_micros AS cost, cdr.currency, node, CAST(wallet.balance_micros AS TEXT) AS balance
       FROM cdr LEFT JOIN wallet ON wallet.customer_id = cdr.customer_id
      WHERE cdr.id > ? ORDER BY cdr.id`,
  )
  let last = 0
  const look = () => {
    for (const call of newer.all(last)) {
      world.print(lineOf(call))
      last = call.id
    }
  }
  const lookAgain = () => {
    look()
    cancel = world.schedule(lookAgain, lookMs)
  }
  let cancel = world.schedule(lookAgain, lookMs)
  return () => {
    cancel()
    look()
  }
}

function lineOf(call: Ended): string {
  const { caller, called, disposition, billsec, currency, node } = call
  const time = new Date(call.end_stamp).toISOString().slice(11, 19)
  const cost = `${moneyToDecimal(call.cost)} ${currency ?? ''}`
  const balance = call.balance === null ? '–' : moneyToDecimal(BigInt(call.balance))
  const where = node?.replace(/^sip:|;.*$/g, '') ?? 'no node'
  return `${time}  ${caller} → ${called}  ${disposition.padEnd(10)} ${billsec} s  ${cost}  balance ${balance}  ${where}`
}
