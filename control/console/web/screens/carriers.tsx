/** Carriers: whether they take calls now, and the figures of past calls. */
import { get } from '../api/api.ts'
import { may } from '../api/session.ts'
import type { Carrier, CarrierSums } from '../api/views.ts'
import { now } from '../api/browser.ts'
import { pathOf } from '../parts/address.ts'
import { figureColumn, textColumn } from '../parts/columns.tsx'
import { Choice, words } from '../parts/form.tsx'
import { HOUR_MS, absent, durationText, figureText, unitText } from '../parts/format.ts'
import { List } from '../parts/list.tsx'
import { createOf } from '../parts/resource-screen.tsx'
import { useResource, useView } from '../parts/resource.ts'
import { address, setQuery } from '../parts/router.ts'
import type { ShownColumn } from '../parts/table.tsx'
import { Text } from '../parts/text.tsx'
import { carrierNoun } from './carrier-form.ts'
import { carrierState } from './carrier-state.ts'

const periods = { hour: HOUR_MS, day: 24 * HOUR_MS } as const

/** Gateways that answer, of all. */
const answering = ({ gateways }: Carrier): string => {
  const active = gateways.filter(({ status }) => status?.state === 'active')
  return `${active.length} of ${gateways.length}`
}

const columnsWith = (
  sumsOf: (carrier: Carrier) => CarrierSums['outbound'] | undefined,
): readonly ShownColumn<Carrier>[] => [
  textColumn('name', 'Name', ({ name }) => name, {
    to: ({ id }) => pathOf('carriers', `${id}`),
    also: ({ tenant }) => tenant,
    second: ({ tenant }) => (tenant === null ? 'of the platform' : <Text value={tenant} />),
  }),
  textColumn('state', 'State', (carrier) => carrierState(carrier).text, {
    tone: (carrier) => carrierState(carrier).tone,
    second: ({ registration }) => registration !== 'failed' && registration,
  }),
  textColumn('gateways', 'Gateways that answer', answering, { show: answering }),
  figureColumn('calls', 'Live calls', ({ status }) => status.active_calls),
  figureColumn('attempts', 'Calls', (carrier) => sumsOf(carrier)?.calls ?? null, {
    show: (carrier) => figureText(sumsOf(carrier)?.calls ?? 0),
  }),
  figureColumn('asr', 'ASR', (carrier) => sumsOf(carrier)?.asr_percent ?? null, {
    show: (carrier) => unitText(sumsOf(carrier)?.asr_percent, '%'),
  }),
  figureColumn('acd', 'ACD', (carrier) => sumsOf(carrier)?.acd_seconds ?? null, {
    show: (carrier) => {
      const seconds = sumsOf(carrier)?.acd_seconds
      return seconds == null ? absent : durationText(seconds)
    },
  }),
]

export function CarriersScreen() {
  const { data, problem, reload } = useView<Carrier[]>('/routing/carriers?limit=200', {
    everyMs: 10_000,
  })
  const period = address.value.query['period'] === 'day' ? 'day' : 'hour'
  const sums = useResource(
    `carrier sums of the ${period}`,
    () => {
      const end = now()
      const query = new URLSearchParams({
        start_date: new Date(end - periods[period]).toISOString(),
        end_date: new Date(end).toISOString(),
      })
      return may('cdrs:read')
        ? get<CarrierSums[]>(`/reports/carriers?${query.toString()}`)
        : Promise.resolve({ kind: 'ok' as const, data: [], meta: undefined })
    },
    { everyMs: 30_000 },
  )
  const byName = new Map(sums.data.value?.map(({ carrier, outbound }) => [carrier, outbound]))
  return (
    <List
      label="Carriers"
      about="The telephone companies that take calls, and those from which calls come."
      rows={data.value}
      columns={columnsWith(({ name }) => byName.get(name))}
      keyOf={({ id }) => id}
      empty="There is no carrier yet."
      problem={problem.value ?? sums.problem.value}
      reload={reload}
      isWritable={may('carriers:write')}
      create={createOf(carrierNoun)}
      filters={
        <Choice
          label="Calls of the last"
          name="period"
          value={period}
          options={words(...Object.keys(periods))}
          onChange={(value) => setQuery({ period: value })}
        />
      }
    />
  )
}
