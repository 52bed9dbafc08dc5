/** Runs SIPp, the outside judge: scenarios of `sipp-scenarios/` as callers and as PBX nodes. */
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { freePort } from './free-port.ts'
import { eventually } from './waiting.ts'

const scenarioFolder = resolve('sipp-scenarios')

export interface SippResult {
  readonly exitCode: number | null
  /** The complaints of SIPp: unexpected messages and failed checks. */
  readonly errors: string
}

/** A result with every message that was sent or received, in order. */
export interface TracedResult extends SippResult {
  readonly messages: readonly TracedMessage[]
}

interface TracedMessage {
  readonly direction: 'sent' | 'received'
  readonly text: string
}

/**
 * The time of all calls of a caller. A test that goes as it should takes a part of it, also where
 * the machine stands still.
 */
const PATIENCE_SECONDS = 90

interface SippOptions {
  readonly calls?: number
  /** Calls per second. */
  readonly rate?: number
  readonly transport?: 'udp' | 'tcp'
  /** Values of `[name]` in the scenario. */
  readonly keys?: Readonly<Record<string, string>>
  readonly service?: string
  readonly timeoutSeconds?: number
  readonly extra?: readonly string[]
  /** The port of the caller. Default: a free one. */
  readonly port?: number
}

/** Calls `target` with a scenario and waits until all calls have ended; exit code 0: as it says. */
export async function callWith(
  scenario: string,
  targetPort: number,
  options: SippOptions = {},
): Promise<SippResult> {
  const { exitCode, errors } = await traceCall(scenario, targetPort, options, [])
  return { exitCode, errors }
}

/** As `callWith`, and keeps the messages. */
export async function traceCall(
  scenario: string,
  targetPort: number,
  options: SippOptions = {},
  words: readonly string[] = ['-trace_msg'],
): Promise<TracedResult> {
  const limit = ['-timeout', `${options.timeoutSeconds ?? PATIENCE_SECONDS}s`, '-timeout_error']
  const all = [...callerWords(targetPort, options), ...limit, ...words]
  const { child, folder } = await spawnSipp(scenario, options, all, options.port)
  const [exitCode] = await once(child, 'close')
  const result = {
    exitCode: typeof exitCode === 'number' ? exitCode : null,
    errors: readErrors(folder),
    messages: readMessages(readLogs(folder, '_messages.log')),
  }
  rmSync(folder, { recursive: true, force: true })
  return result
}

/**
 * Places a call that cannot go as the scenario says; gives up when SIPp has complained of what it
 * got instead.
 */
export async function failWith(
  complaint: RegExp,
  scenario: string,
  targetPort: number,
  options: SippOptions = {},
): Promise<void> {
  const caller = await SippNode.start(scenario, options, callerWords(targetPort, options))
  try {
    await eventually(() => {
      const errors = caller.complaints()
      if (!complaint.test(errors))
        throw new Error(`SIPp does not say ${complaint.source}: ${errors}`)
    })
  } finally {
    await caller.stop()
  }
}

const callerWords = (targetPort: number, { calls = 1, rate = 10 }: SippOptions): string[] => [
  `127.0.0.1:${targetPort}`,
  '-m',
  String(calls),
  '-r',
  String(rate),
]

/** Callers that run until they are stopped. */
export async function startCallers(
  scenario: string,
  targetPort: number,
  options: SippOptions = {},
): Promise<{ stop(): Promise<string> }> {
  return SippNode.start(scenario, options, callerWords(targetPort, options))
}

/** A PBX node that runs until it is stopped. */
export class SippNode {
  readonly port: number
  readonly #child: ChildProcess
  readonly #folder: string
  #stopped: Promise<string> | undefined

  private constructor(child: ChildProcess, folder: string, port: number) {
    this.#child = child
    this.#folder = folder
    this.port = port
  }

  static async start(
    scenario: string,
    options: SippOptions = {},
    words: readonly string[] = [],
  ): Promise<SippNode> {
    const port = options.port ?? (await freePort())
    const { child, folder } = await spawnSipp(scenario, options, words, port)
    const node = new SippNode(child, folder, port)
    // Before, a request would be refused, or nothing would listen for its repetition.
    await eventually(() => {
      if (child.exitCode !== null) return
      if (!isBound(port, options.transport ?? 'udp')) throw new Error('SIPp does not listen')
    })
    return node
  }

  get pid(): number {
    return this.#child.pid ?? 0
  }

  /** Freezes the process: its port stays open, and nothing answers. */
  freeze(): void {
    this.#child.kill('SIGSTOP')
  }

  thaw(): void {
    this.#child.kill('SIGCONT')
  }

  /** Its complaints so far. */
  complaints(): string {
    return readErrors(this.#folder)
  }

  /** Ends it, if it has not ended yet; answers with what it complained of. */
  stop(): Promise<string> {
    this.#stopped ??= this.#end()
    return this.#stopped
  }

  async #end(): Promise<string> {
    const isRunning = this.#child.exitCode === null && this.#child.signalCode === null
    const closed = isRunning ? once(this.#child, 'close') : undefined
    this.#child.kill('SIGKILL')
    await closed
    const errors = readErrors(this.#folder)
    rmSync(this.#folder, { recursive: true, force: true })
    return errors
  }
}

async function spawnSipp(
  scenario: string,
  options: SippOptions,
  words: readonly string[],
  port?: number,
): Promise<{ child: ChildProcess; folder: string }> {
  const folder = mkdtempSync(join(tmpdir(), 'sipp-'))
  const keys = Object.entries(options.keys ?? {}).flatMap(([name, value]) => ['-key', name, value])
  const child = spawn(
    'sipp',
    [
      ...words,
      '-sf',
      join(scenarioFolder, scenario),
      '-nostdin',
      '-i',
      '127.0.0.1',
      '-p',
      String(port ?? (await freePort())),
      '-mp',
      String(await freePort()),
      '-t',
      options.transport === 'tcp' ? 't1' : 'u1',
      '-s',
      options.service ?? '18005551212',
      '-trace_err',
      '-nd',
      // A machine that is busy for half a second is no error.
      '-watchdog_minor_threshold',
      '60000',
      '-watchdog_major_threshold',
      '60000',
      ...keys,
      ...(options.extra ?? []),
    ],
    { cwd: folder, stdio: 'ignore' },
  )
  await once(child, 'spawn')
  return { child, folder }
}

/** Whether a socket is bound to this port of 127.0.0.1. */
function isBound(port: number, transport: 'udp' | 'tcp'): boolean {
  const place = `0100007F:${port.toString(16).toUpperCase().padStart(4, '0')} `
  return readFileSync(`/proc/net/${transport}`, 'utf8')
    .split('\n')
    .some((line) => line.trim().split(' ').slice(1).join(' ').startsWith(place))
}

/**
 * SIPp remarks on an answer or an ACK that arrives between two messages which it sends in a row,
 * and on what comes again when a call is over: on a busy machine either side repeats itself before
 * the other was heard. Each repeated answer to an INVITE has an ACK of its own (RFC 3261
 * §13.2.2.4), which may be the last one that arrives.
 */
const harmless = [
  /while sending \(index \d+\), received '(?:SIP\/2\.0 \d\d\d|ACK) /,
  /while expecting '\w+' \(index \d+\), received 'ACK /,
  /Dead call \S+ \(successful\), received '(?:OPTIONS|BYE|ACK) /,
  /Dead call \S+ \(successful\), received 'SIP\/2\.0 200 [^']*\nCSeq: \d+ (?:BYE|REGISTER)\r?\n/,
  /Dead call \S+ \(successful\), received 'SIP\/2\.0 [3-6]\d\d [^']*\nCSeq: \d+ INVITE\r?\n/,
]

function readErrors(folder: string): string {
  const [title = '', ...entries] = readLogs(folder, '_errors.log').split(
    /(?=\d{4}-\d\d-\d\d\t\d\d:\d\d:)/,
  )
  const kept = entries.filter((entry) => !harmless.some((remark) => remark.test(entry)))
  return kept.length === 0 ? '' : [title, ...kept].join('')
}

function readLogs(folder: string, ending: string): string {
  return readdirSync(folder)
    .filter((name) => name.endsWith(ending))
    .map((name) => readFileSync(join(folder, name), 'utf8'))
    .join('')
}

/** SIPp writes each message under a line `UDP message sent …` or `UDP message received …`. */
function readMessages(log: string): TracedMessage[] {
  return log
    .split(/^-{10,} .*$/m)
    .slice(1)
    .map((entry) => {
      const end = entry.indexOf('\n\n')
      const isReceived = entry.slice(0, end).includes('message received')
      return { direction: isReceived ? 'received' : 'sent', text: entry.slice(end + 2) }
    })
}
