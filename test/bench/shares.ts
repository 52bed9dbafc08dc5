/**
 * Three instances that draw from one limit, one wallet, one cap or one window of requests on
 * PostgreSQL, and want half as much again as there is: what they use of it, how long those wait
 * that must ask, and what that costs the database.
 */
import { setTimeout as later } from 'node:timers/promises'
import { capShares } from '../../engine/charging/spending-caps/caps.ts'
import { limitShares, requestShares, walletShares } from '../../engine/shares/instance-shares.ts'
import type { ShareKind } from '../../engine/shares/instance-share.ts'
import { openStore } from '../../schema/postgres/open.ts'
import { addCustomer } from '../support/books.ts'
import { freshDatabase, hasPostgres } from '../support/postgres.ts'
import { noSecrets, sharingInstances } from '../support/sharing-nodes.ts'
import { reportRows, type Row } from './load/rows.ts'

export const describe =
  'three nodes that share a limit, a wallet, a cap and a window of requests; arguments: seconds=10'

const INSTANCES = 3
const LIMIT = 600
/** The calls a second of all instances together. */
const WANTED_PER_SECOND = 900
const HELD_MS = 1_000
const TICK_MS = 10

export async function run(words: readonly string[]): Promise<void> {
  if (!hasPostgres) return console.log('  not run: there is no PostgreSQL')
  const seconds = Number(words.find((word) => word.startsWith('seconds='))?.slice(8) ?? 10)
  const rows: Row[] = []
  for (const kind of [limitShares, walletShares(), capShares, requestShares])
    rows.push(...(await measure(kind, seconds)))
  reportRows(rows)
}

async function measure(kind: ShareKind, seconds: number): Promise<readonly Row[]> {
  const { url, drop } = await freshDatabase()
  const store = await openStore(url, { ...noSecrets, now: 0, connections: 1 })
  const payer = { name: '15550001', credit_limit_micros: LIMIT }
  const resource = kind.kind === 'wallet' ? String(await addCustomer(store, payer)) : 'bench'
  const { instances, stop } = await sharingInstances(url, kind, INSTANCES)
  const waits: number[] = []
  const sums: number[] = []
  let [given, refused] = [0, 0]
  const users = instances.map(({ shares }) => {
    const held = { count: 0 }
    const share = shares.of(resource, () => held.count)
    if (kind.kind !== 'wallet') share.follow(LIMIT)
    return { held, share }
  })
  const use = async ({ held, share }: (typeof users)[number]): Promise<void> => {
    const askedAt = performance.now()
    const hold = await share.obtainAmount(1)
    waits.push(performance.now() - askedAt)
    if (!hold.isGiven) return void (refused += 1)
    given += 1
    share.begun(1)
    held.count += 1
    hold.end()
    await later(HELD_MS)
    held.count -= 1
  }
  const cpu = process.cpuUsage()
  const uses: Promise<void>[] = []
  const begin = performance.now()
  for (let wanted = 0; performance.now() - begin < seconds * 1_000; await later(TICK_MS)) {
    const due = ((performance.now() - begin) / 1_000) * WANTED_PER_SECOND
    for (; wanted < due; wanted += 1) {
      const user = users[wanted % INSTANCES]
      if (user !== undefined) uses.push(use(user))
    }
    sums.push(users.reduce((sum, { held }) => sum + held.count, 0))
  }
  const { user, system } = process.cpuUsage(cpu)
  const statements = instances.reduce((sum, instance) => sum + instance.statements(), 0)
  await Promise.all(uses)
  await stop()
  await store.close()
  await drop()
  const most = Math.max(...sums)
  const steady = sums.slice(sums.length / 5)
  const mean = steady.reduce((sum, one) => sum + one, 0) / steady.length
  const times = waits.toSorted((one, other) => one - other)
  const at = (part: number): string => (times[Math.floor(times.length * part)] ?? 0).toFixed(2)
  const title = `${kind.kind}: `
  return [
    [`${title}most used at once, of ${LIMIT}`, String(most), most <= LIMIT],
    [`${title}used on average`, mean.toFixed(0), mean > LIMIT * 0.9],
    [`${title}given, refused`, `${given}, ${refused}`, true],
    [`${title}wait p50, p99`, `${at(0.5)}, ${at(0.99)} ms`, true],
    [`${title}statements a second of a node`, (statements / seconds / INSTANCES).toFixed(0), true],
    [
      `${title}CPU of this process, for each that asks`,
      `${((user + system) / times.length).toFixed(0)} µs`,
      true,
    ],
  ]
}
