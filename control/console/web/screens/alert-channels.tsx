/** Alert channels: ways to people, each with a test. */
import { send } from '../api/api.ts'
import type { AlertChannel, AlertChannelTest, WithSecret } from '../api/views.ts'
import { textColumn } from '../parts/columns.tsx'
import type { Action } from '../parts/list.tsx'
import { createOf, ResourceScreen, type ScreenNoun } from '../parts/resource-screen.tsx'
import { saveForm } from '../parts/schema-form.tsx'

const kinds = { email: 'e-mail', slack: 'Slack', pagerduty: 'PagerDuty', webhook: 'webhook' }

const whereOf = ({ to, url }: AlertChannel): string | null => to?.join(', ') ?? url

const noun: ScreenNoun<AlertChannel> = {
  one: 'alert channel',
  many: 'Alert channels',
  scope: 'webhooks',
  about: 'An alert channel is a way to people: e-mail, Slack, PagerDuty, or a webhook of yours.',
  effect: 'Nobody is told by it any more.',
  nameOf: ({ name }) => name,
  uses: [
    {
      path: '/alert-rules',
      one: 'alert rule',
      many: 'alert rules',
      isUse: ({ channels, tenant }, channel) =>
        tenant === channel.tenant && Array.isArray(channels) && channels.includes(channel.name),
    },
  ],
  columns: [
    textColumn('name', 'Name', ({ name }) => name),
    textColumn('kind', 'By', ({ kind }) => kinds[kind]),
    textColumn('where', 'To', whereOf, { max: 80 }),
    textColumn('tenant', 'Tenant', ({ tenant }) => tenant, { isMinor: true }),
    textColumn('state', 'State', ({ is_enabled }) => (is_enabled ? 'on' : 'off'), {
      tone: ({ is_enabled }) => (is_enabled ? 'good' : 'plain'),
    }),
  ],
  form: {
    path: '/alert-channels',
    names: [
      ...['name', 'kind', 'to', 'url', 'secret', 'from', 'smtp_host', 'smtp_user', 'tenant'],
      'is_enabled',
    ],
    more: ['smtp_port', 'smtp_tls'],
    labels: {
      kind: 'By',
      to: 'To',
      from: 'From',
      url: 'Address',
      smtp_host: 'Mail server',
      smtp_user: 'User at the mail server',
      smtp_port: 'Port of the mail server',
      smtp_tls: 'Encryption to the mail server',
      is_enabled: 'In use',
    },
    hints: {
      to: 'E-mail: one address a line.',
      url: 'Webhook: where it is sent. PagerDuty: empty, but for the EU.',
      secret:
        'E-mail: the password. Slack: the address of the incoming webhook. PagerDuty: the ' +
        'integration key. Webhook: empty, then one is made. Nobody can read it later.',
      from: 'E-mail: the sender.',
      smtp_host: 'Empty: that of the installation.',
      smtp_user: '',
      smtp_port: 'Empty: the usual one.',
      tenant: 'None: a channel of the platform.',
      is_enabled: '',
    },
    words: { kind: kinds, smtp_tls: { '': 'STARTTLS', tls: 'TLS from the start', none: 'none' } },
  },
}

/** The secret of a webhook is shown once. */
const create: Action = {
  ...createOf(noun),
  onConfirm: async (entered, onSecret) => {
    const answer = await saveForm(noun.form, entered, undefined)
    const secret = answer.kind === 'ok' ? (answer.data as Partial<WithSecret>).secret : undefined
    if (secret !== undefined) onSecret(secret)
    return answer
  },
}

const actionsOf = ({ id }: AlertChannel): readonly Action[] => [
  {
    text: 'Test',
    title: 'Send a test by this channel?',
    confirm: 'Send',
    ask: <p>It is sent now, and you see what became of it.</p>,
    onConfirm: async (_form, _secret, onAnswer) => {
      const answer = await send<AlertChannelTest>('POST', `/alert-channels/${id}/test`)
      if (answer.kind === 'ok')
        onAnswer(
          answer.data.is_delivered
            ? 'The test was delivered. What waits for the channel is sent, too.'
            : `The test was not delivered: ${answer.data.error ?? 'nothing says why'}.`,
        )
      return answer
    },
  },
]

export const AlertChannelsScreen = () => (
  <ResourceScreen noun={noun} create={create} actions={actionsOf} secretName="The signing secret" />
)
