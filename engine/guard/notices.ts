/**
 * What the log is told of strangers: each source once in a while, and a bounded number of lines a minute,
 * because a stranger may write four billion addresses on its packets.
 */
import type { Log } from '../../schema/contracts/log.ts'
import { Failures } from './failures.ts'

type Fields = Readonly<Record<string, unknown>>

/** A source that was told about is not told about again for this long. */
const QUIET_MS = 600_000
const MAX_TOLD = 20_000
const LINES_A_MINUTE = 20
const MINUTE_MS = 60_000

export class Notices {
  readonly #log: Log
  readonly #told = new Failures({ max: 1, windowMs: QUIET_MS, maxKeys: MAX_TOLD })
  #since = -Infinity
  #lines = 0
  #omitted = 0

  constructor(log: Log) {
    this.#log = log
  }

  /** Tells of a source unless the same was told of it a moment ago. */
  tellOnce(message: string, source: string, now: number, more: Fields = {}): void {
    const told = [message, source, ...Object.values(more).map(String)].join(' ')
    if (this.#told.add(told, now)) this.tell(message, { source, ...more }, now)
  }

  tell(message: string, fields: Fields, now: number): void {
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
    if (omitted > 0) this.#log('warn', 'the guard left out lines of the log', { omitted })
  }
}
