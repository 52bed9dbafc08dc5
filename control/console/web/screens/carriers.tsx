/**
 * Carriers: whether they take calls now, the figures of past calls, and a test call through one.
 */
import { useSignal } from '@preact/signals'
import { get, getAll, send } from '../api/api.ts'
import { may } from '../api/session.ts'
import type { Carrier, CarrierSums, OutboundRoute, TestCall } from '../api/views.ts'
import { now } from '../api/browser.ts'
import { pathOf } from '../parts/address.ts'
import { figureColumn, textColumn } from '../parts/columns.tsx'
import { Dialog } from '../parts/dialog.tsx'
import { Choice, Field, textIn, words } from '../parts/form.tsx'
import { HOUR_MS, absent, durationText, figureText, unitText } from '../parts/format.ts'
import { List, Loaded } from '../parts/list.tsx'
import { useAsked } from '../parts/prefill.ts'
import { createOf, RowButtons } from '../parts/resource-screen.tsx'
import { useResource, useView } from '../parts/resource.ts'
import { address, go, setQuery } from '../parts/router.ts'
import { Table, type ShownColumn } from '../parts/table.tsx'
import { Facts, Moment, Problem, Text } from '../parts/text.tsx'
import { carrierNoun } from './carrier-form.ts'
import { distributionWords, routeColumns } from './route-columns.ts'
import { huntingText } from './simulation-words.ts'

const periods = { hour: HOUR_MS, day: 24 * HOUR_MS } as const

const stateOf = ({ is_active, status }: Carrier): string => {
  if (!is_active) return 'inactive'
  return status.is_usable ? 'usable' : 'not usable'
}

/** Tells the state; for a registration that failed, with the refusal. */
function registrationText({ registration, status }: Carrier): string | null {
  const refusal = status.registration?.last_answer
  return registration === 'failed' && refusal != null
    ? `failed: ${answerText(refusal)}`
    : registration
}

/** The status is 0 when no response came. */
const answerText = ({ status, reason }: { readonly status: number; readonly reason: string }) =>
  status === 0 ? reason : `${status} ${reason}`

/** Gateways that answer, of all. */
const answering = ({ gateways }: Carrier): string => {
  const active = gateways.filter(({ status }) => status?.state === 'active')
  return `${active.length} of ${gateways.length}`
}

const columnsWith = (
  sumsOf: (carrier: Carrier) => CarrierSums['outbound'] | undefined,
): readonly ShownColumn<Carrier>[] => [
  textColumn('name', 'Name', ({ name }) => name, { to: ({ id }) => pathOf('carriers', `${id}`) }),
  textColumn('state', 'State', stateOf, {
    tone: ({ is_active, status }) => (!is_active ? 'plain' : status.is_usable ? 'good' : 'bad'),
  }),
  textColumn('registration', 'Registration', registrationText, {
    tone: ({ registration }) =>
      registration === 'registered' ? 'good' : registration === 'failed' ? 'bad' : 'warn',
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
  textColumn('tenant', 'Tenant', ({ tenant }) => tenant, { isMinor: true, max: 64 }),
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
    <>
      <List
        label="Carriers"
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
    </>
  )
}

/** One carrier: its gateways as probed, and its registration. */
export function CarrierScreen({ id }: { id: string }) {
  const path = `/routing/carriers/${encodeURIComponent(id)}`
  const carrier = useView<Carrier>(path, { everyMs: 5_000 })
  return (
    <Loaded of={carrier}>
      {(shown) => <CarrierDetails carrier={shown} onChange={carrier.reload} />}
    </Loaded>
  )
}

interface CarrierProps {
  readonly carrier: Carrier
  readonly onChange: () => void
}

function CarrierDetails({ carrier, onChange }: CarrierProps) {
  const { registration } = carrier.status
  const answer = registration?.last_answer
  return (
    <>
      <h2>
        <Text value={carrier.name} />
      </h2>
      {may('calls:originate') && <TestCallButton carrier={carrier} />}
      {may('carriers:write') && (
        <RowButtons
          noun={carrierNoun}
          row={carrier}
          onChange={onChange}
          onRemove={() => go(pathOf('carriers'))}
        />
      )}
      <Facts
        of={{
          State: stateOf(carrier),
          Registration: carrier.registration ?? 'none is needed',
          Registrar: <Text value={registration?.registrar} />,
          'Last answer of the registrar': (
            <Text value={answer == null ? null : answerText(answer)} />
          ),
          'Registered until': <Moment at={registration?.expires_at ?? null} />,
          'Calls at once, at most':
            carrier.max_calls === 0 ? 'unlimited' : figureText(carrier.max_calls),
          'Its gateways share calls': distributionWords[carrier.distribution],
          'When it does not take a call': huntingText(carrier.hunting) || 'as usual',
        }}
      />
      <Table
        label="Gateways"
        rows={carrier.gateways}
        columns={gatewayColumns}
        keyOf={(gateway) => gateway.id}
        empty="The carrier has no gateway."
      />
      {may('routes:read') && <RoutesOf carrier={carrier} />}
    </>
  )
}

/** The routes that lead to it, with what its calls have shown. */
function RoutesOf({ carrier: { id } }: { carrier: Carrier }) {
  const { data, problem } = useResource(
    `routes of ${id}`,
    () => getAll<OutboundRoute>('/outbound-routes'),
    { everyMs: 10_000 },
  )
  const rows = data.value?.rows.filter(({ carrier_id: carrierId }) => carrierId === id)
  return (
    <>
      <h2>Outbound routes</h2>
      <Problem message={problem.value} />
      <Table
        label="Outbound routes"
        rows={rows}
        columns={routeColumns}
        keyOf={(route) => route.id}
        empty="No route leads to it."
      />
    </>
  )
}

type Gateway = Carrier['gateways'][number]

const gatewayColumns: readonly ShownColumn<Gateway>[] = [
  textColumn('place', 'Gateway', ({ transport, host, port }) => `${transport}/${host}:${port}`, {
    max: 80,
  }),
  textColumn('state', 'State', gatewayState, {
    tone: ({ status }) => (status == null ? 'plain' : status.state === 'active' ? 'good' : 'bad'),
  }),
  figureColumn('latency', 'Latency', ({ status }) => status?.latency_ms ?? null, {
    show: ({ status }) => unitText(status?.latency_ms, 'ms'),
  }),
  {
    name: 'answer',
    title: 'Last answer',
    value: ({ status }) => status?.last_probe?.status ?? null,
    show: ({ status }) => {
      const probe = status?.last_probe
      return <Text value={probe == null ? null : `${probe.status} ${probe.reason}`} max={60} />
    },
  },
  textColumn('use', 'Used for', useOf, { isMinor: true, show: useOf }),
]

function gatewayState({ status }: Gateway): string {
  if (status == null) return 'not probed'
  return status.state === 'active' ? 'answers' : 'does not answer'
}

function useOf({ inbound, outbound }: Gateway): string {
  return [outbound && 'calls to it', inbound && 'calls from it'].filter(Boolean).join(', ')
}

interface StartedCall {
  readonly extension: string
  readonly number: string
  readonly call: TestCall
}

/** Asks for a phone and a number, then says what happens. */
function TestCallButton({ carrier }: { carrier: Carrier }) {
  const asked = useAsked('test-call')
  const started = useSignal<StartedCall | undefined>(undefined)
  return (
    <>
      <p>
        <button type="button" class="primary" onClick={asked.open}>
          Test call
        </button>
      </p>
      <p role="status" class="done">
        {started.value && <Result {...started.value} />}
      </p>
      {asked.value && (
        <TestCallForm
          carrier={carrier}
          onStart={(call) => (started.value = call)}
          onClose={asked.close}
        />
      )}
    </>
  )
}

const Result = ({ extension, number, call }: StartedCall) => (
  <>
    The phone of <Text value={extension} max={40} /> rings now. When it is picked up, the carrier
    gets the call to <Text value={number} max={40} />, which ends after {call.max_seconds} s.{' '}
    <a href={pathOf('calls', call.call_uuid)}>What happens to the call</a>
  </>
)

interface TestCallFormProps {
  readonly carrier: Carrier
  readonly onStart: (started: StartedCall) => void
  readonly onClose: () => void
}

const TestCallForm = ({ carrier, onStart, onClose }: TestCallFormProps) => (
  <Dialog
    title="Place a test call?"
    action="Call"
    onConfirm={async (form) => {
      const [extension, number] = [textIn(form, 'extension'), textIn(form, 'number')]
      const domain = textIn(form, 'domain')
      const answer = await send<TestCall>('POST', `/routing/carriers/${carrier.id}/test-call`, {
        source_extension: extension,
        destination_number: number,
        ...(domain !== '' && { domain }),
      })
      if (answer.kind === 'ok') onStart({ extension, number, call: answer.data })
      return answer
    }}
    onClose={onClose}
  >
    <p>
      The call goes through <Text value={carrier.name} max={60} /> only, and is charged like any
      call of the extension.
    </p>
    <Field label="Extension" hint="rings first" name="extension" required maxLength={20} />
    <Field label="Number" name="number" required maxLength={40} />
    <Field label="Domain" hint="optional" name="domain" maxLength={253} />
  </Dialog>
)
