/** The prices of a customer: the rates of the plan, and the price of one number. */
import { useSignal } from '@preact/signals'
import { get, getRows } from '../api/api.ts'
import type { Customer, Price, Rate } from '../api/views.ts'
import { address, setQuery } from '../parts/router.ts'
import { sessionEnded } from '../api/session.ts'
import { figureColumn, momentColumn, textColumn } from '../parts/columns.tsx'
import { Field, onForm, textIn } from '../parts/form.tsx'
import { figureText } from '../parts/format.ts'
import { useResource } from '../parts/resource.ts'
import { Table, type ShownColumn } from '../parts/table.tsx'
import { Problem } from '../parts/text.tsx'

/** The most that one page of the API has. */
const SHOWN = 200

const columns: readonly ShownColumn<Rate>[] = [
  textColumn('prefix', 'Prefix', ({ prefix }) => prefix, {
    show: ({ prefix }) => (prefix === '' ? 'all others' : prefix),
  }),
  textColumn('name', 'Destination', ({ description }) => description),
  figureColumn('minute', 'Per minute', (rate) => rate.rate_per_minute, {
    show: (rate) => (rate.blocked ? 'blocked' : rate.rate_per_minute_exact),
  }),
  figureColumn('connect', 'Connect fee', (rate) => rate.connect_fee, {
    show: (rate) => rate.connect_fee_exact,
  }),
  textColumn(
    'increments',
    'Charged seconds',
    (rate) => `${rate.first_increment}/${rate.increment}`,
    {
      isMinor: true,
      show: (rate) => `${rate.first_increment}, then by ${rate.increment}`,
    },
  ),
  momentColumn('from', 'From', (rate) => rate.effective_from, { isMinor: true }),
]

export function CustomerRates({ customer }: { customer: Customer }) {
  const { rate_plan_id: plan } = customer
  const wanted = address.value.query['for'] ?? ''
  const words = new URLSearchParams({ rate_plan_id: String(plan), limit: String(SHOWN) })
  if (wanted !== '') words.set('search', wanted)
  const rates = useResource(`${words}`, () => getRows<Rate>(`/rates?${words}`))
  if (plan === null) return <p>The customer has no rate plan, so its calls have no price.</p>
  const { data } = rates
  return (
    <>
      <PriceOf plan={plan} />
      <Problem message={rates.problem.value} />
      <form class="tools" onSubmit={onForm((form) => setQuery({ for: textIn(form, 'for') }))}>
        <Field label="Prefix or destination" name="for" defaultValue={wanted} maxLength={100} />
        <button>Find</button>
        <span class="count" role="status">
          {data.value !== undefined &&
            `${figureText(data.value.total)} rates` +
              (data.value.total > SHOWN ? `; the first ${SHOWN} are shown` : '')}
        </span>
      </form>
      <Table
        label="Rates"
        rows={data.value?.rows}
        columns={columns}
        keyOf={(rate) => rate.id}
        empty="The plan has no such rate."
      />
    </>
  )
}

function PriceOf({ plan }: { plan: number }) {
  const text = useSignal('')
  const problem = useSignal<string | undefined>(undefined)
  const ask = async (number: string): Promise<void> => {
    const words = new URLSearchParams({ number, rate_plan_id: String(plan), duration: '60' })
    const answer = await get<Price>(`/rates/lookup?${words}`)
    if (answer.kind === 'signed-out') return sessionEnded()
    problem.value = answer.kind === 'failed' ? answer.message : undefined
    text.value = answer.kind === 'ok' ? priceText(answer.data) : ''
  }
  return (
    <form class="tools" onSubmit={onForm((form) => void ask(textIn(form, 'number')))}>
      <Field
        label="Price of a call to"
        name="number"
        inputMode="tel"
        required
        maxLength={64}
        autoComplete="off"
      />
      <button>Show</button>
      <output>{text.value}</output>
      <Problem message={problem.value} />
    </form>
  )
}

const priceText = ({ prefix, blocked, rate_per_minute_exact, cost_exact, currency }: Price) =>
  blocked
    ? `Prefix ${prefix} is blocked.`
    : `${rate_per_minute_exact} ${currency} per minute by prefix ${prefix}; a call of one minute costs ${cost_exact} ${currency}.`
