/** Hours of a day, by the clock of a zone, in which nobody is to be disturbed. */
import { DAY_MS, MINUTE_MS } from '../clock.ts'
import { zoneOf } from '../time-zones.ts'

export interface QuietHours {
  /** `22:00` */
  readonly from: string
  /** `07:00`; before `from`: of the next day. */
  readonly to: string
  readonly time_zone: string
  /** Whether critical alerts wait, too. */
  readonly holds_critical: boolean
}

/** When a message may go that would go at `at`: then, or when the quiet hours end. */
export function afterQuietHours(at: number, { from, to, time_zone: name }: QuietHours): number {
  const zone = zoneOf(name)
  const day = zone.dayOf(at)
  const [start, end] = [minutesOf(from), minutesOf(to)]
  const lengthMinutes = (end - start + minutesOfDay) % minutesOfDay
  // Those that began yesterday may still last.
  for (const begun of [day - DAY_MS, day]) {
    const begins = zone.momentOf(begun + start * MINUTE_MS)
    const ends = zone.momentOf(begun + (start + lengthMinutes) * MINUTE_MS)
    if (at >= begins && at < ends) return ends
  }
  return at
}

const minutesOfDay = 1_440

function minutesOf(time: string): number {
  const [hours = 0, minutes = 0] = time.split(':').map(Number)
  return hours * 60 + minutes
}
