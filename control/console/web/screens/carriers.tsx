/** Carriers: whether calls can go to them now, and what calls to them came to. */
import { get } from '../api/api.ts'
import type { Carrier, CarrierSums } from '../api/views.ts'
import { address, setQuery } from '../parts/router.ts'
import { may } from '../api/session.ts'
import { now } from '../browser.ts'
import { pathOf } from '../parts/address.ts'
import { durationText, figureText, unitText } from '../parts/format.ts'
import { useResource } from '../parts/resource.ts'
import { Table, type ShownColumn } from '../parts/table.tsx'
import { Badge, Fact, Moment, Problem, Text } from '../parts/text.tsx'
import { useList } from './list.tsx'
import { TestCallButton } from './test-call.tsx'

const HOUR_MS = 3_600_000
const periods = { hour: HOUR_MS, day: 24 * HOUR_MS } as const
type Period = keyof typeof periods

const stateOf = ({ is_active, status }: Carrier): string => {
  if (!is_active) return 'inactive'
  return status.is_usable ? 'usable' : 'not usable'
}

/** Gateways that answer, of all. */
const answering = ({ gateways }: Carrier): string => {
  const active = gateways.filter(({ status }) => status?.state === 'active')
  return `${active.length} of ${gateways.length}`
}

type Outbound = CarrierSums['outbound']

const columnsWith = (
  sumsOf: (carrier: Carrier) => Outbound | undefined,
): readonly ShownColumn<Carrier>[] => [
  {
    name: 'name',
    title: 'Name',
    value: (carrier) => carrier.name,
    show: (carrier) => (
      <a href={pathOf('carriers', String(carrier.id))}>
        <Text value={carrier.name} max={60} />
      </a>
    ),
  },
  {
    name: 'state',
    title: 'State',
    value: stateOf,
    show: (carrier) => (
      <Badge tone={!carrier.is_active ? 'plain' : carrier.status.is_usable ? 'good' : 'bad'}>
        {stateOf(carrier)}
      </Badge>
    ),
  },
  {
    name: 'registration',
    title: 'Registration',
    value: (carrier) => carrier.registration,
    show: ({ registration }) =>
      registration === null ? (
        <Text value={null} />
      ) : (
        <Badge tone={registration === 'registered' ? 'good' : 'warn'}>{registration}</Badge>
      ),
  },
  { name: 'gateways', title: 'Gateways that answer', value: answering, show: answering },
  {
    name: 'calls',
    title: 'Live calls',
    value: (carrier) => carrier.status.active_calls,
    isFigure: true,
    show: (carrier) => figureText(carrier.status.active_calls),
  },
  {
    name: 'attempts',
    title: 'Calls',
    value: (carrier) => sumsOf(carrier)?.calls ?? null,
    isFigure: true,
    show: (carrier) => figureText(sumsOf(carrier)?.calls ?? 0),
  },
  {
    name: 'asr',
    title: 'ASR',
    value: (carrier) => sumsOf(carrier)?.asr_percent ?? null,
    isFigure: true,
    show: (carrier) => unitText(sumsOf(carrier)?.asr_percent, '%'),
  },
  {
    name: 'acd',
    title: 'ACD',
    value: (carrier) => sumsOf(carrier)?.acd_seconds ?? null,
    isFigure: true,
    show: (carrier) => <Length seconds={sumsOf(carrier)?.acd_seconds} />,
  },
  {
    name: 'tenant',
    title: 'Tenant',
    value: (carrier) => carrier.tenant,
    isMinor: true,
    show: (carrier) => <Text value={carrier.tenant} />,
  },
]

const Length = ({ seconds }: { seconds: number | null | undefined }) => (
  <>{seconds == null ? figureText(null) : durationText(seconds)}</>
)

export function CarriersScreen() {
  const { data, problem } = useList<Carrier>('/routing/carriers?limit=200')
  const period: Period = address.value.query['period'] === 'day' ? 'day' : 'hour'
  const sums = useResource(
    `carrier sums of the ${period}`,
    () => {
      const end = now()
      const dates = { start_date: end - periods[period], end_date: end }
      const query = new URLSearchParams(
        Object.entries(dates).map(([name, at]) => [name, new Date(at).toISOString()]),
      )
      return may('cdrs:read')
        ? get<CarrierSums[]>(`/reports/carriers?${query.toString()}`)
        : Promise.resolve({ kind: 'ok' as const, data: [], meta: undefined })
    },
    { everyMs: 30_000 },
  )
  const byName = new Map(sums.data.value?.map(({ carrier, outbound }) => [carrier, outbound]))
  return (
    <>
      <Problem message={problem.value ?? sums.problem.value} />
      <Table
        label="Carriers"
        rows={data.value ?? []}
        columns={columnsWith(({ name }) => byName.get(name))}
        keyOf={(carrier) => carrier.id}
        empty={data.value === undefined ? 'Loading …' : 'There is no carrier.'}
        filters={
          <label>
            Calls of the last{' '}
            <select
              value={period}
              onChange={(event) => setQuery({ period: event.currentTarget.value })}
            >
              {Object.keys(periods).map((each) => (
                <option key={each} value={each}>
                  {each}
                </option>
              ))}
            </select>
          </label>
        }
      />
    </>
  )
}

/** One carrier: its gateways as probed, and its registration. */
export function CarrierScreen({ id }: { id: string }) {
  const path = `/routing/carriers/${encodeURIComponent(id)}`
  const { data, problem } = useResource(path, () => get<Carrier>(path), { everyMs: 5_000 })
  const carrier = data.value
  if (carrier === undefined)
    return problem.value === undefined ? (
      <p class="empty">Loading …</p>
    ) : (
      <Problem message={problem.value} />
    )
  const { registration } = carrier.status
  return (
    <>
      <Problem message={problem.value} />
      <h2>
        <Text value={carrier.name} />
      </h2>
      <TestCallButton carrier={carrier} />
      <dl class="facts">
        <Fact name="State">{stateOf(carrier)}</Fact>
        <Fact name="Registration">{carrier.registration ?? 'none is needed'}</Fact>
        <Fact name="Registrar">
          <Text value={registration?.registrar} />
        </Fact>
        <Fact name="Last answer of the registrar">
          <Text
            value={
              registration?.last_answer == null
                ? null
                : `${registration.last_answer.status} ${registration.last_answer.reason}`
            }
          />
        </Fact>
        <Fact name="Registered until">
          <Moment at={registration?.expires_at ?? null} />
        </Fact>
        <Fact name="Calls at once, at most">
          {carrier.max_calls === 0 ? 'unlimited' : figureText(carrier.max_calls)}
        </Fact>
      </dl>
      <Table
        label="Gateways"
        rows={carrier.gateways}
        columns={gatewayColumns}
        keyOf={(gateway) => gateway.id}
        empty="The carrier has no gateway."
      />
    </>
  )
}

type Gateway = Carrier['gateways'][number]

const placeOf = ({ transport, host, port }: Gateway): string => `${transport}/${host}:${port}`

const gatewayColumns: readonly ShownColumn<Gateway>[] = [
  {
    name: 'place',
    title: 'Gateway',
    value: placeOf,
    show: (gateway) => <Text value={placeOf(gateway)} max={80} />,
  },
  {
    name: 'state',
    title: 'State',
    value: ({ status }) => status?.state ?? 'not probed',
    show: ({ status }) => (
      <Badge tone={status == null ? 'plain' : status.state === 'active' ? 'good' : 'bad'}>
        {status == null ? 'not probed' : status.state === 'active' ? 'answers' : 'does not answer'}
      </Badge>
    ),
  },
  {
    name: 'latency',
    title: 'Latency',
    value: ({ status }) => status?.latency_ms ?? null,
    isFigure: true,
    show: ({ status }) => unitText(status?.latency_ms, 'ms'),
  },
  {
    name: 'answer',
    title: 'Last answer',
    value: ({ status }) => status?.last_probe?.status ?? null,
    show: ({ status }) => {
      const probe = status?.last_probe
      return <Text value={probe == null ? null : `${probe.status} ${probe.reason}`} max={60} />
    },
  },
  {
    name: 'use',
    title: 'Used for',
    value: ({ inbound, outbound }) => `${inbound} ${outbound}`,
    isMinor: true,
    show: ({ inbound, outbound }) =>
      [outbound && 'calls to it', inbound && 'calls from it'].filter(Boolean).join(', '),
  },
]
