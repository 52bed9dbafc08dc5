/** The prices of a customer: the rates of the plan, and the price of one number. */
import { useSignal } from '@preact/signals'
import { get } from '../api/api.ts'
import type { Customer, Price, RatePlan } from '../api/views.ts'
import { may, sessionEnded } from '../api/session.ts'
import { Field, onForm, textIn } from '../parts/form.tsx'
import { List } from '../parts/list.tsx'
import { useResource } from '../parts/resource.ts'
import { Problem } from '../parts/text.tsx'
import { FindRates, newRateOf, shownRateColumns, useRates } from './rate-plans.tsx'

export function CustomerRates({ customer }: { customer: Customer }) {
  const { rate_plan_id: plan } = customer
  const rates = useRates(plan ?? 0)
  const shown = useResource(`plan ${plan}`, () => get<RatePlan>(`/rate-plans/${plan ?? 0}`))
  if (plan === null) return <p>The customer has no rate plan, so its calls have no price.</p>
  const { data } = rates
  return (
    <>
      <PriceOf plan={plan} customer={customer.id} />
      <List
        label="Rates"
        rows={data.value?.rows}
        columns={shownRateColumns()}
        keyOf={(rate) => rate.id}
        empty="The plan has no such rate."
        isSearched
        filters={<FindRates total={data.value?.total} />}
        problem={rates.problem.value}
        reload={rates.reload}
        isWritable={may('rates:write')}
        {...(shown.data.value !== undefined && { create: newRateOf(shown.data.value) })}
      />
    </>
  )
}

function PriceOf({ plan, customer }: { plan: number; customer: number }) {
  const text = useSignal('')
  const problem = useSignal<string | undefined>(undefined)
  const ask = async (number: string): Promise<void> => {
    const words = new URLSearchParams({
      number,
      rate_plan_id: String(plan),
      customer_id: String(customer),
      duration: '60',
    })
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
    : `${rate_per_minute_exact} ${currency} per minute by prefix ${prefix}; a call of one ` +
      `minute costs ${cost_exact} ${currency}.`
