/** What an answer to `statistics` tells of a relay. */
import { isDictionary } from './bencode.ts'
import type { NgDictionary, NgValue } from './relays.ts'

interface RelayFigures {
  readonly uptimeMs: number
  readonly sessions: number
  /** Since it was started. */
  readonly sessionsSoFar: number
}

/** Undefined: they are not there, as in versions to come. */
export function figuresOf(values: NgDictionary): RelayFigures | undefined {
  const { statistics } = values
  if (!isDictionary(statistics)) return undefined
  const { currentstatistics: current, totalstatistics: totals } = statistics
  if (!isDictionary(current) || !isDictionary(totals)) return undefined
  const uptime = numberOf(totals['uptime'])
  const sessions = numberOf(current['sessionstotal'])
  const sessionsSoFar = numberOf(totals['managedsessions'])
  if (uptime === undefined || sessions === undefined || sessionsSoFar === undefined)
    return undefined
  return { uptimeMs: uptime * 1_000, sessions, sessionsSoFar }
}

/** The uptime is a text in version 10.5, and a number in others. */
function numberOf(value: NgValue | undefined): number | undefined {
  const number = typeof value === 'string' || typeof value === 'number' ? Number(value) : NaN
  return Number.isFinite(number) ? number : undefined
}
