/**
 * Summaries of a month of calls from the program itself, while calls go through it: seconds of each grouping, alone and
 * with one filter, and how late the calls' event loop was meanwhile. First the sums of all records are made.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { TollgateProcess } from '../support/tollgate-process.ts'
import { DAY_MS, fillRecords, startOfRecords } from './load/many-records.ts'
import { CUSTOMERS, MONTH_DAYS, monthOfCalls } from './load/month-of-calls.ts'
import { caller, oneCustomer } from './load/one-customer.ts'
import { groupings } from '../../control/reports/call-filters.ts'
import { placeCalls, startNode } from './load/sipp-load.ts'

export const describe =
  'summaries of 10,000,000 call records of a month beside 200 calls/s, at most 1 s, and what is unusual in its last day, at most 2 s; arguments: records=10000000 days=30 rate=200 times=3'

const filters = ['', `customer=${CUSTOMERS / 2}`, 'tenant=acme', 'carrier=carrier+2']

export async function run(words: readonly string[] = []): Promise<void> {
  const options = new Map(words.map((word) => word.split('=') as [string, string | undefined]))
  const records = Number(options.get('records') ?? 10_000_000)
  const rate = Number(options.get('rate') ?? 200)
  const times = Number(options.get('times') ?? 3)
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-summaries-'))
  try {
    const path = join(folder, 'month.db')
    const days = Number(options.get('days') ?? MONTH_DAYS)
    fillRecords(path, records, (text) => console.log(`  ${text}`), { ...monthOfCalls, days })
    await measureAll(path, { rate, times, days })
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

interface Plan {
  readonly rate: number
  readonly times: number
  readonly days: number
}

async function measureAll(path: string, plan: Plan): Promise<void> {
  const node = await startNode()
  const environment = { DATABASE_PATH: path, LOG_LEVEL: 'warn', CDR_RETENTION_DAYS: '0' }
  const seed = { ...oneCustomer([node.port]), tenants: [{ slug: 'acme', name: 'Acme' }] }
  const tollgate = await TollgateProcess.start(seed, environment)
  try {
    const token = await tollgate.createKey('--name', 'bench', '--scopes', '*')
    await untilKept(tollgate.apiPort, token)
    await besideCalls(tollgate, token, plan)
  } finally {
    await tollgate.stop()
    await node.stop()
  }
}

/** The sums are made while the program serves. */
async function untilKept(port: number, token: string): Promise<void> {
  const begin = performance.now()
  let lag = 0
  for (;;) {
    const { body } = await summary(port, token, 'tenant', '')
    if (body.data.source === 'sums') break
    lag = Math.max(lag, await loopLag(port, token))
    await pause(2_000)
  }
  const seconds = (performance.now() - begin) / 1_000
  console.log(`  sums made in ${seconds.toFixed(0)} s, loop lag p99 at most ${lag.toFixed(1)} ms`)
}

async function besideCalls(
  tollgate: TollgateProcess,
  token: string,
  { rate, times, days }: Plan,
): Promise<void> {
  const { apiPort, sipPort } = tollgate
  // The first calls are compiled while they run.
  await placeCalls(sipPort, rate, rate * 5, caller)
  const quiet = { isOver: false }
  const work = async (): Promise<readonly string[]> => {
    const lines: string[] = []
    for (const filter of filters)
      for (const grouping of groupings)
        lines.push(await measure(apiPort, token, grouping, filter, times))
    for (const hours of [24, 7 * 24, 1])
      lines.push(await measureAnomalies(apiPort, token, { hours, days, times }))
    quiet.isOver = true
    return lines
  }
  const calls = placeCalls(sipPort, rate, rate * 60, caller)
  const [lines, lag, { succeeded, calls: placed, setupP99Ms }] = await Promise.all([
    work(),
    largestLag(apiPort, token, quiet),
    calls,
  ])
  for (const line of lines) console.log(`  ${line}`)
  console.log(
    `  loop lag p99 ${lag.toFixed(1)} ms; ${succeeded} of ${placed} calls, set-up p99 ${setupP99Ms.toFixed(1)} ms`,
  )
}

async function measure(
  port: number,
  token: string,
  grouping: string,
  filter: string,
  times: number,
): Promise<string> {
  const took: number[] = []
  let last: Summarized | undefined
  for (let time = 0; time < times; time += 1) {
    const begin = performance.now()
    last = await summary(port, token, grouping, filter)
    took.push(performance.now() - begin)
  }
  const { source, complete, totals } = last?.body.data ?? {}
  return [
    grouping.padEnd(14),
    filter.padEnd(18),
    `${Math.max(...took)
      .toFixed(0)
      .padStart(6)} ms`,
    String(source).padEnd(8),
    complete === true ? 'complete' : 'partial ',
    `${totals?.calls ?? 0} calls in ${totals?.groups ?? 0} groups, ${last?.bytes ?? 0} bytes`,
  ].join('  ')
}

/** Of the hours before the middle of the last day. */
async function measureAnomalies(
  port: number,
  token: string,
  { hours, days, times }: { readonly hours: number; readonly days: number; readonly times: number },
): Promise<string> {
  const end = startOfRecords + (days - 0.5) * DAY_MS
  const text = (ms: number) => new Date(ms).toISOString()
  const query = `start_date=${text(end - hours * 3_600_000)}&end_date=${text(end)}`
  const took: number[] = []
  let total = 0
  for (let time = 0; time < times; time += 1) {
    const begin = performance.now()
    const answer = await fetch(`http://127.0.0.1:${port}/api/v1/anomalies?${query}`, {
      headers: { authorization: `Bearer ${token}` },
    })
    const body = (await answer.json()) as { data: { total: number } }
    took.push(performance.now() - begin)
    total = body.data.total
  }
  return `anomalies of ${String(hours).padStart(3)} hours ${Math.max(...took)
    .toFixed(0)
    .padStart(6)} ms  ${total} findings`
}

interface Summarized {
  readonly bytes: number
  readonly body: {
    readonly data: {
      readonly source: string
      readonly complete: boolean
      readonly totals: { readonly calls: number; readonly groups: number }
    }
  }
}

/** From the middle of the first day on, as people ask. */
async function summary(
  port: number,
  token: string,
  grouping: string,
  filter: string,
): Promise<Summarized> {
  const from = new Date(startOfRecords + DAY_MS / 2).toISOString()
  const before = new Date(startOfRecords + MONTH_DAYS * DAY_MS).toISOString()
  const query = `start_date=${from}&end_date=${before}&group_by=${grouping}&order_by=cost&${filter}`
  const answer = await fetch(`http://127.0.0.1:${port}/api/v1/reports/calls?${query}`, {
    headers: { authorization: `Bearer ${token}` },
  })
  const text = await answer.text()
  if (answer.status !== 200) throw new Error(`the summary is a ${answer.status}: ${text}`)
  return { bytes: text.length, body: JSON.parse(text) as Summarized['body'] }
}

/** The program tells it of the last ten seconds. */
async function largestLag(port: number, token: string, quiet: { isOver: boolean }) {
  let largest = 0
  while (!quiet.isOver) {
    await pause(1_000)
    largest = Math.max(largest, await loopLag(port, token))
  }
  return largest
}

async function loopLag(port: number, token: string): Promise<number> {
  const answer = await fetch(`http://127.0.0.1:${port}/api/v1/metrics/telemetry`, {
    headers: { authorization: `Bearer ${token}` },
  })
  const body = (await answer.json()) as { data: { event_loop: { lag_p99_ms: number } } }
  return body.data.event_loop.lag_p99_ms
}

const pause = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms))
