/** Past calls of a rate plan are priced anew: what would change is shown before it is done. */
import { useSignal } from '@preact/signals'
import { type ConsoleAnswer, send } from '../api/api.ts'
import { may } from '../api/session.ts'
import type { Rerating, ReratingPreview } from '../api/views.ts'
import { pathOf } from '../parts/address.ts'
import { Dialog } from '../parts/dialog.tsx'
import { figureText, moneyText, plural } from '../parts/format.ts'
import type { FormRow } from '../parts/schema-fields.ts'
import { madeBody, SchemaFields, type SchemaForm } from '../parts/schema-form.tsx'
import { Text } from '../parts/text.tsx'

const path = '/rates/reratings'

/** Wallets of customers get back, or owe, the difference. */
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
    customer: 'None: calls of all customers.',
    carrier: 'None: those of all carriers with this plan.',
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
      <Differences rows={customers} />
      {examples.length > 0 && <Examples rows={examples} />}
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

interface DifferencesProps {
  /** `posted_exact` is there once wallets are corrected. */
  readonly rows: readonly (Difference & { readonly posted_exact?: string | null })[]
  readonly hasPosted?: boolean
}

/** Names customers with what they get or owe. */
export function Differences({ rows, hasPosted = false }: DifferencesProps) {
  if (rows.length === 0) return null
  const titles = ['Calls', 'Before', 'After', 'Difference', ...(hasPosted ? ['To the wallet'] : [])]
  return (
    <div class="wide" tabIndex={0} role="group" aria-label="By customer, table">
      <table>
        <Head text="Customer" figures={titles} />
        <tbody>
          {rows.map((row) => (
            <tr key={row.customer_id}>
              <td>
                <Text value={row.customer ?? 'none'} max={60} />
              </td>
              <td class="figure">{figureText(row.calls, 0)}</td>
              <td class="figure">{row.before_exact}</td>
              <td class="figure">{row.after_exact}</td>
              <td class="figure">{row.difference_exact}</td>
              {hasPosted && <td class="figure">{row.posted_exact ?? 'not yet'}</td>}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

const Examples = ({ rows }: { rows: readonly Example[] }) => (
  <details>
    <summary>Calls that change most</summary>
    <div class="wide" tabIndex={0} role="group" aria-label="Calls that change most, table">
      <table>
        <Head text="Called" figures={['Seconds', 'Before', 'After']} />
        <tbody>
          {rows.map((row) => (
            <tr key={row.call_uuid}>
              <td>
                <a href={pathOf('calls', row.call_uuid)}>
                  <Text value={row.destination_number} max={40} />
                </a>
              </td>
              <td class="figure">{figureText(row.billsec, 0)}</td>
              <td class="figure">{row.before_exact}</td>
              <td class="figure">{row.after_exact}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  </details>
)

const Head = ({ text, figures }: { text: string; figures: readonly string[] }) => (
  <thead>
    <tr>
      <th scope="col">{text}</th>
      {figures.map((title) => (
        <th key={title} scope="col" class="figure">
          {title}
        </th>
      ))}
    </tr>
  </thead>
)
