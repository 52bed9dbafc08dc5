/** One extension: its phones, its day, who pays, its calls and changes. */
import { get } from '../api/api.ts'
import { may } from '../api/session.ts'
import type { ExtensionDetails } from '../api/views.ts'
import { pathOf } from '../parts/address.ts'
import { momentColumn, textColumn } from '../parts/columns.tsx'
import { List, Loaded, useActions } from '../parts/list.tsx'
import { PageHead } from '../parts/page-head.tsx'
import { useResource } from '../parts/resource.ts'
import { go } from '../parts/router.ts'
import type { ShownColumn } from '../parts/table.tsx'
import { Facts, Text } from '../parts/text.tsx'
import { CallsOf } from './calls-of.tsx'
import { ChangesOf } from './changes-of.tsx'
import { DayFigures } from './day-figures.tsx'
import { actionsOf, phoneState, unregister } from './phones.tsx'
import { Advice } from './thing-parts.tsx'

type Contact = ExtensionDetails['contacts'][number]

const contactColumns: readonly ShownColumn<Contact>[] = [
  textColumn('agent', 'Phone', ({ user_agent: agent }) => agent || 'unknown', { max: 60 }),
  textColumn('source', 'Address', ({ source }) => source, { max: 60 }),
  momentColumn('until', 'Registered until', (contact) => contact.expires_at),
  textColumn('node', 'Taken by', ({ node }) => node, { isMinor: true }),
]

export function PhoneScreen({ id }: { id: string }) {
  const path = `/pbx/extensions/${encodeURIComponent(id)}/details`
  const phone = useResource(path, () => get<ExtensionDetails>(path), {
    everyMs: 5_000,
    events: /^registration$/,
  })
  return <Loaded of={phone}>{(shown) => <Details phone={shown} onChange={phone.reload} />}</Loaded>
}

function Details({ phone, onChange }: { phone: ExtensionDetails; onChange: () => void }) {
  const { id, extension } = phone
  const { ask, notices, dialog } = useActions(onChange, 'The password')
  const { tone, text, advice } = phoneState(phone)
  return (
    <>
      <PageHead name={`${extension} ${phone.display_name}`} state={[tone, text]}>
        {may('extensions:write') &&
          actionsOf(phone, () => go(pathOf('phones'))).map((action) => (
            <button
              key={action.text}
              type="button"
              class={action.text === 'Delete' ? 'danger' : undefined}
              onClick={ask(action)}
            >
              {action.text}
            </button>
          ))}
      </PageHead>
      {notices}
      <Advice tone={tone} text={advice} />
      <List<Contact>
        label="Registered phones"
        rows={phone.contacts}
        columns={contactColumns}
        keyOf={({ uri }) => uri}
        empty="No phone is registered."
        problem={undefined}
        reload={onChange}
        isWritable={may('extensions:write')}
        nameOf={({ source }) => source}
        actions={(contact) => [unregister(phone, contact)]}
        isPart
      />
      <DayFigures of={{ caller: extension, tenant: phone.tenant }} />
      <h2>Set-up</h2>
      <PhoneFacts phone={phone} />
      <CallsOf by="number" text={extension} tenant={phone.tenant}>
        <ChangesOf kind="extension" id={`${id}`} named={`the extension ${extension}`} />
      </CallsOf>
      {dialog}
    </>
  )
}

function PhoneFacts({ phone }: { phone: ExtensionDetails }) {
  const { customer, customer_id: payer } = phone
  return (
    <Facts
      of={{
        'User name': <code>{phone.extension}</code>,
        'SIP domain': <Text value={phone.domain} max={80} />,
        'Paid by':
          payer === null ? (
            'nobody: only calls that cost nothing'
          ) : (
            <a href={pathOf('customers', `${payer}`)}>
              <Text value={customer} max={60} />
            </a>
          ),
        'Number outside': <Text value={phone.caller_number ?? 'that of the customer'} />,
        Recording: phone.recording_active ? 'each call is recorded' : 'no call is recorded',
        Voicemail: phone.voicemail_enabled ? 'on' : 'off',
        'E-mail': <Text value={phone.email} max={80} />,
      }}
    />
  )
}
