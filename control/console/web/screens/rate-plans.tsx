/** Rate plans, and the rates of one: searched, made, changed, imported and exported. */
import { useSignal } from '@preact/signals'
import { getRows } from '../api/api.ts'
import { may } from '../api/session.ts'
import type { Rate, RatePlan } from '../api/views.ts'
import { pathOf } from '../parts/address.ts'
import { figureColumn, moneyColumn, momentColumn, textColumn } from '../parts/columns.tsx'
import { Field, onForm, textIn } from '../parts/form.tsx'
import { figureText } from '../parts/format.ts'
import { List, Loaded, type Action } from '../parts/list.tsx'
import { PageHead } from '../parts/page-head.tsx'
import { manyOf } from '../parts/many-of.ts'
import {
  changeOf,
  manyNoun,
  removeOf,
  ResourceScreen,
  type ScreenNoun,
} from '../parts/resource-screen.tsx'
import { useResource, useView } from '../parts/resource.ts'
import { address, setQuery } from '../parts/router.ts'
import { saveForm, SchemaFields } from '../parts/forms.tsx'
import type { ShownColumn } from '../parts/table.tsx'
import { visibleText } from '../parts/visible-text.ts'
import { changesPath } from './changes-of.tsx'
import { ImportDeck } from './deck-import.tsx'
import { Decks, useDecks } from './decks.tsx'
import { lossForm } from './loss-form.ts'
import { ImportRates } from './rate-import.tsx'
import { Rerate } from './rerating.tsx'
import { Reratings, useReratings } from './reratings.tsx'

const dayWords = {
  mon: 'Monday',
  tue: 'Tuesday',
  wed: 'Wednesday',
  thu: 'Thursday',
  fri: 'Friday',
  sat: 'Saturday',
  sun: 'Sunday',
  holiday: 'holidays',
} as const

const plan: ScreenNoun<RatePlan> = {
  one: 'rate plan',
  many: 'Rate plans',
  scope: 'rates',
  about:
    'A rate plan is a list of prices in one currency. The plan of a customer says what its ' +
    'calls cost; the plan of a carrier says what the carrier charges.',
  effect: 'All its rates are deleted, too. It cannot be undone.',
  nameOf: ({ name }) => name,
  uses: [
    {
      path: '/customers',
      one: 'customer',
      many: 'customers',
      isUse: (customer, { id }) => customer['rate_plan_id'] === id,
    },
    {
      path: '/routing/carriers',
      one: 'carrier',
      many: 'carriers',
      isUse: (carrier, { id }) => carrier['rate_plan_id'] === id,
    },
  ],
  columns: [
    textColumn('name', 'Name', ({ name }) => name, {
      to: ({ id }) => pathOf('rate-plans', String(id)),
    }),
    textColumn('currency', 'Currency', ({ currency }) => currency),
    figureColumn('decimals', 'Decimals', ({ decimals }) => decimals),
    textColumn('rounding', 'Rounding', ({ rounding }) => rounding, { isMinor: true }),
    textColumn('tenant', 'Tenant', ({ tenant }) => tenant, { isMinor: true }),
    momentColumn('created', 'Since', ({ created_at }) => created_at, { isMinor: true }),
  ],
  form: {
    path: '/rate-plans',
    names: ['name', 'currency', 'decimals', 'rounding', 'tenant'],
    more: ['priced_by', ...lossForm.names, 'time_zone', 'periods', 'holidays', 'price_change'],
    rows: { periods: { one: 'period', names: ['name', 'days', 'from', 'to'] } },
    labels: {
      ...lossForm.labels,
      priced_by: 'Calls to ported numbers',
      periods: 'Hours with prices of their own',
      'periods.from': 'From',
      'periods.to': 'Until',
      price_change: 'A period begins during a call',
    },
    words: {
      ...lossForm.words,
      priced_by: { number: 'cost as the dialled number', rn: 'cost as the routing number' },
      price_change: {
        hold: 'the price of the answer stays',
        change: 'the new price from then on',
      },
      'periods.days': dayWords,
    },
    when: { ...lossForm.when },
    hints: {
      ...lossForm.hints,
      priced_by: '',
      periods: 'Several of one name are one period. Other hours have the rates without one.',
      'periods.name': 'Such as off-peak.',
      'periods.days': '',
      'periods.from': 'Such as 18:00.',
      'periods.to': 'Before From: on the next day.',
      currency: 'Three capital letters, such as EUR.',
      decimals: 'The price of a call is rounded to this number of decimals.',
      time_zone:
        'Such as Europe/Berlin. Empty: that of each customer, else of the tenant, else UTC.',
      holidays: 'Days such as 2026-12-25, or 12-25 of each year.',
      price_change: '',
      rounding: 'Up: what is bought and sold as most carriers do. Half up: as invoices do.',
    },
  },
}

export const RatePlansScreen = () => <ResourceScreen noun={plan} />

/** The currency is that of the plan. */
const minutePrice = ({ blocked, rate_per_minute_exact: exact }: Rate) => ({
  amount: blocked ? null : exact,
  currency: null,
})

const rateColumns: readonly ShownColumn<Rate>[] = [
  textColumn('prefix', 'Prefix', ({ prefix }) => prefix, {
    show: ({ prefix }) => (prefix === '' ? 'all others' : prefix),
  }),
  textColumn('name', 'Destination', ({ description }) => description),
  textColumn('period', 'Period', ({ period }) => period, { isMinor: true }),
  moneyColumn('minute', 'Per minute', minutePrice, { absent: () => 'blocked' }),
  moneyColumn('connect', 'Connect fee', (rate) => ({
    amount: rate.connect_fee_exact,
    currency: null,
  })),
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

const rateName = ({ prefix, description }: Rate): string =>
  [prefix === '' ? 'all others' : prefix, description].filter(Boolean).join(' ')

/** Leads to who has changed the price. */
const changesColumn = textColumn<Rate>('changes', 'Changed', () => null, {
  show: (rate) => (
    <a
      href={changesPath('rate', `${rate.id}`, `the rate for ${rateName(rate)}`)}
      aria-label={`By whom ${visibleText(rateName(rate), 80)} was changed`}
    >
      by whom
    </a>
  ),
})

export const shownRateColumns = (): readonly ShownColumn<Rate>[] =>
  may('audit:read') ? [...rateColumns, changesColumn] : rateColumns

const anyRate: ScreenNoun<Rate> = {
  one: 'rate',
  many: 'Rates',
  scope: 'rates',
  about: '',
  effect: 'Calls to it have the price of the next shorter prefix, or none.',
  nameOf: rateName,
  columns: rateColumns,
  form: {
    path: '/rates',
    names: ['prefix', 'description', 'rate_per_minute', 'connect_fee'],
    more: [
      'first_increment',
      'first_rate_per_minute',
      'increment',
      'blocked',
      'period',
      'effective_from',
      'effective_to',
    ],
    labels: {
      description: 'Destination',
      rate_per_minute: 'Price of a minute',
      first_increment: 'Minimum charge in seconds',
      first_rate_per_minute: 'Price of a minute within the minimum',
      increment: 'Then charged in steps of seconds',
      blocked: 'Calls to it are refused',
      period: 'Only in the period',
      effective_from: 'Valid from',
      effective_to: 'Valid until',
    },
    hints: {
      prefix: 'The start of the called number, without +. Empty: every number.',
      first_increment: '',
      first_rate_per_minute: 'Empty: the price of a minute.',
      increment: '',
      blocked: '',
      period: '',
      effective_from: 'Empty: it is valid already.',
      effective_to: 'Empty: it stays valid.',
    },
  },
}

/** The most that one page of the API has. */
const SHOWN = 200

/** The rates of a plan, found by the server: a plan may have a hundred thousand. */
export function useRates(planId: number | string) {
  const wanted = address.value.query['for'] ?? ''
  const words = new URLSearchParams({ rate_plan_id: `${planId}`, limit: `${SHOWN}` })
  if (wanted !== '') words.set('search', wanted)
  return useResource(`${words}`, () => getRows<Rate>(`/rates?${words}`))
}

export function FindRates({ total }: { total: number | undefined }) {
  const wanted = address.value.query['for'] ?? ''
  return (
    <form class="tools" onSubmit={onForm((form) => setQuery({ for: textIn(form, 'for') }))}>
      <Field label="Prefix or destination" name="for" defaultValue={wanted} maxLength={100} />
      <button>Find</button>
      <span class="count" role="status">
        {total !== undefined &&
          (total === 1 ? '1 rate' : `${figureText(total)} rates`) +
            (total > SHOWN ? `; the first ${SHOWN} are shown` : '')}
      </span>
    </form>
  )
}

export function RatePlanScreen({ id }: { id: string }) {
  const found = useView<RatePlan>(`/rate-plans/${encodeURIComponent(id)}`)
  return <Loaded of={found}>{(shown) => <Rates plan={shown} />}</Loaded>
}

/** A rate is in a period that its plan has. */
function rateOf({ periods }: RatePlan): ScreenNoun<Rate> {
  const names = new Set(periods.map(({ name }) => name))
  const among = { period: ['', ...names] }
  const words = { period: { '': 'otherwise' } }
  const more = anyRate.form.more?.filter((name) => name !== 'period' || names.size > 0) ?? []
  return { ...anyRate, form: { ...anyRate.form, among, words, more } }
}

/** How a rate of this plan is made. */
export function newRateOf(shown: RatePlan): Action {
  const { form } = rateOf(shown)
  return {
    text: 'New rate',
    title: `New rate of ${visibleText(shown.name, 60)}`,
    confirm: 'Create',
    ask: <SchemaFields form={form} row={undefined} />,
    onConfirm: (entered) => saveForm(form, entered, undefined, { rate_plan_id: shown.id }),
  }
}

function Rates({ plan: shown }: { plan: RatePlan }) {
  const { id, name, currency } = shown
  const rate = rateOf(shown)
  const { data, problem, reload } = useRates(id)
  const decks = useDecks(id)
  const jobs = useReratings(id)
  const isBegun = useSignal(false)
  const begin = (): void => {
    isBegun.value = true
    jobs.reload()
  }
  const reloadBoth = (): void => {
    decks.reload()
    reload()
  }
  return (
    <>
      <PageHead name={name} about={`Prices in ${currency}.`}>
        <a href={`/api/v1/rates/export?rate_plan_id=${id}`} download={`${name}.csv`}>
          Export as CSV
        </a>
        {may('rates:write') && <Rerate planId={id} onBegin={begin} />}
        {may('rates:write') && <ImportRates planId={id} onDone={reload} />}
        {may('rates:write') && <ImportDeck planId={id} onDone={reloadBoth} />}
      </PageHead>
      <Decks decks={decks} onUndo={reload} />
      <Reratings jobs={jobs} isBegun={isBegun.value} />
      <List<Rate>
        label="Rates"
        rows={data.value?.rows}
        columns={shownRateColumns()}
        keyOf={(each) => each.id}
        empty="The plan has no such rate."
        problem={problem.value}
        reload={reload}
        isWritable={may('rates:write')}
        create={newRateOf(shown)}
        nameOf={rate.nameOf}
        many={manyOf(manyNoun(rate), data.value?.rows)}
        actions={(each) => [changeOf(rate, each), removeOf(rate, each)]}
        isSearched
        filters={<FindRates total={data.value?.total} />}
      />
    </>
  )
}
