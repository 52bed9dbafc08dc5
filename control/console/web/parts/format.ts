/** Figures and times as people read them, in the viewer's zone and language. */

export const absent = '–'

/** The colour of a state; the adjacent words say the same. */
export type Tone = 'good' | 'warn' | 'bad' | 'plain'

const momentStyle = { dateStyle: 'medium', timeStyle: 'medium' } as const
const moment = new Intl.DateTimeFormat(undefined, momentStyle)
/** The clock of the zone that was shown last: one screen shows one. */
let zoned = { zone: '', moment }
const clock = new Intl.DateTimeFormat(undefined, { timeStyle: 'medium' })

/** @param zone IANA name; absent: that of the viewer. */
export const momentText = (at: string | null, zone?: string): string =>
  at === null ? absent : momentIn(zone).format(new Date(at))

function momentIn(zone: string | undefined): Intl.DateTimeFormat {
  if (zone === undefined) return moment
  if (zone !== zoned.zone)
    zoned = { zone, moment: new Intl.DateTimeFormat(undefined, { ...momentStyle, timeZone: zone }) }
  return zoned.moment
}

export const clockText = (at: string): string => clock.format(new Date(at))

const shortMoment = new Intl.DateTimeFormat(undefined, {
  day: 'numeric',
  month: 'short',
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
})

/** Leaves out the year, for events that happened lately. */
export const shortMomentText = (at: string): string => shortMoment.format(new Date(at))

const hourAndMinute = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit' })
export const MINUTE_MS = 60_000
export const HOUR_MS = 3_600_000
export const DAY_MS = 86_400_000

/** `14:02`, and the day where that is more than a day ago. */
export const sinceText = (at: string, present: number): string =>
  present - Date.parse(at) > DAY_MS
    ? shortMoment.format(new Date(at))
    : hourAndMinute.format(new Date(at))

/** `1 call`, `2 calls`, `1,000 calls`. */
export const plural = (count: number, noun: string, nouns = `${noun}s`): string =>
  `${figureText(count, 0)} ${count === 1 ? noun : nouns}`

/** `sip:10.0.0.1:5060;transport=udp` → `10.0.0.1:5060` */
export const shortAddress = (uri: string): string => uri.replace(/^sips?:(?:[^@;]*@)?|[;?].*$/g, '')

/** `1:02:03` */
export function durationText(seconds: number): string {
  const whole = Math.max(0, Math.floor(seconds))
  const parts = [Math.floor(whole / 60) % 60, whole % 60].map((part) => `${part}`.padStart(2, '0'))
  const hours = Math.floor(whole / 3_600)
  return hours > 0 ? `${hours}:${parts.join(':')}` : parts.join(':')
}

export const figureText = (value: number | null | undefined, digits = 1): string =>
  value === null || value === undefined
    ? absent
    : value.toLocaleString(undefined, { maximumFractionDigits: digits })

/** The exact decimal of the API: a figure of money is never rounded here. */
export const moneyText = (exact: string | null, currency: string | null): string =>
  exact === null ? absent : `${padded(exact, 2)} ${currency ?? ''}`.trimEnd()

/** `0.5` with three decimals is `0.500`: it stays exact, and nothing is cut. */
export function padded(exact: string, decimals: number): string {
  const missing = decimals - decimalsOf(exact)
  if (missing <= 0) return exact
  return `${exact}${exact.includes('.') ? '' : '.'}${'0'.repeat(missing)}`
}

export const decimalsOf = (exact: string): number =>
  exact.includes('.') ? exact.length - exact.indexOf('.') - 1 : 0

/** `12 ms`; nothing where there is no figure. */
export const unitText = (value: number | null | undefined, unit: string, digits = 1): string =>
  value === null || value === undefined ? absent : `${figureText(value, digits)} ${unit}`

/** The tags that a hook has given to a call. */
export const tagsText = (tags: Readonly<Record<string, string>>): string =>
  Object.entries(tags)
    .map(([name, value]) => `${name}: ${value}`)
    .join(', ')
