/**
 * The deck of a carrier, as it comes: its columns are named by a person, its first lines shown as
 * they are read, and what it changes is shown before anything is stored.
 */
import { type Signal, useSignal } from '@preact/signals'
import { type ConsoleAnswer, send, sendDeck } from '../api/api.ts'
import type { DeckDiff, DeckImport, DeckPreview, DeckProgress } from '../api/views.ts'
import { Dialog } from '../parts/dialog.tsx'
import { Choice } from '../parts/form.tsx'
import { figureText, momentText, plural } from '../parts/format.ts'
import { useView } from '../parts/resource.ts'
import { visibleText } from '../parts/visible-text.ts'

interface ImportProps {
  readonly planId: number
  readonly onDone: () => void
}

export function ImportDeck({ planId, onDone }: ImportProps) {
  const isOpen = useSignal(false)
  const done = useSignal<DeckImport | undefined>(undefined)
  const note = useSignal('')
  const undo = async (id: number): Promise<void> => {
    const answer = await send<{ restored: number }>('POST', `/rates/decks/${id}/undo`)
    note.value =
      answer.kind === 'ok'
        ? `Undone: ${plural(answer.data.restored, 'rate')} as before.`
        : answer.kind === 'failed'
          ? answer.message
          : ''
    if (answer.kind === 'ok') done.value = undefined
    onDone()
  }
  return (
    <>
      <button type="button" onClick={() => (isOpen.value = true)}>
        Import deck
      </button>
      <span role="status">{note.value}</span>
      {done.value !== undefined && (
        <button type="button" onClick={() => void undo(done.value?.id ?? 0)}>
          Undo this import
        </button>
      )}
      {isOpen.value && (
        <DeckDialog
          planId={planId}
          onImport={(report) => {
            done.value = report
            const { created, updated, removed } = report
            const counts = [
              plural(created, 'new rate'),
              plural(updated, 'changed', 'changed'),
              plural(removed, 'removed', 'removed'),
            ]
            note.value = `Imported: ${counts.join(', ')}.`
          }}
          onClose={() => {
            isOpen.value = false
            onDone()
          }}
        />
      )}
    </>
  )
}

interface Mapping {
  readonly columns: Readonly<Record<string, string | number>>
  readonly [name: string]: unknown
}

interface DialogProps {
  readonly planId: number
  readonly onImport: (report: DeckImport) => void
  readonly onClose: () => void
}

/** The text of the button by what is known: nothing, the first lines, the changes. */
const actions = { file: 'Preview', preview: 'Compare', diff: 'Import' } as const

function DeckDialog({ planId, onImport, onClose }: DialogProps) {
  const file = useSignal<File | undefined>(undefined)
  const mapping = useSignal<Mapping | undefined>(undefined)
  const mode = useSignal('merge')
  const remembers = useSignal(true)
  const preview = useSignal<DeckPreview | undefined>(undefined)
  const diff = useSignal<DeckDiff | undefined>(undefined)
  const isWorking = useSignal(false)
  const look = async (): Promise<ConsoleAnswer<unknown>> => {
    const order = { mapping: mapping.value }
    const answer = await sendDeck<DeckPreview>(planId, '/preview', file.value ?? new Blob(), order)
    if (answer.kind !== 'ok') return worded(answer)
    preview.value = answer.data
    const { mapping: found } = answer.data
    mapping.value = { columns: {}, ...found }
    return answer
  }
  const change = (values: Readonly<Record<string, unknown>>): void => {
    mapping.value = { columns: {}, ...mapping.value, ...values }
    diff.value = undefined
    if (isWhole(mapping.value)) void look()
  }
  const confirm = async (): Promise<Confirmed> => {
    isWorking.value = true
    try {
      return await goOn()
    } finally {
      isWorking.value = false
    }
  }
  const goOn = async (): Promise<Confirmed> => {
    if (preview.value === undefined) return stillOpen(await look())
    const order = { mapping: mapping.value, mode: mode.value }
    const deck = file.value ?? new Blob()
    if (diff.value === undefined) {
      const answer = await sendDeck<DeckDiff>(planId, '/diff', deck, order)
      if (answer.kind === 'ok') diff.value = answer.data
      return stillOpen(answer)
    }
    const name = { fileName: file.value?.name ?? '' }
    const answer = await sendDeck<DeckImport>(planId, '', deck, { ...order, ...name })
    if (answer.kind !== 'ok') return worded(answer)
    onImport(answer.data)
    if (!remembers.value) return answer
    return send('PATCH', `/rate-plans/${planId}`, { deck_mapping: ofEveryDeck(mapping.value) })
  }
  const step = diff.value ? 'diff' : preview.value ? 'preview' : 'file'
  return (
    <Dialog title="Import a deck" action={actions[step]} onConfirm={confirm} onClose={onClose}>
      <label>
        File{' '}
        <input
          type="file"
          required
          accept=".csv,.txt,.tsv,.xlsx,text/csv,text/plain"
          onChange={(event) => {
            file.value = event.currentTarget.files?.[0]
            mapping.value = undefined
            preview.value = undefined
            diff.value = undefined
          }}
        />
      </label>
      {preview.value !== undefined && (
        <>
          <MappingForm preview={preview.value} mapping={mapping.value} onChange={change} />
          <Choice
            label="Prefixes of the plan that the deck does not have"
            name="mode"
            value="merge"
            options={{ merge: 'stay', replace: 'end' }}
            onChange={(value) => {
              mode.value = value
              diff.value = undefined
            }}
          />
          <Remember remembers={remembers} />
          <FirstLines preview={preview.value} />
        </>
      )}
      <Changes diff={diff.value} />
      {isWorking.value && <Progress />}
    </Dialog>
  )
}

const stillOpen = (answer: ConsoleAnswer<unknown>): Confirmed =>
  answer.kind === 'ok' ? { kind: 'open' } : worded(answer)

/** Lines and a day belong to one deck: another has other rates there, and begins later. */
const ofEveryDeck = (mapping: Mapping | undefined): object =>
  Object.fromEntries(
    Object.entries(mapping ?? {}).filter(
      ([name]) => name !== 'skip_lines' && name !== 'effective_from',
    ),
  )

const MAX_SHOWN_PROBLEMS = 10

/** Says the lines and the fields of a refusal as this form names them. */
function worded<T>(answer: ConsoleAnswer<T>): ConsoleAnswer<T> {
  if (answer.kind !== 'failed') return answer
  const { headline = answer.message, details = [] } = answer
  const problems = details.slice(0, MAX_SHOWN_PROBLEMS).map(({ path, message }) => {
    const [, line, column = ''] = /^lines\.(\d+)(?:\.(\w+))?$/.exec(path) ?? []
    const place = line === undefined ? path : `Line ${line}${column && `, ${labelOf(column)}`}`
    return `${place}: ${formWords(message)}`
  })
  const others = details.length - problems.length
  const more = others > 0 ? [`${others} more problems`] : []
  return { ...answer, message: [headline, ...problems, ...more].join('. '), details: [] }
}

const formWords = (message: string): string =>
  message.replaceAll(/\b[a-z]+_[a-z_]+\b/g, (name) => `“${labelOf(name)}”`)

/** The name itself where the form has no such field. */
const labelOf = (name: string): string =>
  columnLabels[name] ?? [...cellChoices, ...textFields].find(([each]) => each === name)?.[1] ?? name
type Confirmed = ConsoleAnswer<unknown> | { readonly kind: 'open' }

const stages: Readonly<Record<DeckProgress['stage'], string>> = {
  none: '',
  reading: 'Read',
  comparing: 'Compared',
  storing: 'Stored',
}

/** How far the server is with a large deck. */
function Progress() {
  const { data } = useView<DeckProgress>('/rates/decks/progress', { everyMs: 1_000 })
  const { stage = 'none', done = 0, of = null } = data.value ?? {}
  if (stage === 'none') return null
  const whole = of === null ? '' : ` of ${figureText(of, 0)}`
  return (
    <p role="status" aria-label="Progress">
      {`${stages[stage]}: ${figureText(done, 0)}${whole}`}
    </p>
  )
}

/** Less would be refused. */
const isWhole = ({ columns }: Mapping): boolean =>
  columns['rate_per_minute'] !== undefined &&
  (columns['prefix'] ?? columns['area_code']) !== undefined

const Remember = ({ remembers }: { remembers: Signal<boolean> }) => (
  <label>
    <input
      name="remember"
      type="checkbox"
      checked={remembers.value}
      onChange={(event) => (remembers.value = event.currentTarget.checked)}
    />{' '}
    Read the next deck of this plan in the same way
  </label>
)

const columnLabels: Readonly<Record<string, string>> = {
  prefix: 'Prefix',
  country_code: 'Country code',
  area_code: 'Area code',
  description: 'Destination',
  rate_per_minute: 'Price of a minute',
  connect_fee: 'Connect fee',
  increments: 'Increments, as 30/6',
  first_increment: 'First increment',
  increment: 'Further increments',
  blocked: 'Blocked',
  period: 'Period',
  effective_from: 'Valid from',
  effective_to: 'Valid until',
}

/** Choices of how cells are meant; the empty one says nothing. */
const cellChoices: readonly (readonly [
  name: string,
  label: string,
  options: Readonly<Record<string, string>>,
])[] = [
  ['decimal', 'Decimals stand after', { '.': 'a point', ',': 'a comma' }],
  [
    'thousands',
    'Thousands are marked by',
    { '': 'nothing', ',': 'a comma', '.': 'a point', ' ': 'a space', "'": 'an apostrophe' },
  ],
  [
    'more_decimals',
    'More than six decimals',
    { refuse: 'are refused', up: 'round up', nearest: 'round to the nearest', down: 'round down' },
  ],
  [
    'spaces',
    'Spaces in a prefix',
    { '': 'as it looks', join: 'belong to it', list: 'stand between prefixes' },
  ],
  [
    'trunk_zero',
    'The 0 of an area code',
    { '': 'is refused', drop: 'is not dialled', keep: 'is dialled, as in Italy' },
  ],
]

const textFields: readonly (readonly [name: string, label: string, example: string])[] = [
  ['date_format', 'Format of dates', 'DD.MM.YYYY'],
  ['time_zone', 'Time zone of dates', 'UTC'],
  ['effective_from', 'Valid from, for the whole deck', '2026-12-01'],
  ['country_code', 'Country code of the whole deck', ''],
  ['skip_lines', 'Lines to leave out', '502, 503'],
  ['sheet', 'Sheet of a workbook, by number or name', '1'],
  ['header_line', 'Line of the header; 0: there is none', ''],
  ['exit_code', 'Digits before a country code that are not part of it', '00'],
]

interface MappingProps {
  readonly preview: DeckPreview
  readonly mapping: Mapping | undefined
  readonly onChange: (values: Readonly<Record<string, unknown>>) => void
}

function MappingForm({ preview, mapping, onChange }: MappingProps) {
  const { columns = {} } = mapping ?? {}
  const header = headerOf(preview, mapping)
  const options = Object.fromEntries([
    ['', 'is not there'],
    ...header.map((name, index) => [`${index + 1}`, name === '' ? `Column ${index + 1}` : name]),
  ]) as Readonly<Record<string, string>>
  const valueOf = (name: string): string => {
    const reference = columns[name]
    if (typeof reference === 'number') return `${reference}`
    const index = header.findIndex((each) => each.toLowerCase() === reference?.toLowerCase())
    return index === -1 ? '' : `${index + 1}`
  }
  const setColumn = (name: string, value: string): void => {
    const others = Object.entries(columns).filter(([each]) => each !== name)
    const text = header[Number(value) - 1] ?? ''
    const isNamed = text !== '' && header.filter((each) => each === text).length === 1
    const reference = isNamed ? text : Number(value)
    const chosen = value === '' ? [] : [[name, reference] as const]
    onChange({ columns: Object.fromEntries([...others, ...chosen]) })
  }
  return (
    <>
      <p>
        {preview.format === 'xlsx'
          ? 'A workbook.'
          : `A text in ${preview.encoding}, cells separated by ${preview.separator}.`}{' '}
        {preview.mapping_source === 'remembered' && 'It is read as the last deck of this plan.'}
        {preview.mapping_source === 'proposed' && 'Check the proposed columns.'}
      </p>
      <fieldset class="pairs">
        <legend>Columns</legend>
        {Object.entries(columnLabels).map(([name, label]) => (
          <Choice
            key={name}
            label={label}
            name={`column_${name}`}
            value={valueOf(name)}
            options={options}
            onChange={(value) => setColumn(name, value)}
          />
        ))}
      </fieldset>
      <details>
        <summary>How the cells are meant</summary>
        <div class="pairs">
          {cellChoices.map(([name, label, each]) => (
            <Choice
              key={name}
              label={label}
              name={name}
              value={textOf(mapping?.[name]) || (Object.keys(each)[0] ?? '')}
              options={each}
              onChange={(value) => onChange({ [name]: value === '' ? undefined : value })}
            />
          ))}
          {textFields.map(([name, label, example]) => (
            <label key={name}>
              {label}{' '}
              <input
                name={name}
                placeholder={example}
                value={textOf(mapping?.[name])}
                onChange={(event) =>
                  onChange({ [name]: fieldValue(name, event.currentTarget.value) })
                }
              />
            </label>
          ))}
        </div>
      </details>
    </>
  )
}

/** A value of the mapping in its field; lists have commas. */
function textOf(value: unknown): string {
  if (Array.isArray(value)) return value.join(', ')
  return typeof value === 'string' || typeof value === 'number' ? String(value) : ''
}

function fieldValue(name: string, text: string): unknown {
  if (text.trim() === '') return undefined
  const value = text.trim()
  if (name === 'skip_lines') return value.split(/[\s,]+/).map(Number)
  const isNumber = name === 'header_line' || name === 'sheet'
  return isNumber && /^\d+$/.test(value) ? Number(value) : value
}

function headerOf({ lines }: DeckPreview, mapping: Mapping | undefined): readonly string[] {
  const wanted = mapping?.['header_line']
  const named = lines.find(({ line }) => line === wanted)
  // Without a header line: the widest of the first lines.
  const widest = lines.toSorted((one, other) => other.cells.length - one.cells.length)[0]
  return (named ?? widest)?.cells ?? []
}

/** The rates of a line have their other terms in common. */
const termsText = (rate: DeckPreview['lines'][number]['rates'][number]): string =>
  [
    `; ${rate.first_increment}/${rate.increment} s`,
    ...(Number(rate.connect_fee_exact) === 0 ? [] : [`${rate.connect_fee_exact} to connect`]),
    ...(rate.blocked ? ['blocked'] : []),
    ...(rate.effective_from === null ? [] : [`from ${momentText(rate.effective_from)}`]),
  ].join(', ')

const SHOWN_LINES = 12

const FirstLines = ({ preview: { lines } }: { preview: DeckPreview }) => (
  <div class="wide" tabIndex={0} role="group" aria-label="The first lines">
    <table aria-label="The first lines, as they are read">
      <thead>
        <tr>
          <th scope="col">Line</th>
          <th scope="col">The line</th>
          <th scope="col">Read as</th>
        </tr>
      </thead>
      <tbody>
        {lines.slice(0, SHOWN_LINES).map(({ line, cells, rates, problems }) => (
          <tr key={line}>
            <td class="figure">{line}</td>
            <td>
              <code>{visibleText(cells.join(' | '), 160)}</code>
            </td>
            <td>
              {problems.map(({ message }) => (
                <span key={message} role="alert">
                  {visibleText(formWords(message), 250)}
                </span>
              ))}
              {rates.map((rate) => `${rate.prefix}: ${rate.rate_per_minute_exact}`).join(', ')}
              {rates.slice(0, 1).map(termsText)}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  </div>
)

const kindLabels: Readonly<Record<string, string>> = {
  new: 'new',
  dearer: 'dearer',
  cheaper: 'cheaper',
  changed: 'changed otherwise',
  gone: 'not in the deck',
  same: 'as before',
}

const Changes = ({ diff }: { diff: DeckDiff | undefined }) => (
  <>
    <p role="status">
      {diff !== undefined &&
        `${Object.entries(diff.changes)
          .map(([kind, count]) => `${figureText(count, 0)} ${kindLabels[kind] ?? kind}`)
          .join(', ')}. Nothing is stored yet.`}
    </p>
    {diff?.warnings.map((warning) => (
      <p key={warning} role="alert">
        {visibleText(formWords(warning), 200)}.
      </p>
    ))}
    {diff !== undefined && diff.losses.customers > 0 && <LossTable losses={diff.losses} />}
    {diff !== undefined && diff.rates.length > 0 && <ChangeTable rates={diff.rates} />}
  </>
)

const lossText = (loss: DeckDiff['losses']['shown'][number]): string =>
  `${visibleText(loss.customer, 100)}: ${plural(loss.prefixes, 'prefix', 'prefixes')}, such as ` +
  `${loss.prefix}, sold for ${loss.sold_exact}, costs ${loss.cost_exact}`

const LossTable = ({ losses }: { losses: DeckDiff['losses'] }) => (
  <>
    <p role="alert">{plural(losses.customers, 'customer')} would be served at a loss:</p>
    <ul>
      {losses.shown.map((loss) => (
        <li key={loss.customer_id}>{lossText(loss)}</li>
      ))}
    </ul>
  </>
)

const ChangeTable = ({ rates }: { rates: DeckDiff['rates'] }) => (
  <div class="wide" tabIndex={0} role="group" aria-label="What changes">
    <table aria-label="What changes, the largest first">
      <thead>
        <tr>
          {['Prefix', 'Destination', 'Change', 'Before', 'After', '%'].map((name) => (
            <th key={name} scope="col">
              {name}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rates.map((rate, index) => (
          <tr key={index}>
            <td>{rate.prefix}</td>
            <td>{visibleText(rate.description ?? '', 60)}</td>
            <td>{kindLabels[rate.kind]}</td>
            <td class="figure">{rate.before_exact}</td>
            <td class="figure">{rate.after_exact}</td>
            <td class="figure">{rate.percent}</td>
          </tr>
        ))}
      </tbody>
    </table>
  </div>
)
