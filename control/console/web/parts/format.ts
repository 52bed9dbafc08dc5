/** Figures and times as people read them, in the viewer's zone and language. */

export const absent = '–'

/** The colour of a state; the adjacent words say the same. */
export type Tone = 'good' | 'warn' | 'bad' | 'plain'

const moment = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' })
const clock = new Intl.DateTimeFormat(undefined, { timeStyle: 'medium' })

export const momentText = (at: string | null): string =>
  at === null ? absent : moment.format(new Date(at))

export const clockText = (at: string): string => clock.format(new Date(at))

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
  exact === null ? absent : `${exact} ${currency ?? ''}`.trimEnd()

/** `12 ms`; nothing where there is no figure. */
export const unitText = (value: number | null | undefined, unit: string, digits = 1): string =>
  value === null || value === undefined ? absent : `${figureText(value, digits)} ${unit}`
