/**
 * Which calls are shown: the filters of the list of ended calls, by the names that they have in the
 * address and in the API.
 */
import { figureText } from '../parts/format.ts'
import { results } from './call-words.ts'

type Query = Readonly<Record<string, string>>

interface CommonFilter {
  readonly name: string
  readonly label: string
}

/** Several values by comma, any of which matches. */
export interface ListFilter extends CommonFilter {
  readonly kind: 'list'
  /** Where the names come from that are proposed. */
  readonly names?: 'customers' | 'carriers' | 'nodes' | 'causes'
  readonly hint?: string
}

/** Some of these values. */
export interface ChoiceFilter extends CommonFilter {
  readonly kind: 'choices'
  readonly options: Readonly<Record<string, string>>
}

export interface TextFilter extends CommonFilter {
  readonly kind: 'text'
  readonly hint?: string
  readonly pattern?: string
  /** For users of the platform: others see the calls of their tenant alone. */
  readonly isGlobalOnly?: boolean
}

/** From one figure to another, both included: `<name>_from` and `<name>_to`. */
export interface RangeFilter extends CommonFilter {
  readonly kind: 'range'
  readonly unit: string
  readonly step: string
  readonly min?: number
}

export type CallFilter = ListFilter | ChoiceFilter | TextFilter | RangeFilter

export const callFilters: readonly CallFilter[] = [
  { kind: 'list', name: 'customer_id', label: 'Customer', names: 'customers' },
  { kind: 'list', name: 'carrier', label: 'Carrier', names: 'carriers' },
  { kind: 'list', name: 'extension', label: 'Extension', hint: 'as caller or called' },
  {
    kind: 'choices',
    name: 'disposition',
    label: 'Result',
    options: Object.fromEntries(
      Object.entries(results).map(([name, { text }]) => [name, text.slice(2)]),
    ),
  },
  { kind: 'list', name: 'code', label: 'SIP code', hint: 'such as 486, 503' },
  { kind: 'list', name: 'cause', label: 'Cause', names: 'causes' },
  {
    kind: 'choices',
    name: 'direction',
    label: 'Direction',
    options: { inbound: 'inbound', outbound: 'outbound', internal: 'internal' },
  },
  { kind: 'text', name: 'number', label: 'Number', hint: 'either; 4930* by its beginning' },
  { kind: 'text', name: 'caller', label: 'From', hint: '4930*: by its beginning' },
  { kind: 'text', name: 'called', label: 'To', hint: '4930*: by its beginning' },
  { kind: 'list', name: 'node', label: 'PBX node', names: 'nodes' },
  { kind: 'list', name: 'instance', label: 'Taken by', hint: 'a node of this platform' },
  { kind: 'range', name: 'duration', label: 'Duration', unit: 's', step: '1', min: 0 },
  { kind: 'range', name: 'billsec', label: 'Talk', unit: 's', step: '1', min: 0 },
  { kind: 'range', name: 'cost', label: 'Cost', unit: '', step: 'any', min: 0 },
  { kind: 'range', name: 'margin', label: 'Margin', unit: '', step: 'any' },
  { kind: 'choices', name: 'loss', label: 'Loss', options: { true: 'only at a loss' } },
  { kind: 'range', name: 'mos', label: 'MOS', unit: '', step: '0.01', min: 1 },
  { kind: 'range', name: 'pdd', label: 'Post-dial delay', unit: 'ms', step: '1', min: 0 },
  {
    kind: 'text',
    name: 'tag',
    label: 'Tag',
    hint: 'name:value',
    pattern: String.raw`[A-Za-z][\w.\-]*:.*`,
  },
  {
    kind: 'choices',
    name: 'verification',
    label: 'Caller proved',
    options: { passed: 'proved', failed: 'wrong', none: 'not proved' },
  },
  {
    kind: 'choices',
    name: 'attestation',
    label: 'Attestation',
    options: { A: 'A', B: 'B', C: 'C' },
  },
  { kind: 'list', name: 'set_id', label: 'Dispatcher set', hint: 'numbers of sets' },
  { kind: 'text', name: 'tenant', label: 'Tenant', isGlobalOnly: true },
  { kind: 'text', name: 'call_id', label: 'Call-ID' },
]

/** A filter that holds. */
export interface ActiveFilter {
  readonly filter: CallFilter
  readonly value: string
  /** The other end of a range. */
  readonly upTo: string
}

const oldPeriods: ReadonlyMap<string, string> = new Map([
  ['1', '24h'],
  ['7', '7d'],
  ['30', '30d'],
])

/** Links of earlier versions, and of screens that know one filter only: `?by=carrier&for=telco`. */
export function withoutOldWords({ by, for: wanted, days, page: _, ...query }: Query): Query {
  const old = oldPeriods.get(days ?? '')
  return {
    ...query,
    ...(old !== undefined && { period: old }),
    ...(wanted !== undefined && wanted !== '' && { [by ?? 'number']: wanted }),
  }
}

/** Removes them from an address that is changed. */
export const oldWords = { by: undefined, for: undefined, days: undefined, page: undefined }

/** The filters of an address, in the order in which they were added. */
export function activeFilters(query: Query): readonly ActiveFilter[] {
  const names = Object.keys(query)
  const position = ({ filter }: ActiveFilter): number =>
    names.findIndex((name) => namesOf(filter).includes(name))
  return callFilters
    .map((filter): ActiveFilter => {
      const [first = '', second] = namesOf(filter)
      const upTo = second === undefined ? '' : (query[second] ?? '')
      return { filter, value: known(filter, query[first] ?? ''), upTo }
    })
    .filter(({ value, upTo }) => value !== '' || upTo !== '')
    .toSorted((one, other) => position(one) - position(other))
}

/** Its names in the address. */
export const namesOf = ({ kind, name }: CallFilter): readonly string[] =>
  kind === 'range' ? [`${name}_from`, `${name}_to`] : [name]

const known = (filter: CallFilter, value: string): string =>
  filter.kind === 'choices'
    ? partsOf(value)
        .filter((part) => Object.hasOwn(filter.options, part))
        .join(',')
    : value.trim()

export const partsOf = (value: string): readonly string[] =>
  value
    .split(',')
    .map((part) => part.trim())
    .filter(Boolean)

/** The parameters of the API. */
export const filterWords = (query: Query): Readonly<Record<string, string>> =>
  Object.fromEntries(
    activeFilters(query).flatMap(({ filter, value, upTo }) => {
      const values = [value, upTo]
      return namesOf(filter).flatMap((name, index): [string, string][] => {
        const text = values[index] ?? ''
        return text === '' ? [] : [[name, text]]
      })
    }),
  )

/** The changes of an address by which a filter holds. */
export function changesFor(
  filter: CallFilter,
  value: string,
  upTo = '',
): Readonly<Record<string, string | undefined>> {
  const [first = '', second] = namesOf(filter)
  return { [first]: value, ...(second !== undefined && { [second]: upTo }) }
}

/** The wanted value in words: `acme, globex`, `at least 3.5`, `10 to 60 s`. */
export function wantedText(
  { filter, value, upTo }: ActiveFilter,
  nameOf: (filter: CallFilter, part: string) => string,
): string {
  if (filter.kind === 'text') return value
  if (filter.kind !== 'range')
    return partsOf(value)
      .map((part) => nameOf(filter, part))
      .join(', ')
  const { unit } = filter
  const figure = (text: string) => {
    const number = Number(text)
    return Number.isNaN(number) ? text : figureText(number, 6)
  }
  const span =
    upTo === ''
      ? `at least ${figure(value)}`
      : value === ''
        ? `at most ${figure(upTo)}`
        : `${figure(value)} to ${figure(upTo)}`
  return `${span} ${unit}`.trimEnd()
}
