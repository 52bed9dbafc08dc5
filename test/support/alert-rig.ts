/** An instance that alerts in virtual time: what its channels are sent is a list. */
import type { AlertMessage } from '../../control/alerts/alert-message.ts'
import type { ChannelInForce } from '../../control/alerts/alert-rule-set.ts'
import type { HeardInstance } from '../../control/alerts/alert-ends.ts'
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
import { runSql } from './stored.ts'

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
  /** From which the keys of its alerts are drawn; absent: its name. */
  readonly key?: string
  readonly answer?: (sent: SentAlert, channel: ChannelInForce) => Promise<SendOutcome>
  readonly disks?: () => readonly DiskSpace[]
  /** Absent: all that were opened at this time live. */
  readonly instances?: () => readonly HeardInstance[]
}

/** The names of the instances of each world. */
const named = new WeakMap<ManualTime, Set<string>>()

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
    key = instance,
    answer = async () => ({ kind: 'sent' }),
    disks = () => [],
    instances = () =>
      [...(named.get(time) ?? [])].map((name) => ({ name, state: 'serving', heartbeatAt: 0 })),
  }: AlertRigOptions = {},
) {
  named.set(time, (named.get(time) ?? new Set()).add(instance))
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
    randomBytes: (size) => Buffer.alloc(size, key),
    instance: { name: instance },
    disks: async () => disks(),
    instances,
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

/** A node of set 1 goes down or comes back. A number is that of a node of `storeNodes`. */
export const nodeEvent = (node: number | string, state: 'down' | 'up'): OutgoingEvent => ({
  type: `dispatcher.node.${state}`,
  tenantId: null,
  data: {
    set_id: 1,
    destination: typeof node === 'string' ? `sip:${node}` : destinationOf(node),
    reason: state === 'down' ? 'no answer' : 'OK',
  },
})

export const destinationOf = (node: number): string => `sip:node${node}:5060;transport=udp`

/** Stores set 1 with nodes from 0 on. */
export async function storeNodes(store: Store, count: number): Promise<void> {
  await runSql(
    store,
    `INSERT INTO dispatcher_set (set_id, endpoint_name, algorithm, created_at, updated_at)
    VALUES (1, 'pbx', 8, 0, 0)`,
  )
  const nodes = Array.from({ length: count }, (_, node) => `(1, 'node${node}')`)
  const insert = `INSERT INTO dispatcher_node (dispatcher_set_id, host) VALUES ${nodes.join()}`
  await runSql(store, insert)
}

/** Texts of messages, with a mark where something is over. */
export const textsOf = (sent: readonly SentAlert[]): readonly (readonly string[])[] =>
  sent.map(({ message }) =>
    message.items.map(
      ({ kind, text, ended }) =>
        `${kind === 'recovered' ? 'over: ' : ''}${text}${ended === undefined ? '' : `. ${ended}`}`,
    ),
  )
