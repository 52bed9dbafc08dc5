/**
 * Clocks of time zones: what a clock of a zone shows at a moment, and when it shows a time. A time
 * of a clock is written as the milliseconds at which a clock of UTC would show it.
 */
import { DAY_MS } from './format.ts'

/** The zone of this browser. */
export const viewerZone = (): string => new Intl.DateTimeFormat().resolvedOptions().timeZone

const formats = new Map<string, Intl.DateTimeFormat>()

function partsFormat(zone: string): Intl.DateTimeFormat {
  const known = formats.get(zone)
  if (known !== undefined) return known
  const format = new Intl.DateTimeFormat('en-US', {
    timeZone: zone,
    hourCycle: 'h23',
    year: 'numeric',
    month: 'numeric',
    day: 'numeric',
    hour: 'numeric',
    minute: 'numeric',
    second: 'numeric',
  })
  formats.set(zone, format)
  return format
}

/** The time that a clock of the zone shows. */
function clockAt(moment: number, zone: string): number {
  const parts = Object.fromEntries(
    partsFormat(zone)
      .formatToParts(moment)
      .map(({ type, value }) => [type, Number(value)]),
  )
  const { year = 0, month = 1, day = 1, hour = 0, minute = 0, second = 0 } = parts
  return Date.UTC(year, month - 1, day, hour, minute, second)
}

/**
 * When a clock of the zone shows this time: the first time where it does so twice, and the end of
 * the gap where it never does.
 */
export function momentOf(clock: number, zone: string): number {
  const offsetNear = (moment: number): number => clockAt(moment, zone) - moment
  const [before, after] = [clock - DAY_MS, clock + DAY_MS].map((each) => clock - offsetNear(each))
  const hits = [before, after].filter((each) => each !== undefined && clockAt(each, zone) === clock)
  return Math.min(...hits.map(Number), ...(hits.length === 0 ? [Number(before)] : []))
}

/** The first moment of a day, so many days and months after that of `moment`. */
export function dayStart(moment: number, zone: string, days = 0): number {
  const clock = new Date(clockAt(moment, zone))
  const [year, month, day] = [clock.getUTCFullYear(), clock.getUTCMonth(), clock.getUTCDate()]
  return momentOf(Date.UTC(year, month, day + days), zone)
}

/** The first moment of a month, so many months after that of `moment`. */
export function monthStart(moment: number, zone: string, months = 0): number {
  const clock = new Date(clockAt(moment, zone))
  return momentOf(Date.UTC(clock.getUTCFullYear(), clock.getUTCMonth() + months, 1), zone)
}

/** `2026-11-29T14:05`: as fields of the browser have it. */
export const clockField = (moment: number, zone: string): string =>
  new Date(clockAt(moment, zone)).toISOString().slice(0, 16)

/** Undefined: it is no time. */
export function readClockField(text: string, zone: string): number | undefined {
  const clock = Date.parse(`${text}Z`)
  return Number.isNaN(clock) ? undefined : momentOf(clock, zone)
}
