/** Chooses the period of a report, and the zone of its days and times. */
import { Choice, onForm, textIn } from './form.tsx'
import { periods, type ShownPeriod } from './period.ts'
import { Popover } from './popover.tsx'
import { address, setQuery } from './router.ts'
import { clockField, readClockField, viewerZone } from './zoned-time.ts'

interface PeriodChoiceProps {
  readonly period: ShownPeriod
  readonly zone: string
  /** The zone of the customer whose calls are shown. */
  readonly customerZone: string | undefined
  /** Called before the period changes. */
  readonly onChange: () => void
}

/** The zone that the address names. */
export function zoneOf(
  query: Readonly<Record<string, string>>,
  customerZone: string | undefined,
): string {
  if (query['zone'] === 'utc') return 'UTC'
  return (query['zone'] === 'customer' ? customerZone : undefined) ?? viewerZone()
}

export function PeriodChoice({ period, zone, customerZone, onChange }: PeriodChoiceProps) {
  const change = (changes: Readonly<Record<string, string | undefined>>): void => {
    onChange()
    setQuery(changes)
  }
  const zones = {
    '': `my time (${viewerZone()})`,
    utc: 'UTC',
    ...(customerZone !== undefined && { customer: `the customer's (${customerZone})` }),
  }
  const custom = period.name === 'custom' ? { custom: spanText(period, zone) } : {}
  return (
    <>
      <Choice
        label="Period"
        name="period"
        value={period.name}
        options={{ ...periods, ...custom }}
        onChange={(value) => {
          if (value !== 'custom') change({ period: value, from: undefined, to: undefined })
        }}
      />
      <Popover text="From … to …" title="Period">
        {(close) => (
          <form
            class="stack"
            onSubmit={onForm((form) => {
              const from = readClockField(textIn(form, 'from'), zone)
              const to = readClockField(textIn(form, 'to'), zone)
              if (from === undefined) return
              close()
              const text = (moment: number | undefined) =>
                moment === undefined ? undefined : new Date(moment).toISOString()
              change({ period: undefined, from: text(from), to: text(to) })
            })}
          >
            <Moment label="From" name="from" value={clockField(period.from, zone)} isRequired />
            <Moment label="To" name="to" value={clockField(period.before, zone)} />
            <small>Times of {zone}</small>
            <button class="primary">Show</button>
          </form>
        )}
      </Popover>
      <Choice
        label="Times"
        name="zone"
        value={address.value.query['zone'] ?? ''}
        options={zones}
        onChange={(value) => change({ zone: value })}
      />
    </>
  )
}

interface MomentProps {
  readonly label: string
  readonly name: string
  readonly value: string
  readonly isRequired?: boolean
}

const Moment = ({ label, name, value, isRequired = false }: MomentProps) => (
  <label>
    {label} <input type="datetime-local" name={name} defaultValue={value} required={isRequired} />
  </label>
)

/** `29 Nov, 10:00 to 30 Nov, 12:00` */
function spanText({ from, before }: ShownPeriod, zone: string): string {
  const format = new Intl.DateTimeFormat(undefined, {
    timeZone: zone,
    day: 'numeric',
    month: 'short',
    hour: '2-digit',
    minute: '2-digit',
  })
  return `${format.format(from)} to ${format.format(before)}`
}
