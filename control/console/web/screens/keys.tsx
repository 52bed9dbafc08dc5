/** Application keys: who uses them, rotated, suspended and revoked. */
import { useSignal } from '@preact/signals'
import { get, send } from '../api/api.ts'
import type { ApplicationKey, WithToken } from '../api/views.ts'
import { pathOf } from '../parts/address.ts'
import { may } from '../api/session.ts'
import { Dialog } from '../parts/dialog.tsx'
import { figureText } from '../parts/format.ts'
import { useResource } from '../parts/resource.ts'
import { Table, type ShownColumn } from '../parts/table.tsx'
import { Badge, Moment, Problem, Text } from '../parts/text.tsx'

const MAX_KEYS = 200

const columns: readonly ShownColumn<ApplicationKey>[] = [
  {
    name: 'name',
    title: 'Name',
    value: (key) => key.name,
    show: (key) => (
      <a href={pathOf('keys', key.uuid)}>
        <Text value={key.name} max={60} />
      </a>
    ),
  },
  {
    name: 'prefix',
    title: 'Starts with',
    value: (key) => key.key_prefix,
    isMinor: true,
    show: (key) => <code>{key.key_prefix}…</code>,
  },
  {
    name: 'state',
    title: 'State',
    value: (key) => key.state,
    show: (key) => <Badge tone={key.state === 'active' ? 'good' : 'plain'}>{key.state}</Badge>,
  },
  {
    name: 'scopes',
    title: 'Scopes',
    value: (key) => key.scopes.join(' '),
    isMinor: true,
    show: (key) => <Text value={key.scopes.join(', ')} max={60} />,
  },
  {
    name: 'tenant',
    title: 'Tenant',
    value: (key) => key.tenant_slug,
    isMinor: true,
    show: (key) => <Text value={key.tenant_slug ?? 'all'} />,
  },
  {
    name: 'used',
    title: 'Last used',
    value: (key) => key.last_used_at,
    show: (key) => <Moment at={key.last_used_at} />,
  },
  {
    name: 'requests',
    title: 'Requests',
    value: (key) => key.request_count,
    isFigure: true,
    show: (key) => figureText(key.request_count),
  },
  {
    name: 'expires',
    title: 'Expires',
    value: (key) => key.expires_at,
    isMinor: true,
    show: (key) => <Moment at={key.expires_at} />,
  },
]

interface Asked {
  readonly key: ApplicationKey
  readonly what: 'rotate' | 'suspend' | 'resume' | 'revoke'
}

export function KeysScreen() {
  const keys = useResource(
    'keys',
    () => get<ApplicationKey[]>(`/application-keys?limit=${MAX_KEYS}`),
    {
      everyMs: 10_000,
    },
  )
  const asked = useSignal<Asked | undefined>(undefined)
  const token = useSignal<string | undefined>(undefined)
  const ask = (key: ApplicationKey, what: Asked['what']) => () => (asked.value = { key, what })
  const actions: ShownColumn<ApplicationKey> = {
    name: 'actions',
    title: 'Actions',
    value: () => null,
    show: (key) =>
      key.state !== 'revoked' && (
        <span class="buttons">
          <button type="button" onClick={ask(key, 'rotate')} aria-label={`Rotate ${key.name}`}>
            Rotate
          </button>
          {key.state === 'suspended' ? (
            <button type="button" onClick={ask(key, 'resume')} aria-label={`Resume ${key.name}`}>
              Resume
            </button>
          ) : (
            <button type="button" onClick={ask(key, 'suspend')} aria-label={`Suspend ${key.name}`}>
              Suspend
            </button>
          )}
          <button type="button" onClick={ask(key, 'revoke')} aria-label={`Revoke ${key.name}`}>
            Revoke
          </button>
        </span>
      ),
  }
  const close = () => {
    asked.value = undefined
    keys.reload()
  }
  return (
    <>
      <Problem message={keys.problem.value} />
      {token.value !== undefined && (
        <p class="notice" role="status">
          The new token, shown only now: <code class="token">{token.value}</code>{' '}
          <button type="button" onClick={() => (token.value = undefined)}>
            Done
          </button>
        </p>
      )}
      <Table
        label="Keys"
        rows={keys.data.value ?? []}
        columns={may('keys:write') ? [...columns, actions] : columns}
        keyOf={(key) => key.uuid}
        empty={keys.data.value === undefined ? 'Loading …' : 'There is no key.'}
      />
      {asked.value?.what === 'revoke' && (
        <Revoke key={asked.value.key.uuid} revoked={asked.value.key} onClose={close} />
      )}
      {(asked.value?.what === 'suspend' || asked.value?.what === 'resume') && (
        <Suspension
          key={asked.value.key.uuid}
          of={asked.value.key}
          what={asked.value.what}
          onClose={close}
        />
      )}
      {asked.value?.what === 'rotate' && (
        <Rotate
          rotated={asked.value.key}
          onToken={(made) => (token.value = made)}
          onClose={close}
        />
      )}
    </>
  )
}

function Revoke({ revoked, onClose }: { revoked: ApplicationKey; onClose: () => void }) {
  return (
    <Dialog
      title="Revoke this key?"
      action="Revoke"
      isDangerous
      onConfirm={() => send('DELETE', `/application-keys/${revoked.uuid}`)}
      onClose={onClose}
    >
      <p>
        Programs that use <Text value={revoked.name} max={60} /> are refused from their next request
        on. It cannot be undone.
      </p>
    </Dialog>
  )
}

interface SuspensionProps {
  readonly of: ApplicationKey
  readonly what: 'suspend' | 'resume'
  readonly onClose: () => void
}

function Suspension({ of: key, what, onClose }: SuspensionProps) {
  const isSuspended = what === 'resume'
  return (
    <Dialog
      title={isSuspended ? 'Resume this key?' : 'Suspend this key?'}
      action={isSuspended ? 'Resume' : 'Suspend'}
      isDangerous={!isSuspended}
      onConfirm={(form) =>
        send('POST', `/application-keys/${key.uuid}/${what}`, {
          reason: form.get('reason'),
        })
      }
      onClose={onClose}
    >
      <p>
        Requests of <Text value={key.name} max={60} />{' '}
        {isSuspended
          ? 'are accepted from now on, unless it is inactive or expired.'
          : 'are rejected from now on, until it is resumed.'}
      </p>
      <label>
        Reason <input name="reason" minLength={3} maxLength={500} required />
      </label>
    </Dialog>
  )
}

interface RotateProps {
  readonly rotated: ApplicationKey
  readonly onToken: (token: string) => void
  readonly onClose: () => void
}

function Rotate({ rotated, onToken, onClose }: RotateProps) {
  return (
    <Dialog
      title="Rotate this key?"
      action="Rotate"
      onConfirm={async (form) => {
        const path = `/application-keys/${rotated.uuid}/rotate`
        const hours = Number(form.get('hours'))
        const answer = await send<WithToken>('POST', path, { grace_seconds: hours * 3_600 })
        if (answer.kind === 'ok') onToken(answer.data.token ?? '')
        return answer
      }}
      onClose={onClose}
    >
      <p>
        <Text value={rotated.name} max={60} /> gets a new token.
      </p>
      <label>
        The old one stays valid for{' '}
        <input name="hours" type="number" min={0} max={720} step={1} defaultValue="24" required />{' '}
        hours
      </label>
    </Dialog>
  )
}
