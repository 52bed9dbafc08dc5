/**
 * How a key is made and changed: what it may do, of which tenant it is, from where and how long it
 * is valid.
 */
import { useSignal } from '@preact/signals'
import { session } from '../api/session.ts'
import type { ApplicationKey, WithToken } from '../api/views.ts'
import { useFieldProblem } from '../parts/field-problems.ts'
import { FieldProblem, textIn } from '../parts/form.tsx'
import type { Action } from '../parts/list.tsx'
import { saveForm, SchemaFields, type SchemaForm } from '../parts/forms.tsx'

export const keyForm: SchemaForm = {
  path: '/application-keys',
  names: ['name'],
  more: [
    'kind',
    'tenant_slug',
    'domain',
    'expires_at',
    'allowed_ips',
    'rate_limit_rpm',
    'description',
    'is_active',
  ],
  labels: {
    kind: 'Used by',
    tenant_slug: 'Tenant',
    domain: 'Only extensions of the SIP domain',
    expires_at: 'Valid until',
    allowed_ips: 'Allowed addresses',
    rate_limit_rpm: 'Requests a minute, at most',
    is_active: 'In use',
  },
  hints: {
    kind: 'It decides how the token begins.',
    tenant_slug: 'None: it sees the whole platform.',
    domain: 'Empty: those of all its domains.',
    expires_at: 'Empty: it stays valid.',
    allowed_ips: 'One a line, such as 203.0.113.0/24. Empty: any address.',
    rate_limit_rpm: 'Empty: 1200.',
  },
  words: {
    kind: {
      sbc: 'a program (sbc_live_…)',
      pbx: 'a PBX (ak_…)',
      billing: 'a billing system (bill_…)',
    },
  },
}

export const createKey: Action = {
  text: 'New key',
  title: 'New key',
  confirm: 'Create',
  ask: (
    <SchemaFields form={keyForm} row={undefined}>
      <Scopes chosen={['*:read']} />
    </SchemaFields>
  ),
  onConfirm: async (entered, onSecret) => {
    const isOfTenant = textIn(entered, 'tenant_slug') !== ''
    const answer = await saveForm<WithToken>(keyForm, entered, undefined, {
      scopes: entered.getAll('scopes'),
      ...(isOfTenant && { tenant_scope: 'tenant' }),
    })
    if (answer.kind === 'ok') onSecret(answer.data.token ?? '')
    return answer
  },
}

export const changeKey = (key: ApplicationKey): Action => ({
  text: 'Change',
  title: 'Change this key',
  confirm: 'Save',
  ask: (
    <SchemaFields form={keyForm} row={key}>
      <Scopes chosen={key.scopes} />
    </SchemaFields>
  ),
  onConfirm: (entered) => {
    const scopes = entered.getAll('scopes')
    const isSame =
      scopes.length === key.scopes.length && key.scopes.every((label) => scopes.includes(label))
    return saveForm(keyForm, entered, key, isSame ? {} : { scopes })
  },
})

/** Names the subject of a scope, where the scope is not a word of people. */
const subjects: Readonly<Record<string, string>> = {
  cdrs: 'call records',
  dispatcher: 'dispatcher sets and nodes',
  routes: 'routes',
  rates: 'rate plans and rates',
  wallets: 'wallets: money of customers',
  metrics: 'figures',
  audit: 'audit log and changes',
  agents: 'AI agents',
  mcp: 'tools for AI agents',
  ocs: 'charging by other systems',
  guard: 'bans and spend guards',
}

const actions: Readonly<Record<string, string>> = {
  read: 'see',
  write: 'change',
  originate: 'place',
  control: 'hang up and transfer',
  spy: 'listen in',
  record: 'record',
  reload: 'reload',
  listen: 'listen',
  delete: 'delete',
  view: 'see',
  propose: 'propose changes',
}

/**
 * `calls` with `calls:read`, `calls:write` … in the order of the API; those that the user may give
 * away.
 */
function bySubject(labels: readonly string[]): ReadonlyMap<string, readonly string[]> {
  const found = new Map<string, string[]>()
  for (const label of labels) {
    const [subject = ''] = label.split(':')
    found.set(subject, [...(found.get(subject) ?? []), label])
  }
  return found
}

const everything = '*'
const reading = '*:read'

/**
 * A checkbox for each scope; `chosen` are those of the key, of which some may be wider than a
 * checkbox.
 */
function Scopes({ chosen }: { chosen: readonly string[] }) {
  const held = session.value.kind === 'signed-in' ? session.value.user.permissions : []
  const isAdmin = held.includes('keys:write') && held.includes('users:write')
  const wide = [...(isAdmin ? [everything] : []), reading]
  const others = chosen.filter((label) => !held.includes(label) && !wide.includes(label))
  const problem = useFieldProblem('scopes')
  const isAll = useSignal(chosen.includes(everything))
  return (
    <fieldset class="rows">
      <legend>What it may do</legend>
      <Scope label={reading} isChosen={chosen.includes(reading)} text="see everything" />
      {isAdmin && (
        <label class="flag">
          <input
            type="checkbox"
            name="scopes"
            value={everything}
            defaultChecked={isAll.value}
            onChange={(event) => (isAll.value = event.currentTarget.checked)}
          />{' '}
          everything, as an administrator
        </label>
      )}
      {others.map((label) => (
        <Scope key={label} label={label} isChosen text={label} />
      ))}
      {/* Each is a part of everything. */}
      <details
        class="more"
        hidden={isAll.value}
        open={chosen.some((label) => held.includes(label))}
      >
        <summary>Single rights</summary>
        <div class="scopes">
          {[...bySubject(held)].map(([subject, labels]) => (
            <div key={subject} role="group" aria-label={subjects[subject] ?? subject}>
              <span>{subjects[subject] ?? subject}</span>
              {labels.map((label) => (
                <Scope
                  key={label}
                  label={label}
                  isChosen={chosen.includes(label)}
                  text={actions[label.split(':')[1] ?? ''] ?? label}
                />
              ))}
            </div>
          ))}
        </div>
      </details>
      <FieldProblem name="scopes" text={problem} />
    </fieldset>
  )
}

interface ScopeProps {
  readonly label: string
  readonly text: string
  readonly isChosen: boolean
}

const Scope = ({ label, text, isChosen }: ScopeProps) => (
  <label class="flag">
    <input type="checkbox" name="scopes" value={label} defaultChecked={isChosen} /> {text}
  </label>
)
