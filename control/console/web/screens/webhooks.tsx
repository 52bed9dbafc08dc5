/** Endpoints of webhooks, and what became of each delivery. */
import { send } from '../api/api.ts'
import { may } from '../api/session.ts'
import type { WebhookDelivery, WebhookEndpoint } from '../api/views.ts'
import { pathOf } from '../parts/address.ts'
import { figureColumn, momentColumn, textColumn } from '../parts/columns.tsx'
import { useFieldProblem } from '../parts/field-problems.ts'
import { Choice, Field, FieldProblem, Filter, textIn, withAll, words } from '../parts/form.tsx'
import { ListScreen, Loaded, type Action } from '../parts/list.tsx'
import { manyOf } from '../parts/many-of.ts'
import { useFilled } from '../parts/prefill.ts'
import { address } from '../parts/router.ts'
import { removeForm } from '../parts/forms.tsx'
import { savePlain, seenIn } from '../parts/save-row.ts'
import { rotation, sendForSecret } from '../parts/signing-secret.tsx'
import { PageHead } from '../parts/page-head.tsx'
import { useView } from '../parts/resource.ts'
import type { ShownColumn } from '../parts/table.tsx'
import { Moment, Text } from '../parts/text.tsx'

const stateOf = ({ is_active, disabled_reason }: WebhookEndpoint): string => {
  if (is_active) return 'active'
  return disabled_reason === null ? 'inactive' : `switched off: ${disabled_reason}`
}

const toneOf = ({ is_active, disabled_reason }: WebhookEndpoint) =>
  is_active ? 'good' : disabled_reason === null ? 'plain' : 'bad'

const eventsText = ({ events: chosen }: WebhookEndpoint): string =>
  chosen.includes('*') ? 'all' : chosen.join(', ')

const columns: readonly ShownColumn<WebhookEndpoint>[] = [
  textColumn('url', 'Address', ({ url }) => url, {
    max: 80,
    to: ({ id }) => pathOf('webhooks', String(id)),
    also: ({ description }) => description,
    second: ({ description }) => description !== null && <Text value={description} max={80} />,
  }),
  textColumn('state', 'State', stateOf, {
    tone: toneOf,
  }),
  textColumn('events', 'Events', eventsText, { isMinor: true, max: 80 }),
]

const labels = { url: 'Address', is_active: 'Active', approval_links: 'Links to approve proposals' }
const form = { path: '/webhooks', labels }

const manyEndpoints = {
  one: 'endpoint',
  many: 'Endpoints',
  form,
  effect: 'They get nothing any more, and what waits for them is dropped.',
}

export const WebhooksScreen = () => (
  <ListScreen<WebhookEndpoint>
    label="Webhooks"
    about="Addresses that are told what happens."
    path="/webhooks?limit=200"
    columns={columns}
    keyOf={({ id }) => id}
    empty="There is no endpoint."
    isWritable={may('webhooks:write')}
    secretName="The signing secret"
    create={create}
    nameOf={({ url }) => url}
    actions={actionsOf}
    many={(rows) => manyOf(manyEndpoints, rows)}
  />
)

function eventsIn(form: FormData): readonly string[] {
  const chosen = form.getAll('events').map(String)
  return chosen.includes('*') ? ['*'] : chosen
}

const bodyOf = (form: FormData) => ({
  url: textIn(form, 'url'),
  events: eventsIn(form),
  description: textIn(form, 'description') || null,
  is_active: textIn(form, 'state') === 'active',
  approval_links: textIn(form, 'links') === 'yes',
})

const create: Action = {
  text: 'New endpoint',
  title: 'New endpoint',
  confirm: 'Create',
  ask: <EndpointFields endpoint={undefined} />,
  onConfirm: (form, onSecret) => sendForSecret('/webhooks', bodyOf(form), onSecret),
}

const actionsOf = (endpoint: WebhookEndpoint): readonly Action[] => [
  {
    text: 'Change',
    title: 'Change this endpoint',
    confirm: 'Save',
    ask: <EndpointFields endpoint={endpoint} />,
    onConfirm: (form) =>
      savePlain(`/webhooks/${endpoint.id}`, form, { ...endpoint }, bodyOf(form), { labels }),
  },
  rotation(`/webhooks/${endpoint.id}`),
  {
    text: 'Delete',
    title: 'Delete this endpoint?',
    isDangerous: true,
    ask: (
      <p>
        <Text value={endpoint.url} max={80} /> gets nothing any more, and what waits for it is
        dropped.
      </p>
    ),
    onConfirm: (entered) => removeForm(form, endpoint, seenIn(entered)),
  },
]

/** Meanings of the events, by their names. */
const events: Readonly<Record<Exclude<WebhookEndpoint['events'][number], '*'>, string>> = {
  'call.authorized': 'a call may begin',
  'call.denied': 'a call was refused',
  'call.answered': 'a call was answered',
  'call.ended': 'a call is over, with its cost',
  'call.below_margin': 'a call earns less than it should',
  'recording.ready': 'a recording can be listened to',
  'wallet.topped_up': 'money was added',
  'wallet.low_balance': 'a balance is low',
  'wallet.depleted': 'a wallet is empty',
  'wallet.adjusted': 'money was moved by hand',
  'dispatcher.node.down': 'a PBX node is out of service',
  'dispatcher.node.up': 'a PBX node is back',
  'node.lost': 'an instance is silent',
  'node.recovered': 'an instance is back',
  'node.fenced': 'another process has the name of an instance',
  'key.revoked': 'a key was revoked',
  'proposal.created': 'an agent proposes a change',
  'proposal.decided': 'a proposal was decided on',
  'payment.alert': 'a payment was not credited, or was taken back',
  'rerating.completed': 'past calls were priced anew',
  'carrier.down': 'a carrier is out of service: by hand, silent, or of low quality',
  'carrier.up': 'a carrier is back',
  'registration.lost': 'phones, or our registration at a carrier, are lost',
  'finding.opened': 'something was found on Now',
  'finding.closed': 'a finding is over',
}

function EventChoices({ chosen }: { chosen: readonly string[] }) {
  const filled = useFilled('events')?.split(/[\s,]+/) ?? chosen
  return (
    <fieldset class="choices">
      <legend>Events</legend>
      {Object.entries({ '*': 'all of them, and those of later versions', ...events }).map(
        ([name, text]) => (
          <label key={name} class="flag">
            <input
              type="checkbox"
              name="events"
              value={name}
              defaultChecked={filled.includes(name)}
            />{' '}
            {text} <code>{name}</code>
          </label>
        ),
      )}
      <FieldProblem name="events" text={useFieldProblem('events')} />
    </fieldset>
  )
}

/** `endpoint`: undefined for a new one. */
function EndpointFields({ endpoint }: { endpoint: WebhookEndpoint | undefined }) {
  return (
    <>
      <Field
        label="Address"
        name="url"
        type="url"
        required
        maxLength={2_000}
        defaultValue={endpoint?.url}
      />
      <EventChoices chosen={endpoint?.events ?? ['*']} />
      <Field
        label="Description"
        hint="optional"
        name="description"
        maxLength={500}
        defaultValue={endpoint?.description ?? ''}
      />
      <Choice
        label="State"
        name="state"
        value={endpoint?.is_active === false ? 'inactive' : 'active'}
        options={words('active', 'inactive')}
      />
      <Choice
        label="Links to approve proposals"
        name="links"
        value={endpoint?.approval_links === true ? 'yes' : 'no'}
        options={{ no: 'no', yes: 'yes: who gets one decides with your rights' }}
      />
    </>
  )
}

const deliveryTones = { delivered: 'good', pending: 'warn', failed: 'bad' } as const

const deliveryColumns: readonly ShownColumn<WebhookDelivery>[] = [
  textColumn('at', 'Event', (delivery) => delivery.created_at, {
    also: ({ type }) => type,
    show: (delivery) => <Moment at={delivery.created_at} />,
    second: ({ type }) => <Text value={type} max={60} />,
  }),
  textColumn('state', 'State', ({ state }) => state, { tone: ({ state }) => deliveryTones[state] }),
  {
    name: 'status',
    title: 'Response',
    value: (delivery) => delivery.last_status,
    show: ({ last_status: status, last_error: error }) => (
      <Text value={status === null ? error : String(status)} max={60} />
    ),
    second: (delivery) => <Text value={delivery.last_answer} max={60} />,
  },
  figureColumn('attempts', 'Attempts', ({ attempts }) => attempts, { isMinor: true }),
  momentColumn('next', 'Next attempt', (each) => each.next_attempt_at, { isMinor: true }),
]

const states = words('pending', 'delivered', 'failed')

const REFRESH_MS = 10_000

export function WebhookScreen({ id }: { id: string }) {
  const path = `/webhooks/${encodeURIComponent(id)}`
  const endpoint = useView<WebhookEndpoint>(path, { everyMs: REFRESH_MS })
  return (
    <Loaded of={endpoint}>
      {(shown) => (
        <>
          <PageHead name={shown.url} state={[toneOf(shown), stateOf(shown)]} />
          <Deliveries path={path} />
        </>
      )}
    </Loaded>
  )
}

function Deliveries({ path }: { path: string }) {
  const asked = address.value.query['state'] ?? ''
  const filter = asked in states ? `&state=${asked}` : ''
  return (
    <ListScreen<WebhookDelivery>
      label="Deliveries"
      path={`${path}/deliveries?limit=200${filter}`}
      columns={deliveryColumns}
      keyOf={(delivery) => delivery.id}
      empty="Nothing was sent to it yet."
      filters={<Filter label="State" name="state" options={withAll(states)} />}
      isWritable={may('webhooks:write')}
      create={{
        text: 'Send a test',
        title: 'Send a test event?',
        confirm: 'Send',
        ask: <p>An event webhook.test is sent; its delivery is on this list.</p>,
        onConfirm: () => send('POST', `${path}/test`),
      }}
      nameOf={({ type }) => type}
      actions={(delivery) => [
        {
          text: 'Send again',
          title: 'Send this event again?',
          confirm: 'Send',
          ask: <p>Its receiver may get it twice: the event keeps its webhook-id.</p>,
          onConfirm: () => send('POST', `${path}/deliveries/${delivery.id}/retry`),
        },
      ]}
    />
  )
}
