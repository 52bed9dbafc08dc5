/** Extensions with the phones that are registered for them; made, changed and removed here. */
import { send } from '../api/api.ts'
import type { ExtensionDetails } from '../api/views.ts'
import { isGlobal, may } from '../api/session.ts'
import { freshId } from '../browser.ts'
import { Dialog } from '../parts/dialog.tsx'
import { textIn } from '../parts/form.ts'
import { Table, type ShownColumn } from '../parts/table.tsx'
import { Badge, Moment, Problem, Text } from '../parts/text.tsx'
import { extensionBody } from './extension-fields.ts'
import { actionsColumn, Choice, ShownOnce, useList, words } from './list.tsx'

const contactsText = ({ contacts }: ExtensionDetails): string =>
  contacts.map(({ source, user_agent }) => `${source} ${user_agent}`).join(', ')

const columns: readonly ShownColumn<ExtensionDetails>[] = [
  {
    name: 'extension',
    title: 'Extension',
    value: (phone) => phone.extension,
    show: (phone) => <Text value={phone.extension} max={40} />,
  },
  {
    name: 'domain',
    title: 'Domain',
    value: (phone) => phone.domain,
    isMinor: true,
    show: (phone) => <Text value={phone.domain} max={60} />,
  },
  {
    name: 'name',
    title: 'Name',
    value: (phone) => phone.display_name,
    show: (phone) => <Text value={phone.display_name} max={60} />,
  },
  {
    name: 'state',
    title: 'State',
    value: (phone) => phone.status,
    show: (phone) => (
      <Badge tone={phone.status === 'registered' ? 'good' : 'plain'}>{phone.status}</Badge>
    ),
  },
  {
    name: 'phones',
    title: 'Phones',
    value: contactsText,
    show: ({ contacts }) => <Text value={contacts.map(({ source }) => source).join(', ')} />,
  },
  {
    name: 'agent',
    title: 'User agent',
    value: ({ contacts }) => contacts.map(({ user_agent }) => user_agent).join(', '),
    isMinor: true,
    show: ({ contacts }) => <Text value={contacts.map((each) => each.user_agent).join(', ')} />,
  },
  {
    name: 'expires',
    title: 'Registered until',
    value: ({ contacts }) => contacts[0]?.expires_at ?? null,
    isMinor: true,
    show: ({ contacts }) => <Moment at={contacts[0]?.expires_at ?? null} />,
  },
]

export function PhonesScreen() {
  const list = useList<ExtensionDetails>('/pbx/extensions/details?limit=200', /^registration$/)
  const { data, dialog, secret, close } = list
  const form = (phone?: ExtensionDetails) => () => {
    const onPassword = (password: string) => (secret.value = password)
    dialog.value = <ExtensionForm phone={phone} onPassword={onPassword} onClose={close} />
  }
  const actions = actionsColumn<ExtensionDetails>(
    ({ extension }) => extension,
    (phone) => [
      { text: 'Change', open: form(phone) },
      {
        text: 'New password',
        open: () => {
          dialog.value = (
            <NewPassword
              phone={phone}
              onPassword={(made) => (secret.value = made)}
              onClose={close}
            />
          )
        },
      },
      ...(phone.contacts.length === 0
        ? []
        : [
            {
              text: 'Unregister',
              open: () => void (dialog.value = <Unregister phone={phone} onClose={close} />),
            },
          ]),
      {
        text: 'Delete',
        open: () => void (dialog.value = <Delete phone={phone} onClose={close} />),
      },
    ],
  )
  const isWriter = may('extensions:write')
  return (
    <>
      <Problem message={list.problem.value} />
      <ShownOnce what="The password" secret={secret} />
      {isWriter && (
        <p>
          <button type="button" class="primary" onClick={form()}>
            New extension
          </button>
        </p>
      )}
      <Table
        label="Phones"
        rows={data.value ?? []}
        columns={isWriter ? [...columns, actions] : columns}
        keyOf={(phone) => phone.id}
        empty={data.value === undefined ? 'Loading …' : 'There is no extension.'}
      />
      {dialog.value}
    </>
  )
}

interface OfPhone {
  readonly phone: ExtensionDetails
  readonly onClose: () => void
}

interface WithPassword {
  readonly onPassword: (password: string) => void
}

function NewPassword({ phone, onPassword, onClose }: OfPhone & WithPassword) {
  return (
    <Dialog
      title="Set a new password?"
      action="Set"
      isDangerous
      onConfirm={async () => {
        const password = freshId()
        const answer = await send('PATCH', `/pbx/extensions/${phone.id}`, { password })
        if (answer.kind === 'ok') onPassword(password)
        return answer
      }}
      onClose={onClose}
    >
      <p>
        Phones of <Text value={phone.extension} max={40} /> lose their registration until they have
        the new password.
      </p>
    </Dialog>
  )
}

const Delete = ({ phone, onClose }: OfPhone) => (
  <Dialog
    title="Delete this extension?"
    action="Delete"
    isDangerous
    onConfirm={() => send('DELETE', `/pbx/extensions/${phone.id}`)}
    onClose={onClose}
  >
    <p>
      <Text value={phone.extension} max={40} /> of <Text value={phone.domain} max={60} /> cannot be
      called any more. It cannot be undone.
    </p>
  </Dialog>
)

const Unregister = ({ phone, onClose }: OfPhone) => (
  <Dialog
    title="Remove a registration?"
    action="Remove"
    isDangerous
    onConfirm={(form) => {
      const contact = encodeURIComponent(textIn(form, 'contact'))
      return send('DELETE', `/pbx/extensions/${phone.id}/registrations?contact=${contact}`)
    }}
    onClose={onClose}
  >
    <p>The phone does not ring until it registers again, which it may do by itself.</p>
    <label>
      Phone
      <Choice
        name="contact"
        value={phone.contacts[0]?.uri ?? ''}
        options={Object.fromEntries(
          phone.contacts.map(({ uri, source, user_agent }) => [uri, `${source} ${user_agent}`]),
        )}
      />
    </label>
  </Dialog>
)

interface FormProps extends WithPassword {
  /** Undefined: a new one. */
  readonly phone: ExtensionDetails | undefined
  readonly onClose: () => void
}

function ExtensionForm({ phone, onPassword, onClose }: FormProps) {
  const isNew = phone === undefined
  return (
    <Dialog
      title={isNew ? 'New extension' : 'Change this extension'}
      action={isNew ? 'Create' : 'Save'}
      onConfirm={async (form) => {
        const body = extensionBody((name) => textIn(form, name), phone)
        if (phone !== undefined) return send('PATCH', `/pbx/extensions/${phone.id}`, body)
        const password = freshId()
        const answer = await send('POST', '/pbx/extensions', { ...body, password })
        if (answer.kind === 'ok') onPassword(password)
        return answer
      }}
      onClose={onClose}
    >
      {isNew && (
        <label>
          Extension
          <input name="extension" required maxLength={20} pattern="\+?[0-9*#]+" />
        </label>
      )}
      {isNew && isGlobal() && (
        <label>
          Tenant
          <input name="tenant" required maxLength={64} autoComplete="off" />
        </label>
      )}
      <label>
        Name
        <input name="display_name" required maxLength={100} defaultValue={phone?.display_name} />
      </label>
      <label>
        E-mail <small>(optional)</small>
        <input name="email" type="email" maxLength={254} defaultValue={phone?.email ?? ''} />
      </label>
      <label>
        Voicemail
        <Choice
          name="voicemail"
          value={phone?.voicemail_enabled === false ? 'off' : 'on'}
          options={words('on', 'off')}
        />
      </label>
      <label>
        Recording
        <Choice
          name="recording"
          value={phone?.call_recording ?? 'always'}
          options={{ always: 'always', on_demand: 'on demand', never: 'never' }}
        />
      </label>
      <label>
        Media relay
        <Choice
          name="media"
          value={phone?.media ?? ''}
          options={{ '': 'inherited', ...words('bypass', 'prefer', 'anchor') }}
        />
      </label>
      <label>
        Media profile
        <Choice
          name="media_profile"
          value={phone?.media_profile ?? 'auto'}
          options={words('auto', 'rtp', 'srtp', 'webrtc')}
        />
      </label>
      <label>
        Codecs <small>(in order, with commas; empty: all)</small>
        <input name="codecs" maxLength={200} defaultValue={phone?.codecs?.join(', ') ?? ''} />
      </label>
      <label>
        Digits
        <Choice
          name="dtmf"
          value={phone?.dtmf ?? 'auto'}
          options={words('auto', 'rfc4733', 'info')}
        />
      </label>
    </Dialog>
  )
}
