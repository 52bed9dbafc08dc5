/**
 * The report of one day out of ten in a large database, from the program itself, while calls go
 * through it: first byte, seconds per 100,000 rows, and how late the calls' event loop was
 * meanwhile.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { request as ask, type IncomingMessage } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { TollgateProcess } from '../support/tollgate-process.ts'
import { LoopWatch } from './load/loop-lag.ts'
import { DAY_MS, fillRecords, startOfRecords } from './load/many-records.ts'
import { caller, oneCustomer } from './load/one-customer.ts'
import { numbersOf } from './load/options.ts'
import { placeCalls, startNode } from './load/sipp-load.ts'

export const describe =
  'one day of 10,000,000 call records beside 200 calls/s; arguments: records=10000000 rate=200 seconds=25'

export async function run(words: readonly string[] = []): Promise<void> {
  const options = numbersOf(words, { records: 10_000_000, rate: 200, seconds: 25 })
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-reports-'))
  const watch = new LoopWatch()
  const node = await startNode()
  try {
    const path = join(folder, 'reports.db')
    fillRecords(path, options.records, (text) => console.log(`  ${text}`))
    const environment = { DATABASE_PATH: path, LOG_LEVEL: 'warn', ...watch.environment }
    const tollgate = await TollgateProcess.start(oneCustomer([node.port]), environment)
    try {
      await measureAll(tollgate, watch, options)
    } finally {
      await tollgate.stop()
    }
  } finally {
    watch.close()
    await node.stop()
    rmSync(folder, { recursive: true, force: true })
  }
}

async function measureAll(
  tollgate: TollgateProcess,
  watch: LoopWatch,
  { rate, seconds }: { readonly rate: number; readonly seconds: number },
): Promise<void> {
  const token = await tollgate.createKey('--name', 'bench', '--scopes', '*')
  // The first calls are compiled while they run: they belong to no figure.
  await placeCalls(tollgate.sipPort, rate, rate * 5, caller)
  for (const type of ['no report', 'application/json', 'text/csv', 'application/x-ndjson']) {
    const end = performance.now() + seconds * 1_000
    await watch.lagOf(tollgate)
    const calls = placeCalls(tollgate.sipPort, rate, rate * seconds, caller)
    const reports: Report[] = []
    if (type === 'no report') await calls
    else while (performance.now() < end) reports.push(await readReport(tollgate, token, type))
    const { p99Ms } = await watch.lagOf(tollgate)
    const { succeeded, calls: placed, setupP99Ms } = await calls
    console.log(
      `  ${type}: ${textOf(reports)}loop lag p99 ${p99Ms.toFixed(1)} ms, ` +
        `${succeeded} of ${placed} calls, set-up p99 ${setupP99Ms.toFixed(1)} ms`,
    )
    await pause(1_000)
  }
}

interface Report {
  readonly firstByteMs: number
  readonly seconds: number
  readonly rows: number
}

/** The figures are those of the slowest. */
function textOf(reports: readonly Report[]): string {
  const [first] = reports
  if (first === undefined) return ''
  const firstByteMs = Math.max(...reports.map((report) => report.firstByteMs))
  const seconds = Math.max(...reports.map((report) => report.seconds))
  return (
    `${reports.length} reports of ${first.rows} rows, at worst first byte ${firstByteMs.toFixed(0)} ms, ` +
    `${((seconds * 100_000) / Math.max(1, first.rows)).toFixed(2)} s per 100,000 rows, `
  )
}

async function readReport(
  { apiPort: port }: TollgateProcess,
  token: string,
  type: string,
): Promise<Report> {
  const from = new Date(startOfRecords + 4 * DAY_MS).toISOString()
  const before = new Date(startOfRecords + 5 * DAY_MS).toISOString()
  const path = `/api/v1/reports/cdrs?start_date=${from}&end_date=${before}`
  const headers = { authorization: `Bearer ${token}`, accept: type }
  const startedAt = performance.now()
  const answer = await new Promise<IncomingMessage>((resolve, reject) => {
    ask({ host: '127.0.0.1', port, path, headers }, resolve).on('error', reject).end()
  })
  if (answer.statusCode !== 200) throw new Error(`the report is a ${answer.statusCode}`)
  let firstByteMs = 0
  let rows = 0
  let tail = ''
  for await (const chunk of answer as AsyncIterable<Buffer>) {
    if (firstByteMs === 0) firstByteMs = performance.now() - startedAt
    const text = tail + chunk.toString('latin1')
    // Every record has its call's uuid, whatever the format.
    rows += text.split('00000000-0000-4000-8000-').length - 1
    tail = text.slice(-23)
  }
  return { firstByteMs, seconds: (performance.now() - startedAt) / 1_000, rows }
}
