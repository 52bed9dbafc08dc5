/**
 * The report of one day out of ten in a large database, from the program itself, while calls go through
 * it: first byte, seconds per 100,000 rows, and how late the calls' event loop was meanwhile.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { request as ask, type IncomingMessage } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { TollgateProcess } from '../support/tollgate-process.ts'
import { DAY_MS, fillRecords, startOfRecords } from './load/many-records.ts'
import { caller, oneCustomer } from './load/one-customer.ts'
import { type LoadResult, placeCalls, startNode } from './load/sipp-load.ts'

export const describe =
  'one day of 10,000,000 call records beside 200 calls/s; arguments: records=10000000 rate=200 seconds=25'

export async function run(words: readonly string[] = []): Promise<void> {
  const options = new Map(words.map((word) => word.split('=') as [string, string | undefined]))
  const records = Number(options.get('records') ?? 10_000_000)
  const rate = Number(options.get('rate') ?? 200)
  const seconds = Number(options.get('seconds') ?? 25)
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-reports-'))
  try {
    const path = join(folder, 'reports.db')
    fillRecords(path, records, (text) => console.log(`  ${text}`))
    await measureAll(path, rate, seconds)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

async function measureAll(path: string, rate: number, seconds: number): Promise<void> {
  const node = await startNode()
  const environment = { DATABASE_PATH: path, LOG_LEVEL: 'warn' }
  const seed = { ...oneCustomer([node.port]), tenants: [{ slug: 'acme', name: 'Acme' }] }
  const tollgate = await TollgateProcess.start(seed, environment)
  try {
    const all = await makeKey(tollgate, [])
    const tenant = await makeKey(tollgate, ['--tenant', 'acme'])
    const turn = (who: string, work: (until: () => boolean) => Promise<string>) =>
      besideCalls(tollgate, all, { rate, seconds, who }, work)
    // The first calls are compiled while they run: they belong to no figure.
    await placeCalls(tollgate.sipPort, rate, rate * 5, caller)
    await turn('no report', async (until) => {
      while (!until()) await pause(100)
      return 'calls alone'
    })
    for (const [who, token] of [
      ['all tenants', all],
      ['a tenth of them', tenant],
    ] as const)
      for (const type of ['application/json', 'text/csv', 'application/x-ndjson'])
        await turn(`${who}, ${type}`, (until) => readReports(tollgate.apiPort, token, type, until))
  } finally {
    await tollgate.stop()
    await node.stop()
  }
}

interface Turn {
  readonly rate: number
  readonly seconds: number
  readonly who: string
}

/** Does `work` while calls go through; prints what it answers, and what became of the calls. */
async function besideCalls(
  tollgate: TollgateProcess,
  token: string,
  { rate, seconds, who }: Turn,
  work: (until: () => boolean) => Promise<string>,
): Promise<void> {
  const calls = placeCalls(tollgate.sipPort, rate, rate * seconds, caller)
  const end = performance.now() + seconds * 1_000
  const [lag, result] = await Promise.all([
    largestLag(tollgate.apiPort, token, end),
    work(() => performance.now() > end),
  ])
  console.log(`  ${who}: ${result}, loop lag p99 ${lag.toFixed(1)} ms, ${resultOf(await calls)}`)
}

const resultOf = ({ calls, succeeded, setupP99Ms }: LoadResult): string =>
  `${succeeded} of ${calls} calls, set-up p99 ${setupP99Ms.toFixed(1)} ms`

/** The program tells it of the last ten seconds: what it says in the first ten is older. */
async function largestLag(port: number, token: string, end: number): Promise<number> {
  let largest = 0
  for (const begin = performance.now(); performance.now() < end; await pause(1_000)) {
    const { lag_p99_ms: lag } = await loopLag(port, token)
    if (performance.now() - begin > 11_000) largest = Math.max(largest, lag)
  }
  return largest
}

async function loopLag(port: number, token: string): Promise<{ lag_p99_ms: number }> {
  const answer = await fetch(`http://127.0.0.1:${port}/api/v1/metrics/telemetry`, {
    headers: { authorization: `Bearer ${token}` },
  })
  const body = (await answer.json()) as { data: { event_loop: { lag_p99_ms: number } } }
  return body.data.event_loop
}

/** One report after the other; the figures are those of the slowest. */
async function readReports(
  port: number,
  token: string,
  type: string,
  until: () => boolean,
): Promise<string> {
  const reports: Report[] = []
  while (!until()) reports.push(await readReport(port, token, type))
  const firstByteMs = Math.max(...reports.map((report) => report.firstByteMs))
  const seconds = Math.max(...reports.map((report) => report.seconds))
  const { rows = 0, bytes = 0 } = reports[0] ?? {}
  return (
    `${reports.length} reports of ${rows} rows and ${(bytes / 1e6).toFixed(0)} MB, at worst ` +
    `first byte ${firstByteMs.toFixed(0)} ms, whole ${seconds.toFixed(2)} s = ` +
    `${((seconds * 100_000) / Math.max(1, rows)).toFixed(2)} s per 100,000 rows`
  )
}

interface Report {
  readonly firstByteMs: number
  readonly seconds: number
  readonly rows: number
  readonly bytes: number
}

async function readReport(port: number, token: string, type: string): Promise<Report> {
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
  let bytes = 0
  let rows = 0
  let tail: Buffer = Buffer.alloc(0)
  for await (const chunk of answer as AsyncIterable<Buffer>) {
    if (bytes === 0) firstByteMs = performance.now() - startedAt
    bytes += chunk.length
    const seam = Buffer.concat([tail, chunk.subarray(0, mark.length - 1)])
    rows += marksIn(seam) + marksIn(chunk)
    tail = chunk.subarray(1 - mark.length)
  }
  return { firstByteMs, seconds: (performance.now() - startedAt) / 1_000, rows, bytes }
}

/** Every record has its call's uuid, whatever the format. */
const mark = Buffer.from('00000000-0000-4000-8000-')

function marksIn(bytes: Buffer): number {
  let marks = 0
  for (let at = bytes.indexOf(mark); at !== -1; at = bytes.indexOf(mark, at + 1)) marks += 1
  return marks
}

function makeKey(tollgate: TollgateProcess, words: readonly string[]): Promise<string> {
  const name = ['--name', words.at(-1) ?? 'all', '--scopes', '*']
  return tollgate.createKey(...name, ...words)
}

const pause = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms))
