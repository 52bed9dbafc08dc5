/** In-process authorizations: customer by number, longest prefix among 100,000 rates, reservation. */
import { transaction } from '../../schema/sql/query.ts'
import {
  addCustomer,
  addPlan,
  endedCall,
  freshStore,
  ocsOn,
  question,
  topUp,
} from '../support/books.ts'

export const describe = 'authorize: authorizations and settled calls per CPU-second, in process'

const batch = 10_000
const rounds = 20

export async function run(): Promise<void> {
  const store = freshStore()
  const rates = Array.from({ length: 100_000 }, (_, index) => ({
    prefix: String(100_000 + index),
    first_rate_per_minute_micros: 60_000,
    rate_per_minute_micros: 60_000,
  }))
  const planId = await transaction(store, () => addPlan(store, rates))
  const customers: number[] = []
  for (let index = 0; index < 1_000; index += 1)
    customers.push(
      await addCustomer(store, { name: `+1555${1_000 + index}`, rate_plan_id: planId }),
    )
  const { ocs, time } = await ocsOn(store, undefined, 'allow')
  for (const customerId of customers) await topUp(ocs, customerId, 1_000_000_000_000)
  const spent = {
    billed: { authorizeMs: 0, settleMs: 0 },
    unbilled: { authorizeMs: 0, settleMs: 0 },
  }
  for (let round = 0; round < rounds; round += 1)
    for (const kind of ['billed', 'unbilled'] as const) {
      const questions = Array.from({ length: batch }, (_, index) =>
        question(
          `${kind}-${round}-${index}`,
          `+${100_000 + ((index * 7_919) % 100_000)}5551234`,
          `${kind === 'billed' ? '+1555' : '+1666'}${1_000 + (index % 1_000)}`,
        ),
      )
      const records = questions.map(({ callUuid, caller }) =>
        endedCall(callUuid, 42, { callerNumber: caller }),
      )
      spent[kind].authorizeMs += await cpuMs(async () => {
        for (const asked of questions) await ocs.authorize(asked)
      })
      spent[kind].settleMs += await cpuMs(async () => {
        const reports = records.map((record) => ocs.report(record))
        time.advance(20)
        await Promise.all(reports)
      })
    }
  const count = batch * rounds
  const micros = ({ authorizeMs, settleMs }: typeof spent.billed): number =>
    ((authorizeMs + settleMs) / count) * 1_000
  console.log(`  authorize          ${rate(count, spent.billed.authorizeMs)}`)
  console.log(
    `  record and debit   ${rate(count, spent.billed.settleMs)} (in memory, without fsync)`,
  )
  console.log(
    `  billed ${micros(spent.billed).toFixed(1)} µs, unbilled ${micros(spent.unbilled).toFixed(1)} µs a call: ` +
      `billing costs ${(micros(spent.billed) - micros(spent.unbilled)).toFixed(1)} µs`,
  )
  store.close()
}

const rate = (count: number, ms: number): string =>
  `${Math.round((count / ms) * 1_000).toLocaleString('en')} per second, ${((ms / count) * 1_000).toFixed(2)} µs each`

async function cpuMs(work: () => Promise<void>): Promise<number> {
  const before = process.cpuUsage()
  await work()
  const { user, system } = process.cpuUsage(before)
  return (user + system) / 1_000
}
