/** Past calls of a rate plan are priced anew: what would change is shown before it is done. */
import { useSignal } from '@preact/signals'
import { type ConsoleAnswer, send } from '../api/api.ts'
import { may } from '../api/session.ts'
import type { Rerating, ReratingPreview } from '../api/views.ts'
import { figureColumn, momentColumn, textColumn } from '../parts/columns.tsx'
import { Dialog } from '../parts/dialog.tsx'
import { figureText, moneyText, plural } from '../parts/format.ts'
import type { FormRow } from '../parts/schema-fields.ts'
import { madeBody, SchemaFields, type SchemaForm } from '../parts/schema-form.tsx'
import { Table, type ShownColumn } from '../parts/table.tsx'

const path = '/rates/reratings'

/** What customers have paid is corrected in their wallets. */
const formOf = (): SchemaForm => ({
  path,
  names: ['kind', 'from', 'to', 'customer', 'carrier', 'prefix', 'prices'],
  among: { kind: may('wallets:write') ? ['sold', 'bought'] : ['bought'] },
  required: ['kind', 'from', 'to'],
  initial: { kind: may('wallets:write') ? 'sold' : 'bought' },
  labels: {
    kind: 'What is priced anew',
    from: 'Calls that began since',
    to: 'and before',
    customer: 'Only calls of the customer',
    carrier: 'Only calls of the carrier',
    prefix: 'Only calls to',
    prices: 'Prices',
  },
  hints: {
    kind: '',
    from: 'In your time zone.',
    to: 'In your time zone.',
    customer: '',
    carrier: '',
    prefix: 'The start of the called number. Empty: every number.',
    prices: '',
  },
  words: {
    kind: { sold: 'what customers have paid', bought: 'what carriers take' },
    prices: { at_call: 'of the time of the call', now: 'of now' },
  },
  when: { carrier: ['kind', 'bought'] },
})

interface RerateProps {
  readonly planId: number
  readonly onBegin: () => void
}

export function Rerate({ planId, onBegin }: RerateProps) {
  const isOpen = useSignal(false)
  return (
    <>
      <button type="button" onClick={() => (isOpen.value = true)}>
        Re-rate calls
      </button>
      {isOpen.value && (
        <RerateDialog
          planId={planId}
          onClose={(isDone) => {
            isOpen.value = false
            if (isDone) onBegin()
          }}
        />
      )}
    </>
  )
}

interface DialogProps {
  readonly planId: number
  readonly onClose: (isDone: boolean) => void
}

/** A preview, then the job that does just what was previewed. */
function RerateDialog({ planId, onClose }: DialogProps) {
  const form = formOf()
  const shown = useSignal<Shown | undefined>(undefined)
  const confirm = async (
    entered: FormData,
  ): Promise<ConsoleAnswer<unknown> | { readonly kind: 'open' }> => {
    const made = await madeBody(form, entered, undefined)
    if (made.kind !== 'ok') return made
    const order = { ...made.data, rate_plan_id: planId }
    if (shown.value !== undefined) return send<Rerating>('POST', path, order)
    const answer = await send<ReratingPreview>('POST', `${path}/preview`, order)
    if (answer.kind !== 'ok') return answer
    shown.value = { order, preview: answer.data }
    return { kind: 'open' }
  }
  return (
    <Dialog
      title="Re-rate calls"
      action={shown.value === undefined ? 'Preview' : 'Re-rate'}
      onConfirm={confirm}
      onClose={onClose}
    >
      {/* Another order has another preview. */}
      <div onInput={() => (shown.value = undefined)} onChange={() => (shown.value = undefined)}>
        <SchemaFields form={form} row={undefined} />
      </div>
      {shown.value !== undefined && <Preview {...shown.value} />}
    </Dialog>
  )
}

interface Shown {
  readonly order: FormRow
  readonly preview: ReratingPreview
}

type Difference = ReratingPreview['customers'][number]
type Example = ReratingPreview['examples'][number]

function Preview({ order, preview }: Shown) {
  const { changed, calls, currency, customers, examples, complete, records } = preview
  const isSold = order['kind'] !== 'bought'
  return (
    <div role="status" aria-label="Preview">
      <p>
        <strong>
          {changed === 0
            ? `No call changes, of ${figureText(calls, 0)}.`
            : `${plural(changed, 'call')} of ${figureText(calls, 0)} ${
                changed === 1 ? 'changes' : 'change'
              }.`}
        </strong>{' '}
        {isSold ? 'Customers have paid' : 'Carriers take'}{' '}
        {moneyText(preview.before_exact, currency)}; by the prices of the plan it is{' '}
        {moneyText(preview.after_exact, currency)}, a difference of{' '}
        {moneyText(preview.difference_exact, currency)}.
        {isSold && changed > 0 && ' Wallets get the difference, as an entry in the ledger.'}
      </p>
      {leftText(preview).map((text) => (
        <p key={text} class="notice">
          {text}
        </p>
      ))}
      {!complete && (
        <p class="notice">Only the first {figureText(records, 0)} records were looked at.</p>
      )}
      {customers.length > 0 && (
        <Table
          label="By customer"
          rows={customers}
          columns={differenceColumns}
          keyOf={({ customer_id }) => customer_id ?? 0}
          empty=""
        />
      )}
      {examples.length > 0 && (
        <details>
          <summary>Calls that change most</summary>
          <Table
            label="Calls that change most"
            rows={examples}
            columns={exampleColumns}
            keyOf={({ call_uuid }) => call_uuid}
            empty=""
          />
        </details>
      )}
    </div>
  )
}

/** Calls that stay as they are, and why. */
const leftText = (counts: Omit<Counts, 'changed' | 'calls'>): readonly string[] =>
  (
    [
      [counts.without_rate, 'for which the plan has no price'],
      [counts.unknown_number, 'whose records do not have the number that decided the price'],
      [counts.other_currency, 'that were priced in another currency'],
    ] as const
  ).flatMap(([count, why]) => {
    const stay = count === 1 ? 'stays as it is' : 'stay as they are'
    return count === 0 ? [] : [`${plural(count, 'call')} ${why}: ${stay}.`]
  })

type Counts = Pick<
  Rerating,
  'calls' | 'changed' | 'without_rate' | 'unknown_number' | 'other_currency'
>

const sumColumns = <
  Row extends Pick<Difference, 'before_exact' | 'after_exact' | 'difference_exact'>,
>(): readonly ShownColumn<Row>[] => [
  figureColumn('before', 'Before', (row) => Number(row.before_exact), {
    show: (row) => row.before_exact,
  }),
  figureColumn('after', 'After', (row) => Number(row.after_exact), {
    show: (row) => row.after_exact,
  }),
  figureColumn('difference', 'Difference', (row) => Number(row.difference_exact), {
    show: (row) => row.difference_exact,
  }),
]

const customerColumn = textColumn<Pick<Difference, 'customer'>>(
  'customer',
  'Customer',
  ({ customer }) => customer ?? 'none',
)

const callsColumn = figureColumn<{ readonly calls: number }>('calls', 'Calls', ({ calls }) => calls)

export const differenceColumns: readonly ShownColumn<Difference>[] = [
  customerColumn,
  callsColumn,
  ...sumColumns<Difference>(),
]

const exampleColumns: readonly ShownColumn<Example>[] = [
  momentColumn('start', 'Began', ({ start }) => start, { isMinor: true }),
  textColumn('called', 'Called', (row) => row.destination_number),
  figureColumn('seconds', 'Seconds', ({ billsec }) => billsec),
  figureColumn('before', 'Before', (row) => Number(row.before_exact), {
    show: (row) => row.before_exact,
  }),
  figureColumn('after', 'After', (row) => Number(row.after_exact), {
    show: (row) => row.after_exact,
  }),
]
