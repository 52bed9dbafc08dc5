/** Endpoints of webhooks, and what became of each delivery. */
import { send } from '../api/api.ts'
import type { WebhookDelivery, WebhookEndpoint, WithSecret } from '../api/views.ts'
import { pathOf } from '../parts/address.ts'
import { address, setQuery } from '../parts/router.ts'
import { may } from '../api/session.ts'
import { Dialog } from '../parts/dialog.tsx'
import { textIn } from '../parts/form.ts'
import { figureText } from '../parts/format.ts'
import { Table, type ShownColumn } from '../parts/table.tsx'
import { Badge, Moment, Problem, Text } from '../parts/text.tsx'
import { actionsColumn, Choice, ShownOnce, useList, words } from './list.tsx'

const stateOf = ({ is_active, disabled_reason }: WebhookEndpoint): string => {
  if (is_active) return 'active'
  return disabled_reason === null ? 'inactive' : `switched off: ${disabled_reason}`
}

const columns: readonly ShownColumn<WebhookEndpoint>[] = [
  {
    name: 'url',
    title: 'Address',
    value: (endpoint) => endpoint.url,
    show: (endpoint) => (
      <a href={pathOf('webhooks', String(endpoint.id))}>
        <Text value={endpoint.url} max={80} />
      </a>
    ),
  },
  {
    name: 'state',
    title: 'State',
    value: stateOf,
    show: (endpoint) => (
      <Badge
        tone={endpoint.is_active ? 'good' : endpoint.disabled_reason === null ? 'plain' : 'bad'}
      >
        {stateOf(endpoint)}
      </Badge>
    ),
  },
  {
    name: 'events',
    title: 'Events',
    value: ({ events }) => events.join(' '),
    isMinor: true,
    show: ({ events }) => <Text value={events.join(', ')} max={80} />,
  },
  {
    name: 'description',
    title: 'Description',
    value: (each) => each.description,
    isMinor: true,
    show: (endpoint) => <Text value={endpoint.description} max={80} />,
  },
]

export function WebhooksScreen() {
  const list = useList<WebhookEndpoint>('/webhooks?limit=200')
  const { data, dialog, secret, close } = list
  const onSecret = (made: string) => (secret.value = made)
  const form = (endpoint?: WebhookEndpoint) => () => {
    dialog.value = <EndpointForm endpoint={endpoint} onSecret={onSecret} onClose={close} />
  }
  const actions = actionsColumn<WebhookEndpoint>(
    ({ url }) => url,
    (endpoint) => [
      { text: 'Change', open: form(endpoint) },
      {
        text: 'Rotate',
        open: () => {
          dialog.value = <Rotate endpoint={endpoint} onSecret={onSecret} onClose={close} />
        },
      },
      {
        text: 'Delete',
        open: () => void (dialog.value = <Delete endpoint={endpoint} onClose={close} />),
      },
    ],
  )
  const isWriter = may('webhooks:write')
  return (
    <>
      <Problem message={list.problem.value} />
      <ShownOnce what="The signing secret" secret={secret} />
      {isWriter && (
        <p>
          <button type="button" class="primary" onClick={form()}>
            New endpoint
          </button>
        </p>
      )}
      <Table
        label="Webhooks"
        rows={data.value ?? []}
        columns={isWriter ? [...columns, actions] : columns}
        keyOf={({ id }) => id}
        empty={data.value === undefined ? 'Loading …' : 'There is no endpoint.'}
      />
      {dialog.value}
    </>
  )
}

interface OfEndpoint {
  readonly endpoint: WebhookEndpoint
  readonly onClose: () => void
}

interface OnSecret {
  readonly onSecret: (secret: string) => void
}

const Rotate = ({ endpoint, onSecret, onClose }: OfEndpoint & OnSecret) => (
  <Dialog
    title="Rotate the secret?"
    action="Rotate"
    onConfirm={async (form) => {
      const overlap_seconds = Number(textIn(form, 'hours')) * 3_600
      const path = `/webhooks/${endpoint.id}/rotate`
      const answer = await send<WithSecret>('POST', path, { overlap_seconds })
      if (answer.kind === 'ok') onSecret(answer.data.secret)
      return answer
    }}
    onClose={onClose}
  >
    <label>
      Hours for which the old one signs, too
      <input name="hours" type="number" min={0} max={720} defaultValue="24" required />
    </label>
  </Dialog>
)

const Delete = ({ endpoint, onClose }: OfEndpoint) => (
  <Dialog
    title="Delete this endpoint?"
    action="Delete"
    isDangerous
    onConfirm={() => send('DELETE', `/webhooks/${endpoint.id}`)}
    onClose={onClose}
  >
    <p>
      <Text value={endpoint.url} max={80} /> gets nothing any more, and what waits for it is
      dropped.
    </p>
  </Dialog>
)

interface FormProps extends OnSecret {
  /** Undefined: a new one. */
  readonly endpoint: WebhookEndpoint | undefined
  readonly onClose: () => void
}

function EndpointForm({ endpoint, onSecret, onClose }: FormProps) {
  return (
    <Dialog
      title={endpoint === undefined ? 'New endpoint' : 'Change this endpoint'}
      action={endpoint === undefined ? 'Create' : 'Save'}
      onConfirm={async (form) => {
        const body = {
          url: textIn(form, 'url'),
          events: textIn(form, 'events').split(/[\s,]+/),
          description: textIn(form, 'description') || null,
          is_active: textIn(form, 'state') === 'active',
          approval_links: textIn(form, 'links') === 'yes',
        }
        if (endpoint !== undefined) return send('PATCH', `/webhooks/${endpoint.id}`, body)
        const answer = await send<WithSecret>('POST', '/webhooks', body)
        if (answer.kind === 'ok') onSecret(answer.data.secret)
        return answer
      }}
      onClose={onClose}
    >
      <label>
        Address
        <input name="url" type="url" required maxLength={2_000} defaultValue={endpoint?.url} />
      </label>
      <label>
        Events <small>(with commas; *: all)</small>
        <input
          name="events"
          required
          maxLength={500}
          defaultValue={endpoint?.events.join(', ') ?? '*'}
        />
      </label>
      <label>
        Description <small>(optional)</small>
        <input name="description" maxLength={500} defaultValue={endpoint?.description ?? ''} />
      </label>
      <label>
        State
        <Choice
          name="state"
          value={endpoint?.is_active === false ? 'inactive' : 'active'}
          options={words('active', 'inactive')}
        />
      </label>
      <label>
        Links to approve proposals
        <Choice
          name="links"
          value={endpoint?.approval_links === true ? 'yes' : 'no'}
          options={{ no: 'no', yes: 'yes: who gets one decides with your rights' }}
        />
      </label>
    </Dialog>
  )
}

const deliveryTones = { delivered: 'good', pending: 'warn', failed: 'bad' } as const

const deliveryColumns: readonly ShownColumn<WebhookDelivery>[] = [
  {
    name: 'at',
    title: 'Event of',
    value: (delivery) => delivery.created_at,
    show: (delivery) => <Moment at={delivery.created_at} />,
  },
  {
    name: 'type',
    title: 'Event',
    value: (delivery) => delivery.type,
    show: (delivery) => <Text value={delivery.type} max={60} />,
  },
  {
    name: 'state',
    title: 'State',
    value: (delivery) => delivery.state,
    show: ({ state }) => <Badge tone={deliveryTones[state]}>{state}</Badge>,
  },
  {
    name: 'status',
    title: 'Response',
    value: (delivery) => delivery.last_status,
    show: ({ last_status: status, last_error: error }) => (
      <Text value={status === null ? error : String(status)} max={80} />
    ),
  },
  {
    name: 'body',
    title: 'Body of the response',
    value: (delivery) => delivery.last_answer,
    isMinor: true,
    show: (delivery) => <Text value={delivery.last_answer} max={120} />,
  },
  {
    name: 'attempts',
    title: 'Attempts',
    value: (delivery) => delivery.attempts,
    isFigure: true,
    show: (delivery) => figureText(delivery.attempts),
  },
  {
    name: 'next',
    title: 'Next attempt',
    value: (delivery) => delivery.next_attempt_at,
    isMinor: true,
    show: (delivery) => <Moment at={delivery.next_attempt_at} />,
  },
]

const states = words('pending', 'delivered', 'failed')

export function WebhookScreen({ id }: { id: string }) {
  const path = `/webhooks/${encodeURIComponent(id)}`
  const asked = address.value.query['state'] ?? ''
  const filter = asked in states ? `&state=${asked}` : ''
  const list = useList<WebhookDelivery>(`${path}/deliveries?limit=200${filter}`)
  const { data, dialog, close } = list
  const actions = actionsColumn<WebhookDelivery>(
    ({ type }) => type,
    (delivery) => [
      {
        text: 'Send again',
        open: () => {
          dialog.value = (
            <Dialog
              title="Send this event again?"
              action="Send"
              onConfirm={() => send('POST', `${path}/deliveries/${delivery.id}/retry`)}
              onClose={close}
            >
              <p>Its receiver may get it twice: the event keeps its webhook-id.</p>
            </Dialog>
          )
        },
      },
    ],
  )
  const test = () => {
    dialog.value = (
      <Dialog
        title="Send a test event?"
        action="Send"
        onConfirm={() => send('POST', `${path}/test`)}
        onClose={close}
      >
        <p>An event webhook.test is sent; its delivery is on this list.</p>
      </Dialog>
    )
  }
  const isWriter = may('webhooks:write')
  return (
    <>
      <Problem message={list.problem.value} />
      {isWriter && (
        <p>
          <button type="button" class="primary" onClick={test}>
            Send a test
          </button>
        </p>
      )}
      <Table
        label="Deliveries"
        rows={data.value ?? []}
        columns={isWriter ? [...deliveryColumns, actions] : deliveryColumns}
        keyOf={(delivery) => delivery.id}
        empty={data.value === undefined ? 'Loading …' : 'There is no such delivery.'}
        filters={
          <label>
            State{' '}
            <select
              value={asked}
              onChange={(event) => setQuery({ state: event.currentTarget.value })}
            >
              {['', ...Object.keys(states)].map((each) => (
                <option key={each} value={each}>
                  {each || 'all'}
                </option>
              ))}
            </select>
          </label>
        }
      />
      {dialog.value}
    </>
  )
}
