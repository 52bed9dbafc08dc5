/** Settled calls on SQLite and on PostgreSQL, in turn; and what an authorization waits for while the server is slow. */
import { Ocs } from '../../engine/charging/ocs.ts'
import {
  addCustomer,
  addPlan,
  endedCall,
  freshStore,
  plainRate,
  question,
} from '../support/books.ts'
import { journalOf } from '../support/journals.ts'
import { hasPostgres } from '../support/postgres.ts'
import { postgresProxy } from '../support/postgres-proxy.ts'
import { SharedWallets } from '../support/shared-wallets.ts'

export const describe =
  'settle: CPU µs of a settled call on SQLite and PostgreSQL; authorize while PostgreSQL answers in 20 ms'

const customers = 200
const batch = 2_000
const rounds = 10
const slowMs = 20
const pacedCalls = 3_000
const manyMicros = 1_000_000_000_000

const names = Array.from({ length: customers }, (_, index) => `+1555${1_000 + index}`)

/** Calls that were refused, and asked again. */
const asks = { again: 0 }

const schedule = (work: () => void, delayMs: number): (() => void) => {
  const timer = setTimeout(work, delayMs)
  return () => clearTimeout(timer)
}

export async function run(): Promise<void> {
  if (!hasPostgres) return console.log('  PostgreSQL is not installed')
  const shared = await SharedWallets.open(Math.random)
  const planId = await shared.addPlan([plainRate])
  for (const name of names) await shared.addCustomer({ name, rate_plan_id: planId })
  const proxy = await postgresProxy(shared.url)
  const { ocs: onServer } = await shared.node('bench', { url: proxy.url })
  const store = freshStore()
  const localPlan = await addPlan(store, [plainRate])
  for (const name of names) await addCustomer(store, { name, rate_plan_id: localPlan })
  const onFile = await Ocs.open({
    store,
    journal: journalOf(store, schedule),
    schedule,
    unknownCaller: 'deny',
    now: Date.now,
    wallNow: Date.now,
    log: () => undefined,
  })
  const arms = { SQLite: onFile, PostgreSQL: onServer } as const
  for (const ocs of Object.values(arms))
    for (let customerId = 1; customerId <= customers; customerId += 1)
      await ocs.move({
        customerId,
        kind: 'topup',
        amountMicros: manyMicros,
        ref: `start-${customerId}`,
        actor: 'bench',
        note: null,
      })
  const spent = new Map<string, number[]>()
  for (let round = 0; round <= rounds; round += 1)
    for (const [arm, ocs] of Object.entries(arms)) {
      if (round === 1) asks.again = 0
      const micros = await settled(ocs, `${arm}-${round}`)
      // The first one warms up.
      if (round > 0) spent.set(arm, [...(spent.get(arm) ?? []), micros])
    }
  for (const [arm, micros] of spent)
    console.log(
      `  ${arm}: ${median(micros).toFixed(1)} µs CPU a call here (authorize, record, debit)`,
    )
  console.log(`  ${asks.again} of ${2 * rounds * batch} calls were refused and asked again`)
  for (const delayMs of [0, slowMs]) {
    proxy.delayMs = delayMs
    const waits = await pacedAuthorizations(onServer, `slow-${delayMs}`)
    const told = [0.5, 0.99, 1].map((part) => waits[Math.ceil(part * waits.length) - 1]?.toFixed(2))
    console.log(
      `  authorize, server answers after ${delayMs} ms: p50, p99, longest ${told.join(', ')} ms`,
    )
  }
  proxy.delayMs = 0
  store.close()
  await shared.close()
  proxy.close()
}

const asked = (uuid: string, index: number) =>
  question(uuid, '15551234', names[index % customers] ?? '')

/** CPU µs of this process for one call. */
async function settled(ocs: Ocs, name: string): Promise<number> {
  const before = process.cpuUsage()
  const reports = Array.from({ length: batch }, async (_, index) => {
    const request = asked(`${name}-${index}`, index)
    // The first calls of a customer wait for its first lease; a busy machine may take longer than they may wait.
    while ((await ocs.authorize(request)).kind !== 'granted') asks.again += 1
    const more = { callerNumber: request.caller, calledNumber: '15551234' }
    await ocs.report(endedCall(request.callUuid, 42, more))
  })
  await Promise.all(reports)
  const { user, system } = process.cpuUsage(before)
  return (user + system) / batch
}

/** 500 calls a second. What each waits, in milliseconds, ascending. */
async function pacedAuthorizations(ocs: Ocs, name: string): Promise<readonly number[]> {
  const waits: number[] = []
  const running: Promise<void>[] = []
  const start = performance.now()
  for (let index = 0; index < pacedCalls; index += 1) {
    const dueMs = start + index * 2 - performance.now()
    if (dueMs > 0) await new Promise((resolve) => void setTimeout(resolve, dueMs))
    const before = performance.now()
    running.push(
      ocs
        .authorize(asked(`${name}-${index}`, index))
        .then(() => void waits.push(performance.now() - before)),
    )
    if (index >= 1_000)
      running.push(
        ocs.report(
          endedCall(`${name}-${index - 1_000}`, 42, {
            callerNumber: names[index % customers] ?? '',
            calledNumber: '15551234',
          }),
        ),
      )
  }
  await Promise.all(running)
  return waits.toSorted((one, other) => one - other)
}

const median = (values: readonly number[]): number =>
  values.toSorted((one, other) => one - other)[Math.floor(values.length / 2)] ?? 0
