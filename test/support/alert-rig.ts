/** An instance that alerts in virtual time: what its channels are sent is a list. */
import type { AlertMessage } from '../../control/alerts/alert-message.ts'
import type { ChannelInForce } from '../../control/alerts/alert-rule-set.ts'
import { Alerts } from '../../control/alerts/alerts.ts'
import type { DiskSpace } from '../../control/alerts/alert-watch.ts'
import type { SendOutcome } from '../../control/alerts/send-outcome.ts'
import { alertChannels } from '../../control/resources/alert-channels.ts'
import { alertRules } from '../../control/resources/alert-rules.ts'
import { storeOf } from '../../control/resources/resource.ts'
import type { OutgoingEvent } from '../../schema/contracts/engine.ts'
import { transaction } from '../../schema/sql/query.ts'
import type { Store } from '../../schema/storage/store.ts'
import { start } from './books.ts'
import type { ManualTime } from './manual-time.ts'

export interface SentAlert {
  readonly instance: string
  readonly channel: string
  readonly key: string
  /** Milliseconds since `start`. */
  readonly at: number
  readonly message: AlertMessage
}

interface AlertRigOptions {
  readonly instance?: string
  readonly answer?: (sent: SentAlert, channel: ChannelInForce) => Promise<SendOutcome>
  readonly disks?: () => readonly DiskSpace[]
}

export const deadServer: SendOutcome = {
  kind: 'failed',
  reason: 'connect ECONNREFUSED',
  isFinal: false,
  retryAfterMs: 0,
}

export function alertRig(
  store: Store,
  time: ManualTime,
  {
    instance = 'a',
    answer = async () => ({ kind: 'sent' }),
    disks = () => [],
  }: AlertRigOptions = {},
) {
  const sent: SentAlert[] = []
  const problems: unknown[] = []
  const { now } = time
  let isDead = false
  // A process that died does nothing more, and stores nothing.
  const schedule: ManualTime['schedule'] = (work, delayMs) =>
    time.schedule(() => isDead || work(), delayMs)
  const alerts = new Alerts({
    store,
    now,
    steadyNow: now,
    schedule,
    random: () => 0,
    randomBytes: (size) => Buffer.alloc(size, instance),
    instance: { name: instance },
    disks: async () => disks(),
    log: (level, text, fields) => void (level === 'error' && problems.push([text, fields])),
    sender: {
      close: () => undefined,
      send: async (channel, key, message) => {
        const alert = { instance, channel: channel.name, key, at: now() - start, message }
        sent.push(alert)
        return answer(alert, channel)
      },
    },
  })
  const scope = (tenantId: number | null) => ({ tenantId, domain: null, now: now(), actor: 'test' })
  const randomBytes = (size: number) => Buffer.alloc(size, 7)
  return {
    alerts,
    sent,
    /** What it has in its hands stays there. */
    die: () => void (isDead = true),
    problems,
    async channel(body: Readonly<Record<string, unknown>> = {}, tenantId: number | null = null) {
      const whole = { name: 'noc', kind: 'email', to: ['noc@example.com'], ...body }
      const id = await storeOf(alertChannels, { store, randomBytes }).insert(
        alertChannels.fields.body.parse(whole),
        scope(tenantId),
      )
      await alerts.reload()
      return id
    },
    async rule(body: Readonly<Record<string, unknown>>, tenantId: number | null = null) {
      const whole = { name: String(body['on']), channels: ['noc'], ...body }
      const id = await storeOf(alertRules, { store }).insert(
        alertRules.fields.body.parse(whole),
        scope(tenantId),
      )
      await alerts.reload()
      return id
    },
    write: (...events: readonly OutgoingEvent[]) =>
      transaction(store, () => alerts.sink.writeAll(events)),
  }
}

/** A node of set 1 goes down or comes back. */
export const nodeEvent = (node: number | string, state: 'down' | 'up'): OutgoingEvent => ({
  type: `dispatcher.node.${state}`,
  tenantId: null,
  data: { set_id: 1, destination: `sip:${node}`, reason: state === 'down' ? 'no answer' : 'OK' },
})

/** Texts of messages, with a mark where something is over. */
export const textsOf = (sent: readonly SentAlert[]): readonly (readonly string[])[] =>
  sent.map(({ message }) =>
    message.items.map(({ kind, text }) => `${kind === 'recovered' ? 'over: ' : ''}${text}`),
  )
