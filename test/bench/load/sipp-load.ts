/** SIPp as a load: callers at a steady rate, and what came of their calls. */
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from '../../support/free-port.ts'

const folderOfScenarios = import.meta.dirname

export interface LoadResult {
  readonly calls: number
  readonly succeeded: number
  /** Got 503. */
  readonly refused: number
  readonly retransmissions: number
  /** Milliseconds from INVITE to 200. SIPp's clock moves in steps of 4 ms; the mean is finer. */
  readonly setupMeanMs: number
  readonly setupP50Ms: number
  readonly setupP99Ms: number
}

/** A node that rings, answers and waits for BYE; runs until `stop`. */
export async function startNode(
  scenario = 'node.xml',
): Promise<{ port: number; stop: () => Promise<void> }> {
  const port = await freePort()
  const child = spawnSipp(['-sf', join(folderOfScenarios, scenario), '-p', String(port)], tmpdir())
  await once(child, 'spawn')
  const stop = async (): Promise<void> => {
    const closed = once(child, 'close')
    child.kill('SIGKILL')
    await closed
  }
  return { port, stop }
}

/** Places `calls` calls at `rate` per second and waits for their ends. */
export async function placeCalls(
  targetPort: number,
  rate: number,
  calls: number,
  caller: string,
): Promise<LoadResult> {
  const folder = mkdtempSync(join(tmpdir(), 'load-'))
  const port = await freePort()
  const child = spawnSipp(
    [
      `127.0.0.1:${targetPort}`,
      '-sf',
      join(folderOfScenarios, 'caller.xml'),
      '-p',
      String(port),
      '-r',
      String(rate),
      '-m',
      String(calls),
      '-l',
      String(rate * 10),
      '-key',
      'caller',
      caller,
      '-s',
      '18005551212',
      '-trace_stat',
      '-fd',
      '1',
      '-trace_rtt',
      '-rtt_freq',
      '200',
      '-timeout',
      `${Math.ceil(calls / rate) + 40}s`,
      '-recv_timeout',
      '20000',
    ],
    folder,
  )
  await once(child, 'close')
  try {
    return { calls, ...readCounters(folder), ...readDelays(folder) }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

export interface HeldCalls {
  /** How many got 503 instead, up to a second ago. */
  readonly refused: () => number
  readonly stop: () => Promise<void>
}

/** Begins `calls` calls at `rate` per second that go on until `stop`. */
export async function holdCalls(
  targetPort: number,
  rate: number,
  calls: number,
  caller: string,
): Promise<HeldCalls> {
  const folder = mkdtempSync(join(tmpdir(), 'load-'))
  const scenario = readFileSync(join(folderOfScenarios, 'caller.xml'), 'utf8')
  const held = join(folder, 'held.xml')
  const [begin = '', ...end] = scenario.split(/(?=<send retrans="500"><!\[CDATA\[\s+BYE)/)
  writeFileSync(held, `${begin}<pause milliseconds="86400000"/>\n${end.join('')}`)
  const child = spawnSipp(
    [
      `127.0.0.1:${targetPort}`,
      '-sf',
      held,
      '-p',
      String(await freePort()),
      '-r',
      String(Math.ceil(rate)),
      '-m',
      String(calls),
      '-l',
      String(calls),
      '-key',
      'caller',
      caller,
      '-s',
      '18005551212',
      '-trace_stat',
      '-fd',
      '1',
    ],
    folder,
  )
  await once(child, 'spawn')
  const stop = async (): Promise<void> => {
    const closed = once(child, 'close')
    child.kill('SIGKILL')
    await closed
    rmSync(folder, { recursive: true, force: true })
  }
  return { refused: () => readCounters(folder).refused, stop }
}

const spawnSipp = (words: readonly string[], cwd: string): ChildProcess =>
  spawn('sipp', [...words, '-i', '127.0.0.1', '-nostdin', '-buff_size', '4194304'], {
    cwd,
    stdio: 'ignore',
  })

function readCounters(
  folder: string,
): Pick<LoadResult, 'succeeded' | 'refused' | 'retransmissions'> {
  const [names = '', ...rows] = readOwn(folder, /_\d+_\.csv$/)
    .trim()
    .split('\n')
  const columns = names.split(';')
  const last = rows.at(-1)?.split(';') ?? []
  const value = (name: string): number => Number(last[columns.indexOf(name)] ?? 0)
  // A refused call has gone by its scenario, which SIPp calls success.
  const refused = value('GenericCounter1(C)')
  return {
    succeeded: value('SuccessfulCall(C)') - refused,
    refused,
    retransmissions: value('Retransmissions(C)'),
  }
}

function readDelays(folder: string): Pick<LoadResult, 'setupMeanMs' | 'setupP50Ms' | 'setupP99Ms'> {
  const delays = readOwn(folder, /_rtt\.csv$/)
    .trim()
    .split('\n')
    .slice(1)
    .map((line) => Number(line.split(';')[1]))
    .filter(Number.isFinite)
    .toSorted((a, b) => a - b)
  return {
    setupMeanMs: delays.reduce((sum, delay) => sum + delay, 0) / Math.max(1, delays.length),
    setupP50Ms: percentile(delays, 0.5),
    setupP99Ms: percentile(delays, 0.99),
  }
}

/** `sorted` in rising order; 0 when it is empty. */
const percentile = (sorted: readonly number[], part: number): number =>
  sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? 0

function readOwn(folder: string, pattern: RegExp): string {
  const name = readdirSync(folder).find((candidate) => pattern.test(candidate))
  return name === undefined ? '' : readFileSync(join(folder, name), 'utf8')
}
