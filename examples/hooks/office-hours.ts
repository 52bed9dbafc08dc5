/**
 * Office hours: out of hours, calls to OFFICE_NUMBERS go to the dispatcher set OFFICE_NIGHT_SET,
 * such as voicemail; without such a set they get 480 with the hours as its reason.
 */
import type { Hooks } from 'tollgate'

const list = (text: string): readonly string[] => text.split(',').map((each) => each.trim())
const numbers = list(process.env.OFFICE_NUMBERS ?? '').map((number) => number.replace('+', ''))
const nightSet = process.env.OFFICE_NIGHT_SET
const timeZone = process.env.OFFICE_ZONE ?? 'UTC'
const days = list(process.env.OFFICE_DAYS ?? 'Mon,Tue,Wed,Thu,Fri')
const opens = process.env.OFFICE_OPENS ?? '09:00'
const closes = process.env.OFFICE_CLOSES ?? '18:00'
/** Months and days. */
const holidays = list(process.env.OFFICE_HOLIDAYS ?? '01-01,12-25')

const calendar = new Intl.DateTimeFormat('en-CA', {
  ...{ timeZone, weekday: 'short', month: '2-digit', day: '2-digit' },
  ...{ hour: '2-digit', minute: '2-digit', hourCycle: 'h23' },
})

function isOpen(): boolean {
  const parts = calendar.formatToParts(Date.now())
  const partOf = (name: string) => parts.find(({ type }) => type === name)?.value ?? ''
  const time = `${partOf('hour')}:${partOf('minute')}`
  const isHoliday = holidays.includes(`${partOf('month')}-${partOf('day')}`)
  return days.includes(partOf('weekday')) && !isHoliday && time >= opens && time < closes
}

export const onInvite: Hooks['onInvite'] = ({ to }) => {
  if (!numbers.includes(to.replace('+', '')) || isOpen()) return
  const tags = { office: 'closed' }
  if (nightSet) return { set: nightSet, tags }
  return { refuse: { status: 480, reason: `Open from ${opens} to ${closes}` }, tags }
}
