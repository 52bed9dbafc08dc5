/** One carrier: its state and what to do about it, its day, gateways, prices, routes and calls. */
import { useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { getAll, send } from '../api/api.ts'
import { may } from '../api/session.ts'
import type { Carrier, OutboundRoute, TestCall } from '../api/views.ts'
import { pathOf } from '../parts/address.ts'
import { figureColumn, textColumn } from '../parts/columns.tsx'
import { Dialog } from '../parts/dialog.tsx'
import { Field, textIn } from '../parts/form.tsx'
import { figureText, unitText } from '../parts/format.ts'
import { Loaded } from '../parts/list.tsx'
import { useAsked } from '../parts/prefill.ts'
import { PageHead } from '../parts/page-head.tsx'
import { RowButtons } from '../parts/resource-screen.tsx'
import { useResource, useView } from '../parts/resource.ts'
import { go } from '../parts/router.ts'
import { Table, type ShownColumn } from '../parts/table.tsx'
import { Facts, Moment, Problem, Text } from '../parts/text.tsx'
import { CallsOf } from './calls-of.tsx'
import { carrierNoun } from './carrier-form.ts'
import { carrierState } from './carrier-state.ts'
import { ChangesOf } from './changes-of.tsx'
import { DayFigures } from './day-figures.tsx'
import { Advice, PlanLink } from './thing-parts.tsx'
import { distributionWords, routeColumns } from './route-columns.ts'
import { huntingText } from './simulation-words.ts'

export function CarrierScreen({ id }: { id: string }) {
  const carrier = useView<Carrier>(`/routing/carriers/${encodeURIComponent(id)}`, {
    everyMs: 5_000,
  })
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
  const started = useSignal<StartedCall | undefined>(undefined)
  const { id, name } = carrier
  const { tone, text, advice } = carrierState(carrier)
  return (
    <>
      <PageHead name={name} state={[tone, text]}>
        {may('carriers:write') && (
          <RowButtons
            noun={carrierNoun}
            row={carrier}
            onChange={onChange}
            onRemove={() => go(pathOf('carriers'))}
          />
        )}
        {may('calls:originate') && (
          <TestCallButton carrier={carrier} onStart={(call) => (started.value = call)} />
        )}
      </PageHead>
      <Advice tone={tone} text={advice} />
      <p role="status" class="done">
        {started.value && <Result {...started.value} />}
      </p>
      <DayFigures of={{ carrier: name }} margin={{ by: 'carrier', group: name }} />
      <h2>Set-up</h2>
      <CarrierFacts carrier={carrier} />
      <h2>Gateways</h2>
      <Table
        label="Gateways"
        rows={carrier.gateways}
        columns={gatewayColumns}
        keyOf={(gateway) => gateway.id}
        empty="The carrier has no gateway."
        isPart
      />
      <RoutesOf carrier={carrier}>
        <CallsOf by="carrier" text={name}>
          <ChangesOf kind="carrier" id={`${id}`} named={`the carrier ${name}`} />
        </CallsOf>
      </RoutesOf>
    </>
  )
}

const directionWords = { both: 'from it and to it', in: 'only from it', out: 'only to it' } as const

function CarrierFacts({ carrier }: { carrier: Carrier }) {
  const { registration, active_calls: live } = carrier.status
  const answer = registration?.last_answer
  const { customer, customer_id: payer, max_calls: most } = carrier
  return (
    <Facts
      of={{
        Registration: carrier.registration ?? 'none is needed',
        Registrar: registration !== null && <Text value={registration.registrar} />,
        'Last answer of the registrar': registration !== null && (
          <Text value={answer == null ? null : answerText(answer)} />
        ),
        'Registered until': registration !== null && <Moment at={registration.expires_at} />,
        Calls: directionWords[carrier.direction],
        'Live calls': `${figureText(live)} of ${most === 0 ? 'any number' : figureText(most)}`,
        'Its prices': <PlanLink name={carrier.rate_plan} id={carrier.rate_plan_id} />,
        'Calls from it are paid by':
          carrier.direction !== 'out' &&
          (payer === null ? (
            carrier.payer === 'from_number' ? (
              'the owner of the caller’s number'
            ) : (
              'nobody'
            )
          ) : (
            <a href={pathOf('customers', `${payer}`)}>
              <Text value={customer} max={60} />
            </a>
          )),
        'Its gateways share calls': distributionWords[carrier.distribution],
        'When it does not take a call': huntingText(carrier.hunting) || 'as usual',
        Tenant: <Text value={carrier.tenant ?? 'the platform'} />,
      }}
    />
  )
}

/** The status is 0 when no response came. */
const answerText = ({ status, reason }: { readonly status: number; readonly reason: string }) =>
  status === 0 ? reason : `${status} ${reason}`

interface RoutesProps {
  readonly carrier: Carrier
  /** Stands below: it is there when the routes are, so that nothing moves. */
  readonly children: ComponentChildren
}

/** The routes that lead to it, with what its calls have shown. */
function RoutesOf({ carrier: { id }, children }: RoutesProps) {
  const { data, problem } = useResource(
    `routes of ${id}`,
    () =>
      may('routes:read')
        ? getAll<OutboundRoute>('/outbound-routes')
        : Promise.resolve({ kind: 'ok' as const, data: noRoutes, meta: undefined }),
    { everyMs: 10_000 },
  )
  const rows = data.value?.rows.filter(({ carrier_id: carrierId }) => carrierId === id)
  return (
    <>
      {may('routes:read') && (
        <section>
          <h2>Outbound routes</h2>
          <Problem message={problem.value} />
          <Table
            label="Outbound routes"
            rows={rows}
            columns={routeColumns}
            keyOf={(route) => route.id}
            empty="No route leads to it."
            isPart
          />
        </section>
      )}
      {(rows !== undefined || problem.value !== undefined) && children}
    </>
  )
}

const noRoutes = { rows: [], total: 0 }

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
      return <Text value={probe == null ? null : answerText(probe)} max={60} />
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
function TestCallButton({ carrier, onStart }: Omit<TestCallFormProps, 'onClose'>) {
  const asked = useAsked('test-call')
  return (
    <>
      <button type="button" class="primary" onClick={asked.open}>
        Test call
      </button>
      {asked.value && <TestCallForm carrier={carrier} onStart={onStart} onClose={asked.close} />}
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
