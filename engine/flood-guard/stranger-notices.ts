import type { Log } from '../../schema/contracts/log.ts'
import { Failures } from './failures.ts'

type Fields = Readonly<Record<string, unknown>>

/** A source that is in the log is not logged again for this long. */
const QUIET_MS = 600_000

const MAX_REPORTED = 20_000
const LINES_A_MINUTE = 20
const MINUTE_MS = 60_000

/**
 * Logs strangers: each source once in a while, and a bounded number of lines a minute, because a
 * stranger may write four billion addresses on its packets.
 */
export class StrangerNotices {
  readonly #log: Log
  readonly #reported = new Failures({ max: 1, windowMs: QUIET_MS, maxKeys: MAX_REPORTED })
  #since = -Infinity
  #lines = 0
  #omitted = 0

  constructor(log: Log) {
    this.#log = log
  }

  /** Logs a message about a source, unless the same was logged lately. */
  reportOnce(message: string, source: string, now: number, more: Fields = {}): void {
    const reported = [message, source, ...Object.values(more).map(String)].join(' ')
    if (this.#reported.add(reported, now)) this.report(message, { source, ...more }, now)
  }

  report(message: string, fields: Fields, now: number): void {
    if (now - this.#since >= MINUTE_MS) this.#nextMinute(now)
    this.#lines += 1
    if (this.#lines <= LINES_A_MINUTE) this.#log('warn', message, fields)
    else this.#omitted += 1
  }

  #nextMinute(now: number): void {
    const omitted = this.#omitted
    this.#since = now
    this.#lines = 0
    this.#omitted = 0
    if (omitted > 0) this.#log('warn', 'the guard has suppressed log lines', { omitted })
  }
}
