/** Routing webhooks: receivers that are asked where a call goes. */
import { send } from '../api/api.ts'
import type { RoutingWebhook, WebhookTest, WithSecret } from '../api/views.ts'
import { figureColumn, textColumn } from '../parts/columns.tsx'
import { Field, textIn } from '../parts/form.tsx'
import type { Action } from '../parts/list.tsx'
import { createOf, ResourceScreen, type ScreenNoun } from '../parts/resource-screen.tsx'
import { saveForm } from '../parts/forms.tsx'
import { Text } from '../parts/text.tsx'
import { rotation } from '../parts/signing-secret.tsx'

const scopeOf = ({ carrier, set_id, tenant }: RoutingWebhook): string => {
  if (carrier !== null) return `carrier ${carrier}`
  if (set_id !== null) return `dispatcher set ${set_id}`
  return tenant === null ? 'every call' : `every call of ${tenant}`
}

const stateOf = ({ enabled, status }: RoutingWebhook): string => {
  if (!enabled) return 'off'
  return status?.is_resting === true ? 'rests after failures' : 'on'
}

const noun: ScreenNoun<RoutingWebhook & { readonly id: number }> = {
  one: 'routing webhook',
  many: 'Routing webhooks',
  scope: 'webhooks',
  about: 'A routing webhook is asked by HTTP, for each call of its scope, where the call goes.',
  effect: 'Calls are not asked about any more.',
  nameOf: ({ url }) => url,
  columns: [
    textColumn('url', 'Address', ({ url }) => url, {
      max: 60,
      also: scopeOf,
      second: (webhook) => <Text value={scopeOf(webhook)} max={80} />,
    }),
    figureColumn('calls', 'Asked', ({ status }) => status?.calls ?? null),
    figureColumn('failed', 'Failed', ({ status }) => status?.failed ?? null),
    figureColumn('ms', 'Mean ms', ({ status }) => status?.mean_ms ?? null),
    textColumn('state', 'State', stateOf, {
      second: ({ status }) =>
        status?.last_failure != null && (
          <Text value={`failed: ${status.last_failure.reason}`} max={50} />
        ),
      tone: ({ enabled, status }) =>
        !enabled ? 'plain' : status?.is_resting === true ? 'bad' : 'good',
    }),
  ],
  form: {
    path: '/routing-webhooks',
    names: ['url', 'carrier', 'set', 'tenant', 'timeout_ms', 'fallback', 'enabled'],
    more: ['description', 'cache_seconds', 'cache_key'],
    labels: {
      url: 'Address',
      carrier: 'Calls from the carrier',
      set: 'Calls from nodes of the dispatcher set',
      timeout_ms: 'Milliseconds that a call waits',
      fallback: 'Without an answer in time',
      enabled: 'In use',
      cache_seconds: 'Seconds that an answer holds',
      cache_key: 'For calls with the same',
    },
    hints: { url: '', carrier: '', set: '', tenant: 'None: calls of the platform.' },
    words: { fallback: { continue: 'the call goes on', refuse: 'the call is refused' } },
  },
}

/** The secret is shown once. */
const create: Action = {
  ...createOf(noun),
  onConfirm: async (entered, onSecret) => {
    const answer = await saveForm(noun.form, entered, undefined)
    // The answer to a creation has the secret.
    if (answer.kind === 'ok') onSecret((answer.data as WithSecret).secret)
    return answer
  },
}

const actionsOf = ({ id }: RoutingWebhook): readonly Action[] => [
  {
    text: 'Test',
    title: 'Ask about a call that does not exist',
    ask: (
      <>
        <Field label="Number of the caller" name="from" required maxLength={64} />
        <Field label="Number that is called" name="to" required maxLength={64} />
      </>
    ),
    onConfirm: async (form, _, onAnswer) => {
      const numbers = { from: textIn(form, 'from'), to: textIn(form, 'to') }
      const path = `/routing-webhooks/${id}/test`
      const answer = await send<WebhookTest>('POST', path, numbers)
      if (answer.kind === 'ok') onAnswer(outcomeText(answer.data))
      return answer
    },
  },
  rotation(`/routing-webhooks/${id}`),
]

function outcomeText({ outcome, decision, reason, fallback, ms }: WebhookTest): string {
  const when = `after ${ms} ms`
  switch (outcome) {
    case 'decided':
      return `The webhook has decided ${when}: ${JSON.stringify(decision)}`
    case 'nothing':
      return `The webhook has answered ${when}: the call goes on as without it.`
    case 'failed':
    default: {
      const goesOn = fallback === 'refuse' ? 'is refused' : 'goes on'
      const why = reason ?? 'nothing says why'
      return `The webhook has failed ${when}: ${why}. A call ${goesOn} then.`
    }
  }
}

export const RoutingWebhooksScreen = () => (
  <ResourceScreen noun={noun} create={create} actions={actionsOf} secretName="The signing secret" />
)
