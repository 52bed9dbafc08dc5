/** Authorizations without a spend guard, with one that covers other calls, and with 10,000, in turns. */
import type { Store } from '../../schema/open.ts'
import {
  addCustomer,
  addPlan,
  type Books,
  endedCall,
  ocsOn,
  openStore,
  plainRate,
  question,
  topUp,
} from '../support/books.ts'
import { addGuard } from '../support/spend-guards.ts'

export const describe =
  'spend-guards: authorizations with none, one and 10,000 spend guards, in turns; arguments: turns=20'

const batch = 10_000
const customers = 1_000
const kinds = [0, 1, 10_000] as const

export async function run(given: readonly string[]): Promise<void> {
  const turns = Number(given.find((one) => one.startsWith('turns='))?.slice(6) ?? 20)
  const systems = await Promise.all(
    kinds.map(async (guards) => ({ guards, books: await guarded(guards), micros: 0 })),
  )
  // The first turn warms up.
  for (let turn = 0; turn <= turns; turn += 1)
    for (const system of systems) {
      const micros = await authorizeAll(`${system.guards}-${turn}`, system.books)
      if (turn > 0) system.micros += micros
    }
  for (const { guards, micros } of systems)
    console.log(`  ${guards} guards: ${(micros / batch / turns).toFixed(3)} µs a call`)
}

/** Returns its CPU time in microseconds. */
async function authorizeAll(name: string, { ocs, time }: Books): Promise<number> {
  const questions = Array.from({ length: batch }, (_, index) =>
    question(`${name}-${index}`, `1555${index % 100}`, `+1555${1_000 + (index % customers)}`),
  )
  const before = process.cpuUsage()
  for (const asked of questions) await ocs.authorize(asked)
  const { user, system } = process.cpuUsage(before)
  const ended = questions.map(({ callUuid }) => ocs.report(endedCall(callUuid, 0)))
  time.advance(20)
  await Promise.all(ended)
  return user + system
}

async function guarded(guards: number): Promise<Books> {
  const store = await openStore()
  const planId = await addPlan(store, [plainRate])
  for (let index = 0; index < customers; index += 1)
    await addCustomer(store, { name: `+1555${1_000 + index}`, rate_plan_id: planId })
  const books = await ocsOn(store)
  for (let id = 1; id <= customers; id += 1) await topUp(books.ocs, id, 1_000_000_000)
  await addGuards(store, guards)
  await books.ocs.reloadSpendGuards()
  return books
}

/** None of them covers what is called; of several, each customer has those of two lengths. */
async function addGuards(store: Store, count: number): Promise<void> {
  for (let index = 0; index < count; index += 1) {
    const prefix = String((index % 2 === 0 ? 4_000 : 40_000) + Math.floor(index / customers))
    await addGuard(store, `${index}`, { customer_id: 1 + (index % customers), prefix })
  }
}
