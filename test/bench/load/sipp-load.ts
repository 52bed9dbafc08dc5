/** SIPp as a load: nodes, callers at a steady rate, and what came of their calls. */
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from '../../support/free-port.ts'
import { percentile } from './figures.ts'

export interface LoadResult {
  readonly calls: number
  readonly succeeded: number
  /** Got 503. */
  readonly refused: number
  readonly retransmissions: number
  /** Milliseconds from INVITE to 200; SIPp's clock moves in steps of 4 ms. */
  readonly setupP50Ms: number
  readonly setupP99Ms: number
}

export interface SippOptions {
  /** A file beside this one. */
  readonly scenario: string
  /** As on a command line. */
  readonly words?: string
  readonly port: number
  readonly address?: string
  readonly cwd?: string
  /** A program and its arguments, as another machine runs them. */
  readonly command?: (...words: readonly string[]) => readonly [string, ...string[]]
}

export function spawnSipp(options: SippOptions): ChildProcess {
  const { scenario, words = '', port, cwd = tmpdir(), address = '127.0.0.1' } = options
  const { command = (...all) => all as [string, ...string[]] } = options
  const place = ['-i', address, '-p', String(port), '-sf', join(import.meta.dirname, scenario)]
  // `-aa` answers UPDATE with 200: each start of the program asks whether the parties are still
  // there.
  const common = ['-aa', '-nostdin', '-buff_size', '4194304', '-watchdog_major_threshold', '60000']
  const [program, ...rest] = command(
    'sipp',
    ...words.split(' ').filter(Boolean),
    ...place,
    ...common,
  )
  return spawn(program, rest, { cwd, stdio: 'ignore' })
}

export async function killSipp(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const closed = once(child, 'close')
  child.kill('SIGKILL')
  await closed
}

/** A node that rings, answers and waits for BYE; runs until `stop`. */
export async function startNode(scenario = 'node.xml') {
  const port = await freePort()
  const child = spawnSipp({ scenario, port })
  await once(child, 'spawn')
  return { port, stop: () => killSipp(child) }
}

/** Places `calls` calls at `rate` per second and waits for their ends. */
export async function placeCalls(
  targetPort: number,
  rate: number,
  calls: number,
  caller: string,
): Promise<LoadResult> {
  const cwd = mkdtempSync(join(tmpdir(), 'load-'))
  const words =
    `127.0.0.1:${targetPort} -r ${rate} -m ${calls} -l ${rate * 10} -key caller ${caller} -s 18005551212 ` +
    `-trace_stat -fd 1 -trace_rtt -rtt_freq 200 -recv_timeout 20000 -timeout ${Math.ceil(calls / rate) + 40}s`
  try {
    await once(spawnSipp({ scenario: 'caller.xml', port: await freePort(), words, cwd }), 'close')
    return { calls, ...readCounters(cwd), ...readDelays(cwd) }
  } finally {
    rmSync(cwd, { recursive: true, force: true })
  }
}

function readCounters(folder: string) {
  const [names = '', ...rows] = readOwn(folder, /_\d+_\.csv$/)
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

function readDelays(folder: string) {
  const delays = readOwn(folder, /_rtt\.csv$/)
    .slice(1)
    .map((line) => Number(line.split(';')[1]))
    .filter(Number.isFinite)
  return { setupP50Ms: percentile(delays, 0.5), setupP99Ms: percentile(delays, 0.99) }
}

function readOwn(folder: string, pattern: RegExp): readonly string[] {
  const name = readdirSync(folder).find((candidate) => pattern.test(candidate))
  return name === undefined ? [] : readFileSync(join(folder, name), 'utf8').trim().split('\n')
}
