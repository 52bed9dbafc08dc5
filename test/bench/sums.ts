/**
 * What it costs to add call records to the kept sums: microseconds of CPU for each record, of many customers and of one.
 * The records are read from a file as the thread of reports does, without anything beside it.
 */
import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openSums, type CallSources } from '../../control/reports/call-filters.ts'
import { rollUp } from '../../control/reports/roll-up.ts'
import { openDatabase } from '../../schema/open.ts'
import { DAY_MS, fillRecords, type Filling, startOfRecords } from './load/many-records.ts'
import { monthOfCalls } from './load/month-of-calls.ts'

export const describe =
  'CPU of adding call records to the kept sums, at most 20 us for each; arguments: records=500000 rate=500 (calls/s of the records)'

export async function run(words: readonly string[] = []): Promise<void> {
  const options = new Map(words.map((word) => word.split('=') as [string, string | undefined]))
  const records = Number(options.get('records') ?? 500_000)
  const rate = Number(options.get('rate') ?? 500)
  const days = (records * 1_000) / rate / DAY_MS
  const fillings: readonly (readonly [string, Filling])[] = [
    ['300 customers, 9,000 callers', { ...monthOfCalls, days }],
    ['one customer, one caller', { ...monthOfCalls, days, insert: ofOne(monthOfCalls.insert) }],
  ]
  for (const [name, filling] of fillings) {
    const folder = mkdtempSync(join(tmpdir(), 'tollgate-sums-'))
    try {
      const path = join(folder, 'calls.db')
      fillRecords(path, records, () => undefined, filling)
      console.log(`  ${name.padEnd(30)} ${await measure(path)}`)
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
  }
}

const ofOne = (insert: string): string =>
  insert
    .replace(/1 \+ n % \d+ AS customer/, '1 AS customer')
    .replace('(n / 11) % 30 AS caller', '1 AS caller')
    .replace('(n / 7) % 20 AS country', '1 AS country')

async function measure(path: string): Promise<string> {
  const store = openDatabase(path)
  const place: CallSources = { store, sums: openSums(path), steadyNow: () => performance.now() }
  const before = process.cpuUsage()
  const begin = performance.now()
  let added = 0
  let longest = 0
  for (;;) {
    const work = rollUp(place, { now: startOfRecords, retainedFrom: undefined })
    let turn = performance.now()
    let step = await work.next()
    for (; step.done !== true; step = await work.next()) {
      longest = Math.max(longest, performance.now() - turn)
      turn = performance.now()
    }
    added += step.value.added
    if (step.value.added === 0) break
  }
  const { user, system } = process.cpuUsage(before)
  const seconds = (performance.now() - begin) / 1_000
  store.close()
  return [
    `${((user + system) / added).toFixed(1)} us of CPU per record`,
    `${added} in ${seconds.toFixed(1)} s`,
    `longest turn ${longest.toFixed(0)} ms`,
    `${(statSync(`${path}.sums`).size / 1e6).toFixed(0)} MB of sums`,
  ].join(', ')
}
