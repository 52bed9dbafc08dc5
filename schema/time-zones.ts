/**
 * Time zones by the data of `Intl`: what a clock of a zone shows, and when it shows it. Offsets are
 * exact at every change of the clocks.
 */
import { DAY_MS } from './clock.ts'

const zones = new Map<string, Zone>()
/** Zones in memory at once. */
const MAX_ZONES = 100

/** Throws for a name that is none of the data. */
export function zoneOf(name: string): Zone {
  const known = zones.get(name)
  if (known !== undefined) return known
  const zone = new Zone(name)
  if (zones.size >= MAX_ZONES) zones.clear()
  zones.set(name, zone)
  return zone
}

/** The name as the data has it, such as `Europe/Berlin` for `europe/berlin`. Undefined: none. */
export function zoneName(name: string): string | undefined {
  if (!/^[A-Za-z]/.test(name)) return undefined
  try {
    return zoneOf(name).name
  } catch {
    return undefined
  }
}

export const zoneProblem = 'must be an IANA time zone, such as "Europe/Berlin"'

/** Since 1972 every change of the clocks is at a quarter of an hour of UTC. */
const QUARTER_MS = 900_000
/** Quarters whose offset is in memory: each costs a few microseconds to find out. */
const MAX_QUARTERS = 1_000

export class Zone {
  readonly name: string
  readonly #clock: Intl.DateTimeFormat
  readonly #offsets = new Map<number, number>()

  constructor(name: string) {
    this.#clock = new Intl.DateTimeFormat('en-GB', {
      timeZone: name,
      hourCycle: 'h23',
      year: 'numeric',
      month: '2-digit',
      day: '2-digit',
      hour: '2-digit',
      minute: '2-digit',
      second: '2-digit',
    })
    this.name = this.#clock.resolvedOptions().timeZone
  }

  /** Milliseconds that a clock of the zone is ahead of UTC. */
  offsetMs(at: number): number {
    if (this.name === 'UTC') return 0
    const quarter = Math.floor(at / QUARTER_MS)
    const known = this.#offsets.get(quarter)
    if (known !== undefined) return known
    const offset = this.#readOffset(quarter * QUARTER_MS)
    if (this.#offsets.size >= MAX_QUARTERS) this.#offsets.clear()
    this.#offsets.set(quarter, offset)
    return offset
  }

  #readOffset(at: number): number {
    const parts = Object.fromEntries(
      this.#clock.formatToParts(at).map(({ type, value }) => [type, Number(value)]),
    )
    const { year = 0, month = 1, day = 1, hour = 0, minute = 0, second = 0 } = parts
    return Date.UTC(year, month - 1, day, hour, minute, second) - at
  }

  /**
   * When a clock of the zone shows a local time, which is given as if it were UTC. Of two moments
   * the first; a time that the clocks leave out is as long after the change as after its last
   * minute before: midnight in a zone that begins the day at 01:00 is 01:00.
   */
  momentOf(local: number): number {
    const before = this.offsetMs(local - DAY_MS)
    const after = this.offsetMs(local + DAY_MS)
    const moments = [local - before, local - after].toSorted((one, other) => one - other)
    return moments.find((at) => at + this.offsetMs(at) === local) ?? local - before
  }

  /** Midnight of the day that a clock shows at this moment, given as if it were UTC. */
  dayOf(at: number): number {
    const local = at + this.offsetMs(at)
    return Math.floor(local / DAY_MS) * DAY_MS
  }

  /** Begins with `from`: each moment, until `to`, at which the offset becomes another. */
  changes(from: number, to: number): readonly OffsetSpan[] {
    const spans: OffsetSpan[] = [{ from, offsetMs: this.offsetMs(from) }]
    for (let at = from; at < to; at += DAY_MS) {
      const end = Math.min(at + DAY_MS, to)
      const offsetMs = this.offsetMs(end)
      if (offsetMs === this.offsetMs(at)) continue
      spans.push({ from: this.#changeBetween(at, end), offsetMs })
    }
    return spans
  }

  #changeBetween(from: number, to: number): number {
    const offset = this.offsetMs(from)
    let [low, high] = [Math.floor(from / QUARTER_MS), Math.ceil(to / QUARTER_MS)]
    while (high - low > 1) {
      const middle = (low + high) >>> 1
      if (this.offsetMs(middle * QUARTER_MS) === offset) low = middle
      else high = middle
    }
    return high * QUARTER_MS
  }
}

export interface OffsetSpan {
  readonly from: number
  readonly offsetMs: number
}
