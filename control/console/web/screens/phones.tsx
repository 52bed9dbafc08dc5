/** Extensions with the phones that are registered for them; made, changed and removed here. */
import { send } from '../api/api.ts'
import { isGlobal, may } from '../api/session.ts'
import type { ExtensionDetails } from '../api/views.ts'
import { freshId } from '../api/browser.ts'
import { momentColumn, textColumn } from '../parts/columns.tsx'
import { Choice, Field, textIn, words } from '../parts/form.tsx'
import { ListScreen, type Action } from '../parts/list.tsx'
import type { ShownColumn } from '../parts/table.tsx'
import { Text } from '../parts/text.tsx'
import { extensionBody } from './extension-fields.ts'

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
    ask: <ExtensionFields phone={phone} />,
    onConfirm: (form) =>
      send(
        'PATCH',
        path,
        extensionBody((name) => textIn(form, name), phone),
      ),
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
  ask: <ExtensionFields phone={undefined} />,
  onConfirm: async (form, onSecret) => {
    const body = extensionBody((name) => textIn(form, name), undefined)
    const password = freshId()
    const answer = await send('POST', '/pbx/extensions', { ...body, password })
    if (answer.kind === 'ok') onSecret(password)
    return answer
  },
})

/** `phone`: undefined for a new one. */
function ExtensionFields({ phone }: { phone: ExtensionDetails | undefined }) {
  const isNew = phone === undefined
  return (
    <>
      {isNew && (
        <Field label="Extension" name="extension" required maxLength={20} pattern="\+?[0-9*#]+" />
      )}
      {isNew && isGlobal() && (
        <Field label="Tenant" name="tenant" required maxLength={64} autoComplete="off" />
      )}
      <Field
        label="Name"
        name="display_name"
        required
        maxLength={100}
        defaultValue={phone?.display_name}
      />
      <Field
        label="E-mail"
        hint="optional"
        name="email"
        type="email"
        maxLength={254}
        defaultValue={phone?.email ?? ''}
      />
      <Choice
        label="Voicemail"
        name="voicemail"
        value={phone?.voicemail_enabled === false ? 'off' : 'on'}
        options={words('on', 'off')}
      />
      <Choice
        label="Recording"
        name="recording"
        value={phone?.call_recording ?? 'always'}
        options={{ always: 'always', on_demand: 'on demand', never: 'never' }}
      />
      <Choice
        label="Media relay"
        name="media"
        value={phone?.media ?? ''}
        options={{ '': 'inherited', ...words('bypass', 'prefer', 'anchor') }}
      />
      <Choice
        label="Media profile"
        name="media_profile"
        value={phone?.media_profile ?? 'auto'}
        options={words('auto', 'rtp', 'srtp', 'webrtc')}
      />
      <Field
        label="Codecs"
        hint="in order, with commas; empty: all"
        name="codecs"
        maxLength={200}
        defaultValue={phone?.codecs?.join(', ') ?? ''}
      />
      <Choice
        label="Digits"
        name="dtmf"
        value={phone?.dtmf ?? 'auto'}
        options={words('auto', 'rfc4733', 'info')}
      />
    </>
  )
}
