/** Moves many customers, or carriers, to another rate plan. */
import { getAll, send, type ConsoleAnswer } from '../api/api.ts'
import type { RatePlan } from '../api/views.ts'
import { Choice, textIn } from '../parts/form.tsx'
import type { ManyAction } from '../parts/many-action.ts'
import { useResource } from '../parts/resource.ts'
import { Problem } from '../parts/text.tsx'

interface Priced {
  readonly id: number
  readonly rate_plan_id: number | null
}

export const moveToPlan = <Of extends Priced>(path: string): ManyAction<Of> => ({
  text: 'Move to plan',
  done: 'moved',
  effect: 'new calls have the prices of the plan chosen here.',
  fields: <PlanChoice />,
  send: (row, form) => {
    const plan = Number(textIn(form, 'rate_plan_id'))
    if (plan === 0) return Promise.resolve(noPlan)
    return send('PATCH', `${path}/${row.id}`, { rate_plan_id: plan })
  },
})

const noPlan: ConsoleAnswer<unknown> = {
  kind: 'failed',
  message: 'choose a rate plan',
  code: 'validation_error',
}

function PlanChoice() {
  const { data, problem } = useResource('plans to move to', () => getAll<RatePlan>('/rate-plans'))
  const plans = data.value?.rows.map(({ id, name, currency }): [string, string] => [
    `${id}`,
    `${name} (${currency})`,
  ])
  return (
    <>
      <Choice
        // The first one is chosen once they are there.
        key={plans === undefined ? 'loading' : 'loaded'}
        label="Rate plan"
        name="rate_plan_id"
        value={plans?.[0]?.[0] ?? ''}
        options={Object.fromEntries(plans ?? [['', 'Loading …']])}
      />
      <Problem message={problem.value} />
    </>
  )
}
