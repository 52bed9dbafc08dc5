/** The form that adds or changes a filter of the list of ended calls. */
import { useSignal } from '@preact/signals'
import { useId } from 'preact/hooks'
import { get } from '../api/api.ts'
import { isGlobal } from '../api/session.ts'
import type { Customer } from '../api/views.ts'
import { Choice, Field, onForm, textIn } from '../parts/form.tsx'
import { shortAddress } from '../parts/format.ts'
import { Problem } from '../parts/text.tsx'
import {
  callFilters,
  changesFor,
  partsOf,
  type ActiveFilter,
  type CallFilter,
  type ChoiceFilter,
  type ListFilter,
  type RangeFilter,
} from './call-filters.ts'
import { hangupText, hangupCauses } from './call-words.ts'
import type { CallNames } from './call-names.ts'

interface FilterFormProps {
  /** Absent: the user chooses it. */
  readonly of?: ActiveFilter
  readonly names: CallNames
  readonly onApply: (changes: Readonly<Record<string, string | undefined>>) => void
}

/** Names of the filters that the user may add. */
const labels = (): Readonly<Record<string, string>> =>
  Object.fromEntries(
    callFilters
      .filter((filter) => filter.kind !== 'text' || filter.isGlobalOnly !== true || isGlobal())
      .map(({ name, label }) => [name, label]),
  )

export function FilterForm({ of, names, onApply }: FilterFormProps) {
  const chosen = useSignal(of?.filter.name ?? 'customer_id')
  const problem = useSignal<string | undefined>(undefined)
  const filter = callFilters.find(({ name }) => name === chosen.value)
  if (filter === undefined) return null
  const apply = async (form: FormData): Promise<void> => {
    const upTo = filter.kind === 'range' ? textIn(form, 'upTo') : ''
    const value = await enteredValue(filter, form, names)
    if (value === undefined) problem.value = `There is no customer "${textIn(form, 'value')}"`
    else if (value === '' && upTo === '') problem.value = 'Say what is wanted'
    else onApply(changesFor(filter, value, upTo))
  }
  return (
    <form
      class="stack"
      onSubmit={onForm((form) => void apply(form))}
      onInput={() => (problem.value = undefined)}
    >
      {of === undefined && (
        <Choice
          label="Filter"
          name="filter"
          value={chosen.value}
          options={labels()}
          onChange={(name) => (chosen.value = name)}
        />
      )}
      <Wanted key={filter.name} filter={filter} of={of} names={names} />
      <Problem message={problem.value} />
      <button class="primary">Apply</button>
    </form>
  )
}

interface WantedProps<Filter> {
  readonly filter: Filter
  readonly of: ActiveFilter | undefined
  readonly names: CallNames
}

/** The fields of a filter. */
function Wanted({ filter, of, names }: WantedProps<CallFilter>) {
  switch (filter.kind) {
    case 'list':
      return <Listed filter={filter} of={of} names={names} />
    case 'choices':
      return <Choices filter={filter} of={of} />
    case 'range':
      return <Range filter={filter} of={of} />
    case 'text':
      return (
        <Field
          label={filter.label}
          name="value"
          hint={filter.hint}
          pattern={filter.pattern}
          defaultValue={of?.value ?? ''}
          maxLength={200}
          autoComplete="off"
        />
      )
  }
}

function Listed({ filter, of, names }: WantedProps<ListFilter>) {
  const id = useId()
  const proposed = filter.names === undefined ? [] : proposals[filter.names](names)
  const value = partsOf(of?.value ?? '').map((part) => names.nameOf(filter, part))
  return (
    <>
      <Field
        label={filter.label}
        name="value"
        hint={filter.hint ?? 'several by comma'}
        list={id}
        defaultValue={value.join(', ')}
        maxLength={500}
        autoComplete="off"
      />
      <datalist id={id}>
        {proposed.slice(0, MAX_PROPOSALS).map(({ value: each, text }) => (
          <option key={each} value={each}>
            {text}
          </option>
        ))}
      </datalist>
    </>
  )
}

/** The browser shows few of them, and finds by what is typed. */
const MAX_PROPOSALS = 500

interface Proposal {
  readonly value: string
  readonly text?: string
}

const named = (names: Iterable<string>): readonly Proposal[] =>
  [...names].map((value) => ({ value }))

const proposals: Readonly<
  Record<NonNullable<ListFilter['names']>, (names: CallNames) => readonly Proposal[]>
> = {
  customers: ({ customers }) => named(customers.values()),
  carriers: ({ carriers }) => named(carriers.keys()),
  nodes: ({ nodes }) => [...nodes.values()].map(({ name, full }) => ({ value: name, text: full })),
  causes: () => hangupCauses.map((value) => ({ value, text: hangupText(value) })),
}

function Choices({ filter, of }: Omit<WantedProps<ChoiceFilter>, 'names'>) {
  const wanted = partsOf(of?.value ?? '')
  const isAlone = Object.keys(filter.options).length === 1
  return (
    <fieldset class="stack">
      <legend>{filter.label}</legend>
      {Object.entries(filter.options).map(([value, text]) => (
        <label key={value} class="flag">
          <input
            type="checkbox"
            name="value"
            value={value}
            defaultChecked={isAlone || wanted.includes(value)}
          />
          {text}
        </label>
      ))}
    </fieldset>
  )
}

function Range({ filter, of }: Omit<WantedProps<RangeFilter>, 'names'>) {
  const unit = filter.unit === '' ? undefined : filter.unit
  const ends = [
    { label: `${filter.label} from`, name: 'value', value: of?.value },
    { label: 'to', name: 'upTo', value: of?.upTo },
  ]
  return (
    <>
      {ends.map(({ label, name, value }) => (
        <Field
          key={name}
          label={label}
          name={name}
          type="number"
          hint={unit}
          step={filter.step}
          min={filter.min}
          defaultValue={value ?? ''}
        />
      ))}
    </>
  )
}

/** The value as the address has it. Undefined: there is no such customer. */
async function enteredValue(
  filter: CallFilter,
  form: FormData,
  names: CallNames,
): Promise<string | undefined> {
  if (filter.kind === 'choices') return form.getAll('value').map(String).join(',')
  const text = textIn(form, 'value')
  if (filter.kind !== 'list') return text
  if (filter.names === 'nodes')
    return partsOf(text)
      .map((part) => addressOf(part, names))
      .join(',')
  if (filter.names !== 'customers') return partsOf(text).join(',')
  // A name may have a comma.
  const whole = await customerIds([text], names)
  return whole ?? (await customerIds(partsOf(text), names))
}

/** The address of a node that has this name. */
const addressOf = (name: string, { nodes }: CallNames): string => {
  const found = [...nodes].find(([, node]) => node.name.toLowerCase() === name.toLowerCase())
  return found === undefined ? name : shortAddress(found[0])
}

/** Ids by comma. Undefined: one of the names is unknown. */
async function customerIds(
  texts: readonly string[],
  { customers }: CallNames,
): Promise<string | undefined> {
  const ids: (number | undefined)[] = []
  for (const text of texts.filter(Boolean)) {
    const wanted = text.toLowerCase()
    const hit = [...customers].find(([, name]) => name.toLowerCase() === wanted)?.[0]
    ids.push(hit ?? (await searchCustomer(text)))
  }
  return ids.includes(undefined) ? undefined : ids.join(',')
}

/** A customer beyond those whose names are known here; or one by its id. */
async function searchCustomer(text: string): Promise<number | undefined> {
  const answer = await get<readonly Customer[]>(
    `/customers?limit=50&search=${encodeURIComponent(text)}`,
  )
  const found = answer.kind === 'ok' ? answer.data : []
  const hit = found.find(({ name }) => name.toLowerCase() === text.toLowerCase()) ?? found[0]
  if (hit !== undefined) return hit.id
  return /^[1-9]\d{0,14}$/.test(text) ? Number(text) : undefined
}
