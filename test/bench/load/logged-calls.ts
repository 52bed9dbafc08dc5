/**
 * SIPp callers whose scenario logs what happens, as `<what> <Call-ID> <ms>`: what each call has
 * seen.
 */
import { type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from '../../support/free-port.ts'
import { killSipp, spawnSipp, type SippOptions } from './sipp-load.ts'

/** The events of a call → their times, in ms of its SIPp's clock. */
export type Notes = ReadonlyMap<string, number>

interface CallersOptions extends Pick<SippOptions, 'address' | 'command'> {
  readonly caller: string
  readonly called: string
  /** Calls per second. */
  readonly rate: number
  /** 0: without end. */
  readonly calls: number
  /** Call-IDs are this with a number from 1 behind it. */
  readonly name: string
}

export class LoggedCalls {
  readonly port: number
  /** Added to a time of its notes it gives one of `performance.now()`. */
  readonly clockOffsetMs = performance.now()
  readonly #child: ChildProcess
  readonly #folder: string
  readonly #closed: Promise<unknown>

  private constructor(child: ChildProcess, folder: string, port: number) {
    this.#child = child
    this.#folder = folder
    this.port = port
    this.#closed = once(child, 'close')
  }

  /** `target`: host and port, or a port of this host. */
  static async start(scenario: string, target: string | number, options: CallersOptions) {
    const { caller, called, rate, calls, name, ...place } = options
    const cwd = mkdtempSync(join(tmpdir(), 'load-'))
    const port = await freePort()
    const words =
      `${typeof target === 'number' ? `127.0.0.1:${target}` : target} -r ${rate} -l ${calls || rate * 60} ` +
      `${calls === 0 ? '' : `-m ${calls} `}-cid_str ${name}%u -key caller ${caller} -s ${called} ` +
      '-trace_logs -log_file calls.log'
    const child = spawnSipp({ scenario, port, words, cwd, ...place })
    await once(child, 'spawn')
    return new LoggedCalls(child, cwd, port)
  }

  /** The notes of each call, by Call-ID. */
  notes(): ReadonlyMap<string, Notes> {
    const calls = new Map<string, Map<string, number>>()
    for (const line of this.#log().split('\n')) {
      const [what = '', callId = '', at] = line.split(' ')
      if (at === undefined) continue
      const notes = calls.get(callId) ?? new Map<string, number>()
      calls.set(callId, notes.set(what, notes.get(what) ?? Number(at)))
    }
    return calls
  }

  /** Places no further call; resolves when those that go on are over, or after `withinMs`. */
  async finish(withinMs: number): Promise<void> {
    this.#child.kill('SIGUSR1')
    await this.over(withinMs)
  }

  /** Resolves when all calls are over, or after `withinMs`. */
  async over(withinMs: number): Promise<void> {
    const timer = setTimeout(() => void this.#child.kill('SIGKILL'), withinMs)
    await this.#closed
    clearTimeout(timer)
  }

  async stop(): Promise<void> {
    await killSipp(this.#child)
    rmSync(this.#folder, { recursive: true, force: true })
  }

  #log(): string {
    try {
      return readFileSync(join(this.#folder, 'calls.log'), 'utf8')
    } catch {
      return ''
    }
  }
}
