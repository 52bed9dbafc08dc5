/** What calls of a customer cost: the rates of the plan, and the price of one number. */
import { useSignal } from '@preact/signals'
import { get, getRows } from '../api/api.ts'
import type { Customer, Price, Rate } from '../api/views.ts'
import { address, setQuery } from '../parts/router.ts'
import { sessionEnded } from '../api/session.ts'
import { textIn } from '../parts/form.ts'
import { figureText } from '../parts/format.ts'
import { useResource } from '../parts/resource.ts'
import { Table, type ShownColumn } from '../parts/table.tsx'
import { Moment, Problem, Text } from '../parts/text.tsx'

/** The most that one page of the API has. */
const SHOWN = 200

const columns: readonly ShownColumn<Rate>[] = [
  {
    name: 'prefix',
    title: 'Prefix',
    value: (rate) => rate.prefix,
    show: (rate) => (rate.prefix === '' ? 'all others' : rate.prefix),
  },
  {
    name: 'name',
    title: 'Destination',
    value: (rate) => rate.description,
    show: (rate) => <Text value={rate.description} max={60} />,
  },
  {
    name: 'minute',
    title: 'Per minute',
    value: (rate) => rate.rate_per_minute,
    isFigure: true,
    show: (rate) => (rate.blocked ? 'blocked' : rate.rate_per_minute_exact),
  },
  {
    name: 'connect',
    title: 'Connect fee',
    value: (rate) => rate.connect_fee,
    isFigure: true,
    show: (rate) => rate.connect_fee_exact,
  },
  {
    name: 'increments',
    title: 'Charged seconds',
    value: (rate) => `${rate.first_increment}/${rate.increment}`,
    isMinor: true,
    show: (rate) => `${rate.first_increment}, then by ${rate.increment}`,
  },
  {
    name: 'from',
    title: 'From',
    value: (rate) => rate.effective_from,
    isMinor: true,
    show: (rate) => <Moment at={rate.effective_from} />,
  },
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
      <form
        class="tools"
        onSubmit={(event) => {
          event.preventDefault()
          setQuery({ for: textIn(new FormData(event.currentTarget), 'for') })
        }}
      >
        <label>
          Prefix or destination <input name="for" defaultValue={wanted} maxLength={100} />
        </label>
        <button>Find</button>
        <span class="count" role="status">
          {data.value !== undefined &&
            `${figureText(data.value.total)} rates` +
              (data.value.total > SHOWN ? `; the first ${SHOWN} are shown` : '')}
        </span>
      </form>
      <Table
        label="Rates"
        rows={data.value?.rows ?? []}
        columns={columns}
        keyOf={(rate) => rate.id}
        empty={data.value === undefined ? 'Loading …' : 'The plan has no such rate.'}
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
    <form
      class="tools"
      onSubmit={(event) => {
        event.preventDefault()
        void ask(textIn(new FormData(event.currentTarget), 'number'))
      }}
    >
      <label>
        Price of a call to{' '}
        <input name="number" inputMode="tel" required maxLength={64} autoComplete="off" />
      </label>
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
