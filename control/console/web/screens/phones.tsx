/** Extensions with the phones that are registered for them; made, changed and removed here. */
import { get, send } from '../api/api.ts'
import { isGlobal, may } from '../api/session.ts'
import type { ExtensionDetails } from '../api/views.ts'
import { freshId } from '../api/browser.ts'
import { pathOf } from '../parts/address.ts'
import { textColumn } from '../parts/columns.tsx'
import { enteredIn } from '../parts/form.tsx'
import { List, type Action } from '../parts/list.tsx'
import { manyOf } from '../parts/many-of.ts'
import { useResource } from '../parts/resource.ts'
import { address } from '../parts/router.ts'
import { seenIn } from '../parts/save-row.ts'
import { removeForm, saveForm, SchemaFields, type SchemaForm } from '../parts/forms.tsx'
import type { ShownColumn } from '../parts/table.tsx'
import { Facts, Text } from '../parts/text.tsx'
import { callerForm } from './caller-form.ts'
import type { ThingState } from './carrier-state.ts'
import { mediaForm } from './media-form.ts'

const contactsText = ({ contacts }: ExtensionDetails): string =>
  contacts.map(({ source, user_agent }) => `${source} ${user_agent}`).join(', ')

const columns: readonly ShownColumn<ExtensionDetails>[] = [
  textColumn('extension', 'Extension', (phone) => phone.extension, {
    max: 40,
    to: ({ id }) => pathOf('phones', `${id}`),
    also: ({ domain }) => domain,
    second: ({ domain }) => <Text value={domain} max={60} />,
  }),
  textColumn('name', 'Name', (phone) => phone.display_name, {
    max: 40,
    also: ({ customer }) => customer,
    second: ({ customer }) => customer !== null && <Text value={`paid by ${customer}`} max={50} />,
  }),
  textColumn('state', 'State', (phone) => phoneState(phone).text, {
    tone: (phone) => phoneState(phone).tone,
  }),
  textColumn('phones', 'Phones', contactsText, {
    show: ({ contacts }) => <Text value={contacts.map(({ source }) => source).join(', ')} />,
    second: ({ contacts }) =>
      contacts.length > 0 && (
        <Text value={contacts.map(({ user_agent }) => user_agent).join(', ')} max={60} />
      ),
  }),
]

/** An extension for an operator: whether it can be called, and what is missing. */
export function phoneState({ status, contacts, customer_id: payer }: ExtensionDetails): ThingState {
  if (status !== 'registered')
    return {
      tone: 'plain',
      text: 'unregistered',
      advice:
        'No phone is registered: it cannot be called. “Set up” has what to enter in the phone; ' +
        'a wrong password is counted under Bans.',
    }
  if (payer === null)
    return {
      tone: 'warn',
      text: 'registered',
      advice: 'No customer pays for it: it can make only calls that cost nothing.',
    }
  return { tone: 'good', text: contacts.length > 1 ? `${contacts.length} phones` : 'registered' }
}

const extensionForm: SchemaForm = {
  path: '/pbx/extensions',
  hasDetails: true,
  names: ['display_name', 'customer'],
  more: [
    'caller_number',
    ...callerForm.names,
    'email',
    'voicemail_enabled',
    'call_recording',
    ...mediaForm.names,
  ],
  labels: {
    ...mediaForm.labels,
    ...callerForm.labels,
    caller_number: 'Number outside',
    display_name: 'Name',
    email: 'E-mail',
    customer: 'Pays for its calls',
    domain: 'SIP domain',
    voicemail_enabled: 'Voicemail',
    call_recording: 'Recording',
  },
  hints: {
    ...mediaForm.hints,
    ...callerForm.hints,
    caller_number: 'Its calls show it outside. Empty: that of the customer.',
    extension: 'Two digits or more.',
    customer:
      'The customer whose wallet is charged. None: it can make only calls that cost nothing.',
    domain: 'Empty: the first one of the tenant.',
    password: 'At least 8 characters. Empty: one is generated.',
    call_recording: 'Where recording is set up.',
  },
  words: {
    ...mediaForm.words,
    ...callerForm.words,
    call_recording: { always: 'always', never: 'never', on_demand: 'on demand' },
  },
}

const newExtensionForm: SchemaForm = {
  ...extensionForm,
  generated: ['password'],
  required: ['tenant'],
  names: ['extension', 'display_name', 'tenant', 'customer'],
  more: ['domain', 'password', ...(extensionForm.more ?? [])],
}

/** `192.0.2.1:5060` by its transport, from `sip:192.0.2.1:5060;transport=udp`. */
const placeOf = (uri: string): string => {
  const [, place = uri, transport = ''] = /^sip:(.*);transport=(.*)$/.exec(uri) ?? []
  return `${place} (${transport.toUpperCase()})`
}

interface SetupProps {
  readonly phone: Pick<ExtensionDetails, 'extension' | 'domain' | 'registrars'>
}

/** Shows the values to enter in a phone. */
const PhoneSetup = ({ phone: { extension, domain, registrars } }: SetupProps) => (
  <>
    <p>Enter this in the phone:</p>
    <Facts
      of={{
        'User name': <code>{extension}</code>,
        'Domain, or SIP server': <code>{domain}</code>,
        'Outbound proxy': (
          <code>
            <Text value={registrars.map(placeOf).join(', ')} max={300} />
          </code>
        ),
      }}
    />
  </>
)

const manyPhones = {
  one: 'extension',
  many: 'Extensions',
  form: extensionForm,
  effect: 'They cannot be called any more, and their phones lose their registration.',
}

/** All extensions, or the one of the address. */
export function PhonesScreen() {
  const { item } = address.value
  const one = item === undefined ? undefined : encodeURIComponent(item)
  const path = '/pbx/extensions'
  const { data, problem, reload } = useResource(
    one ?? 'phones',
    async () => {
      if (one === undefined) return get<readonly ExtensionDetails[]>(`${path}/details?limit=200`)
      const answer = await get<ExtensionDetails>(`${path}/${one}/details`)
      return answer.kind === 'ok' ? { ...answer, data: [answer.data] } : answer
    },
    { everyMs: REFRESH_MS, events: /^registration$/ },
  )
  return (
    <List<ExtensionDetails>
      label="Phones"
      about="An extension is a number with a password, with which phones register."
      rows={data.value}
      problem={problem.value}
      reload={reload}
      columns={columns}
      keyOf={({ id }) => id}
      empty="There is no extension."
      isWritable={may('extensions:write')}
      secretName="The password"
      create={create()}
      nameOf={({ extension }) => extension}
      actions={actionsOf}
      many={one === undefined ? manyOf(manyPhones, data.value) : undefined}
    >
      {one !== undefined && (
        <p>
          <a href={pathOf('phones')}>All phones</a>
        </p>
      )}
    </List>
  )
}

const REFRESH_MS = 10_000

/** The actions on an extension. `onRemoved`: it is gone. */
export function actionsOf(
  phone: ExtensionDetails,
  onRemoved: () => void = () => undefined,
): readonly Action[] {
  const path = `/pbx/extensions/${phone.id}`
  const extension = <Text value={phone.extension} max={40} />
  const change: Action = {
    text: 'Change',
    title: 'Change this extension',
    confirm: 'Save',
    ask: <SchemaFields form={extensionForm} row={phone} />,
    onConfirm: (form) => saveForm(extensionForm, form, phone),
  }
  const setUp: Action = {
    text: 'Set up',
    title: 'Set up a phone',
    confirm: 'Done',
    ask: (
      <>
        <PhoneSetup phone={phone} />
        <p>The password was shown when it was set. “New password” sets another one.</p>
      </>
    ),
    onConfirm: () => Promise.resolve({ kind: 'ok', data: undefined, meta: undefined }),
  }
  const newPassword: Action = {
    text: 'New password',
    title: 'Set a new password?',
    confirm: 'Set',
    isDangerous: true,
    ask: <p>Phones of {extension} lose their registration until they have the new password.</p>,
    onConfirm: async (_form, onSecret) => {
      const password = freshId()
      const answer = await send('PATCH', path, { password })
      if (answer.kind === 'ok') onSecret(password, <PhoneSetup phone={phone} />)
      return answer
    },
  }
  const remove: Action = {
    text: 'Delete',
    title: 'Delete this extension?',
    isDangerous: true,
    ask: (
      <p>
        {extension} of <Text value={phone.domain} max={60} /> cannot be called any more.
      </p>
    ),
    done: 'The extension is deleted.',
    onConfirm: async (entered) => {
      const answer = await removeForm(extensionForm, phone, seenIn(entered))
      if (answer.kind === 'ok') onRemoved()
      return answer
    },
  }
  return [change, setUp, newPassword, remove]
}

/** Removes the registration of one phone. */
export const unregister = (
  { id }: ExtensionDetails,
  { uri, source, user_agent: agent }: ExtensionDetails['contacts'][number],
): Action => ({
  text: 'Unregister',
  title: 'Remove this registration?',
  confirm: 'Remove',
  isDangerous: true,
  done: 'The registration is removed.',
  ask: (
    <p>
      The phone <Text value={agent || source} max={60} /> at <Text value={source} max={60} /> does
      not ring until it registers again, which it may do by itself.
    </p>
  ),
  onConfirm: () =>
    send('DELETE', `/pbx/extensions/${id}/registrations?contact=${encodeURIComponent(uri)}`),
})

const create = (): Action => ({
  text: 'New extension',
  title: 'New extension',
  confirm: 'Create',
  ask: (
    <>
      {isGlobal() && (
        <p>An extension belongs to a tenant, which has the SIP domain of its phone.</p>
      )}
      <SchemaFields form={newExtensionForm} row={undefined} />
    </>
  ),
  onConfirm: async (form, onSecret) => {
    const password = enteredIn(form, 'password') || freshId()
    const answer = await saveForm<{ id: number }>(newExtensionForm, form, undefined, { password })
    if (answer.kind !== 'ok') return answer
    const made = await get<ExtensionDetails>(`/pbx/extensions/${answer.data.id}/details`)
    onSecret(password, made.kind === 'ok' && <PhoneSetup phone={made.data} />)
    return answer
  },
})
