/** Extensions with the phones that are registered for them; made, changed and removed here. */
import { send } from '../api/api.ts'
import { may } from '../api/session.ts'
import type { ExtensionDetails } from '../api/views.ts'
import { freshId } from '../api/browser.ts'
import { momentColumn, textColumn } from '../parts/columns.tsx'
import { Choice, textIn } from '../parts/form.tsx'
import { ListScreen, type Action } from '../parts/list.tsx'
import { saveForm, SchemaFields, type SchemaForm } from '../parts/schema-form.tsx'
import type { ShownColumn } from '../parts/table.tsx'
import { Text } from '../parts/text.tsx'

const contactsText = ({ contacts }: ExtensionDetails): string =>
  contacts.map(({ source, user_agent }) => `${source} ${user_agent}`).join(', ')

const columns: readonly ShownColumn<ExtensionDetails>[] = [
  textColumn('extension', 'Extension', (phone) => phone.extension, { max: 40 }),
  textColumn('domain', 'Domain', (phone) => phone.domain, { isMinor: true }),
  textColumn('name', 'Name', (phone) => phone.display_name),
  textColumn('state', 'State', (phone) => phone.status, {
    tone: ({ status }) => (status === 'registered' ? 'good' : 'plain'),
  }),
  textColumn('phones', 'Phones', contactsText, {
    show: ({ contacts }) => <Text value={contacts.map(({ source }) => source).join(', ')} />,
  }),
  textColumn(
    'agent',
    'User agent',
    ({ contacts }) => contacts.map(({ user_agent }) => user_agent).join(', '),
    { isMinor: true, max: 200 },
  ),
  momentColumn('expires', 'Registered until', ({ contacts }) => contacts[0]?.expires_at ?? null, {
    isMinor: true,
  }),
]

const extensionForm = {
  path: '/pbx/extensions',
  names: [
    'display_name',
    'email',
    'customer',
    'voicemail_enabled',
    'call_recording',
    'media',
    'media_profile',
    'codecs',
    'dtmf',
  ],
  labels: {
    display_name: 'Name',
    email: 'E-mail',
    customer: 'Pays for its calls',
    voicemail_enabled: 'Voicemail',
    call_recording: 'Recording',
    media: 'Media relay',
    dtmf: 'Digits',
  },
  words: { on_demand: 'on demand' },
} satisfies SchemaForm

const newExtensionForm: SchemaForm = {
  ...extensionForm,
  names: ['extension', 'tenant', ...extensionForm.names],
}

export const PhonesScreen = () => (
  <ListScreen<ExtensionDetails>
    label="Phones"
    path="/pbx/extensions/details?limit=200"
    events={/^registration$/}
    columns={columns}
    keyOf={({ id }) => id}
    empty="There is no extension."
    isWritable={may('extensions:write')}
    secretName="The password"
    create={create()}
    nameOf={({ extension }) => extension}
    actions={actionsOf}
  />
)

function actionsOf(phone: ExtensionDetails): readonly Action[] {
  const path = `/pbx/extensions/${phone.id}`
  const extension = <Text value={phone.extension} max={40} />
  const change: Action = {
    text: 'Change',
    title: 'Change this extension',
    confirm: 'Save',
    ask: <SchemaFields form={extensionForm} row={phone} />,
    onConfirm: (form) => saveForm(extensionForm, form, phone),
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
      if (answer.kind === 'ok') onSecret(password)
      return answer
    },
  }
  const unregister: Action = {
    text: 'Unregister',
    title: 'Remove a registration?',
    confirm: 'Remove',
    isDangerous: true,
    ask: (
      <>
        <p>The phone does not ring until it registers again, which it may do by itself.</p>
        <Choice
          label="Phone"
          name="contact"
          value={phone.contacts[0]?.uri ?? ''}
          options={Object.fromEntries(
            phone.contacts.map(({ uri, source, user_agent }) => [uri, `${source} ${user_agent}`]),
          )}
        />
      </>
    ),
    onConfirm: (form) => {
      const contact = encodeURIComponent(textIn(form, 'contact'))
      return send('DELETE', `${path}/registrations?contact=${contact}`)
    },
  }
  const remove: Action = {
    text: 'Delete',
    title: 'Delete this extension?',
    isDangerous: true,
    ask: (
      <p>
        {extension} of <Text value={phone.domain} max={60} /> cannot be called any more. It cannot
        be undone.
      </p>
    ),
    onConfirm: () => send('DELETE', path),
  }
  return [change, newPassword, ...(phone.contacts.length === 0 ? [] : [unregister]), remove]
}

const create = (): Action => ({
  text: 'New extension',
  title: 'New extension',
  confirm: 'Create',
  ask: <SchemaFields form={newExtensionForm} row={undefined} />,
  onConfirm: async (form, onSecret) => {
    const password = freshId()
    const answer = await saveForm(newExtensionForm, form, undefined, { password })
    if (answer.kind === 'ok') onSecret(password)
    return answer
  },
})
