/** Staff accounts: who signs in here, and what each of them may do. */
import { freshId } from '../api/browser.ts'
import { useSignal } from '@preact/signals'
import { get, send } from '../api/api.ts'
import { isGlobal, may, session } from '../api/session.ts'
import type { SignInPolicy, UserAccount } from '../api/views.ts'
import { textColumn } from '../parts/columns.tsx'
import { enteredIn } from '../parts/form.tsx'
import type { Action } from '../parts/list.tsx'
import { ResourceScreen, type ScreenNoun } from '../parts/resource-screen.tsx'
import { saveForm, SchemaFields, type SchemaForm } from '../parts/forms.tsx'
import { useResource } from '../parts/resource.ts'
import { Moment, Problem, Text } from '../parts/text.tsx'

const roles: Readonly<Record<string, string>> = {
  admin: 'administrator: everything',
  operator: 'operator: reads everything, handles calls and nodes',
  auditor: 'auditor: reads everything, changes nothing',
}

const form: SchemaForm = {
  path: '/users',
  names: ['username', 'role', 'tenant_slug', 'is_active'],
  labels: {
    username: 'User name',
    tenant_slug: 'Tenant',
    role: 'Role',
    is_active: 'May sign in',
  },
  hints: {
    username: 'Letters, digits and . _ @ + -',
    tenant_slug: 'None: the user sees the whole platform.',
  },
  words: { role: roles },
}

const newForm: SchemaForm = {
  ...form,
  generated: ['password'],
  names: ['username', 'password', 'role', 'tenant_slug', 'is_active'],
  hints: { ...form.hints, password: 'At least 8 characters. Empty: one is generated.' },
}

const noun: ScreenNoun<UserAccount> = {
  one: 'user',
  many: 'Users',
  scope: 'users',
  about: 'People who sign in to this console. Programs have keys instead.',
  effect: 'The user is signed out and cannot sign in any more. It cannot be undone.',
  nameOf: ({ username }) => username,
  columns: [
    textColumn('username', 'User name', ({ username }) => username, {
      max: 40,
      second: (user) => (
        <>
          since <Moment at={user.created_at} />
        </>
      ),
    }),
    textColumn('role', 'Role', ({ role }) => role, {
      also: (user) => user.tenant_slug,
      second: (user) => (
        <Text value={user.tenant_slug === null ? 'all tenants' : `tenant ${user.tenant_slug}`} />
      ),
    }),
    textColumn('state', 'State', ({ is_active }) => (is_active ? 'active' : 'may not sign in'), {
      tone: ({ is_active }) => (is_active ? 'good' : 'plain'),
    }),
    textColumn('factor', 'Second factor', (user) => (user.has_second_factor ? 'on' : 'off'), {
      tone: (user) => (user.has_second_factor ? 'good' : 'plain'),
    }),
  ],
  form,
}

const create: Action = {
  text: 'New user',
  title: 'New user',
  confirm: 'Create',
  ask: <SchemaFields form={newForm} row={undefined} />,
  onConfirm: async (entered, onSecret) => {
    if (enteredIn(entered, 'password') !== '') return saveForm(newForm, entered, undefined)
    const password = freshId()
    const answer = await saveForm(newForm, entered, undefined, { password })
    if (answer.kind === 'ok') onSecret(password)
    return answer
  },
}

const newPassword = (user: UserAccount): Action => ({
  text: 'New password',
  title: 'Set a new password?',
  confirm: 'Set',
  isDangerous: true,
  ask: (
    <p>
      <Text value={user.username} max={64} /> is signed out, and signs in with the new password,
      which is shown once.
    </p>
  ),
  onConfirm: async (_form, onSecret) => {
    const password = freshId()
    const answer = await send('PATCH', `/users/${user.id}`, { password })
    if (answer.kind === 'ok') onSecret(password)
    return answer
  },
})

const resetFactor = (user: UserAccount): Action => ({
  text: 'Reset second factor',
  title: 'Remove the second factor?',
  confirm: 'Remove',
  isDangerous: true,
  ask: (
    <p>
      <Text value={user.username} max={64} /> is signed out. The password alone opens a session
      then, until the user sets up another one.
    </p>
  ),
  onConfirm: () => send('DELETE', `/users/${user.id}/second-factor`),
})

const endSessions = (user: UserAccount): Action => ({
  text: 'Sign out',
  title: 'End all sessions?',
  confirm: 'End',
  isDangerous: true,
  ask: (
    <p>
      <Text value={user.username} max={64} /> has to sign in again, everywhere.
    </p>
  ),
  onConfirm: () => send('DELETE', `/users/${user.id}/sessions`),
})

const actionsOf = (user: UserAccount): readonly Action[] => [
  newPassword(user),
  endSessions(user),
  ...(user.has_second_factor ? [resetFactor(user)] : []),
]

const isMyself = ({ id }: UserAccount): boolean =>
  session.value.kind === 'signed-in' && session.value.user.id === id

/** The sign-in policy of all users. */
function Policy() {
  const { data, reload } = useResource('policy', () => get<SignInPolicy>('/sign-in-policy'))
  const problem = useSignal<string | undefined>(undefined)
  const change = async (isRequired: boolean): Promise<void> => {
    const body = { is_second_factor_required: isRequired }
    const answer = await send('PUT', '/sign-in-policy', body)
    problem.value = answer.kind === 'failed' ? answer.message : undefined
    reload()
  }
  return (
    <>
      <label>
        <input
          type="checkbox"
          checked={data.value?.is_second_factor_required === true}
          disabled={data.value === undefined || !may('users:write')}
          onChange={(event) => void change(event.currentTarget.checked)}
        />{' '}
        A second factor is required of {isGlobal() ? 'users of the platform' : 'all users'}; whoever
        has none sets it up at the next sign-in.
      </label>
      <Problem message={problem.value} />
    </>
  )
}

export const UsersScreen = () => (
  <ResourceScreen
    noun={noun}
    create={create}
    secretName="The password"
    actions={(user) => (isMyself(user) ? [] : actionsOf(user))}
  >
    <Policy />
  </ResourceScreen>
)
