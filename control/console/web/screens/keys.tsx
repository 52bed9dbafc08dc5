/**
 * Application keys: who uses them, rotated, suspended and revoked; and what one may do, from where,
 * how often.
 */
import { send } from '../api/api.ts'
import { may } from '../api/session.ts'
import type { ApplicationKey, KeyUsageView, WithToken } from '../api/views.ts'
import { pathOf } from '../parts/address.ts'
import { Sparkline } from '../parts/chart.tsx'
import { figureColumn, textColumn } from '../parts/columns.tsx'
import { Field, Reason, textIn } from '../parts/form.tsx'
import { figureText, plural } from '../parts/format.ts'
import { ListScreen, Loaded, type Action } from '../parts/list.tsx'
import { removeForm } from '../parts/forms.tsx'
import type { ManyRows } from '../parts/many-action.ts'
import { PageHead } from '../parts/page-head.tsx'
import { useView } from '../parts/resource.ts'
import { seenIn } from '../parts/save-row.ts'
import { Table, type ShownColumn } from '../parts/table.tsx'
import { Facts, Moment, Text } from '../parts/text.tsx'
import { changeKey, createKey, keyForm } from './key-form.tsx'

const columns: readonly ShownColumn<ApplicationKey>[] = [
  textColumn('name', 'Name', (key) => key.name, {
    to: ({ uuid }) => pathOf('keys', uuid),
    also: (key) => key.key_prefix,
    second: (key) => <code>{key.key_prefix}…</code>,
  }),
  textColumn('state', 'State', (key) => key.state, {
    tone: ({ state }) => (state === 'active' ? 'good' : 'plain'),
    second: (key) =>
      key.expires_at !== null && (
        <>
          until <Moment at={key.expires_at} />
        </>
      ),
  }),
  textColumn('scopes', 'Scopes', (key) => key.scopes.join(', '), {
    isMinor: true,
    show: ({ scopes }) => plural(scopes.length, 'scope'),
  }),
  textColumn('tenant', 'Tenant', (key) => key.tenant_slug, {
    isMinor: true,
    show: (key) => <Text value={key.tenant_slug ?? 'all'} />,
  }),
  textColumn('used', 'Last used', (key) => key.last_used_at, {
    show: (key) => <Moment at={key.last_used_at} />,
    second: (key) => plural(key.request_count, 'request'),
  }),
]

export const KeysScreen = () => (
  <ListScreen<ApplicationKey>
    label="Keys"
    path="/application-keys?limit=200"
    columns={columns}
    keyOf={({ uuid }) => uuid}
    empty="There is no key."
    isWritable={may('keys:write')}
    secretName="The new token"
    create={createKey}
    nameOf={({ name }) => name}
    actions={actionsOf}
    many={() => manyKeys}
    about={
      'Programs and AI agents use the API with a key. What a key may do is chosen when it is ' +
      'made, and can be changed later.'
    }
  />
)

const pathTo = ({ uuid }: ApplicationKey): string => `/application-keys/${uuid}`

/** Those in one of these states are left out. */
const sparedIn =
  (...states: readonly ApplicationKey['state'][]) =>
  (keys: readonly ApplicationKey[]) =>
    Promise.resolve(
      new Map(
        keys.flatMap((key): [ApplicationKey, string][] =>
          states.includes(key.state) ? [[key, `it is ${key.state}`]] : [],
        ),
      ),
    )

const manyKeys: ManyRows<ApplicationKey> = {
  one: 'key',
  many: 'keys',
  actions: [
    {
      text: 'Suspend',
      done: 'suspended',
      isDangerous: true,
      effect: 'their requests are rejected from now on, until they are resumed.',
      fields: <Reason />,
      spared: sparedIn('suspended', 'revoked'),
      send: (key, form) =>
        send('POST', `${pathTo(key)}/suspend`, { reason: textIn(form, 'reason') }),
    },
    {
      text: 'Resume',
      done: 'resumed',
      effect: 'their requests are accepted from now on, unless they are inactive or expired.',
      fields: <Reason />,
      spared: sparedIn('active', 'inactive', 'expired', 'revoked'),
      send: (key, form) =>
        send('POST', `${pathTo(key)}/resume`, { reason: textIn(form, 'reason') }),
    },
    {
      text: 'Revoke',
      done: 'revoked',
      isDangerous: true,
      effect:
        'programs that use them are refused from their next request on. It cannot be undone; ' +
        '“Suspend” can.',
      spared: sparedIn('revoked'),
      send: (key, _form, seen) => removeForm(keyForm, key, seen),
    },
  ],
}

function actionsOf(key: ApplicationKey): readonly Action[] {
  if (key.state === 'revoked') return []
  const path = pathTo(key)
  const name = <Text value={key.name} max={60} />
  const rotate: Action = {
    text: 'Rotate',
    title: 'Rotate this key?',
    ask: (
      <>
        <p>{name} gets a new token.</p>
        <Field
          label="Hours for which the old one stays valid"
          name="hours"
          type="number"
          min={0}
          max={720}
          defaultValue="24"
          required
        />
      </>
    ),
    onConfirm: async (form, onSecret) => {
      const answer = await send<WithToken>('POST', `${path}/rotate`, {
        grace_seconds: Number(textIn(form, 'hours')) * 3_600,
      })
      if (answer.kind === 'ok') onSecret(answer.data.token ?? '')
      return answer
    },
  }
  const suspend: Action = {
    text: 'Suspend',
    title: 'Suspend this key?',
    isDangerous: true,
    ask: (
      <>
        <p>Requests of {name} are rejected from now on, until it is resumed.</p>
        <Reason />
      </>
    ),
    onConfirm: (form) => send('POST', `${path}/suspend`, { reason: textIn(form, 'reason') }),
  }
  const resume: Action = {
    text: 'Resume',
    title: 'Resume this key?',
    ask: (
      <>
        <p>Requests of {name} are accepted from now on, unless it is inactive or expired.</p>
        <Reason />
      </>
    ),
    onConfirm: (form) => send('POST', `${path}/resume`, { reason: textIn(form, 'reason') }),
  }
  const revoke: Action = {
    text: 'Revoke',
    title: 'Revoke this key?',
    isDangerous: true,
    ask: (
      <p>Programs that use {name} are refused from their next request on. It cannot be undone.</p>
    ),
    onConfirm: (entered) => removeForm(keyForm, key, seenIn(entered)),
  }
  return [changeKey(key), rotate, key.state === 'suspended' ? resume : suspend, revoke]
}

const dayColumns: readonly ShownColumn<KeyUsageView['days'][number]>[] = [
  textColumn('date', 'Day (UTC)', ({ date }) => date, {
    show: ({ date }) => <time dateTime={date}>{date}</time>,
  }),
  figureColumn('requests', 'Requests', ({ requests }) => requests),
]

export function KeyScreen({ uuid }: { uuid: string }) {
  const path = `/application-keys/${encodeURIComponent(uuid)}`
  const options = { everyMs: 10_000 }
  const key = useView<ApplicationKey>(path, options)
  const usage = useView<KeyUsageView>(`${path}/usage`, options)
  // Both at once: nothing moves when the other one comes.
  return (
    <Loaded of={key}>
      {(shown) => <Loaded of={usage}>{({ days }) => <Key shown={shown} days={days} />}</Loaded>}
    </Loaded>
  )
}

const Key = ({ shown, days }: { shown: ApplicationKey; days: KeyUsageView['days'] }) => (
  <>
    <PageHead
      name={shown.name}
      state={[shown.state === 'active' ? 'good' : 'plain', shown.state]}
    />
    <Facts
      of={{
        Scopes: <Text value={shown.scopes.join(', ')} max={1_000} />,
        Tenant: <Text value={shown.tenant_slug ?? 'all'} />,
        'Allowed addresses': <Text value={shown.allowed_ips.join(', ') || 'all'} max={500} />,
        'Requests a minute, at most': figureText(shown.rate_limit_rpm),
        Owner: <Text value={shown.owner_username} />,
        'Last used': <Moment at={shown.last_used_at} />,
        'Requests of thirty days': (
          <>
            <Sparkline values={days.map(({ requests }) => requests)} />{' '}
            {figureText(days.reduce((sum, { requests }) => sum + requests, 0))}
          </>
        ),
      }}
    />
    <Table
      label="Requests by day"
      rows={days.toReversed()}
      columns={dayColumns}
      keyOf={({ date }) => date}
      empty="The key was not used."
    />
  </>
)
