/**
 * Delivers the messages that are due. Each is taken by one process, and stays in its hands until
 * what became of it is stored. Calls never wait for it.
 */
import type { Clocks, Schedule } from '../../schema/clock.ts'
import type { Log } from '../../schema/contracts/log.ts'
import type { WriteQueue } from '../../schema/storage/write-queue.ts'
import { retryDelayMs } from '../webhooks/retry-schedule.ts'
import type { AlertMessage } from './alert-message.ts'
import type { ChannelInForce } from './alert-rule-set.ts'
import type { AlertSender } from './alert-sender.ts'
import type { SendOutcome } from './send-outcome.ts'
import type { DueMessage, MessageAttempt, MessageStore } from './message-store.ts'

export interface MessengerDeps extends Clocks {
  /** The name under which it takes messages. */
  readonly instance: string
  readonly messages: MessageStore
  readonly writes: WriteQueue
  readonly sender: Pick<AlertSender, 'send'>
  /** Draws a number from 0 (inclusive) to 1 (exclusive). */
  readonly random: () => number
  readonly schedule: Schedule
  readonly log: Log
  /** Called when a message has ended. */
  readonly onEnd: () => void
}

/** Messages in flight: of one channel, and of all. */
const maxPerChannel = 2
const maxInFlight = 32
/** Longer than a message takes, with the storing of its result. */
const claimMs = 120_000
/** How long a stop waits for messages in flight. */
const patienceMs = 3_000

export class Messenger {
  readonly #deps: MessengerDeps
  readonly #inFlight = new Map<number, Set<number>>()
  readonly #deliveries = new Set<Promise<void>>()
  #isStopped = true

  constructor(deps: MessengerDeps) {
    this.#deps = deps
  }

  start(): void {
    this.#isStopped = false
  }

  /**
   * Takes nothing more, and waits a moment for what is in flight: what would arrive without being
   * noted would be sent again after the next start.
   */
  async stop(): Promise<void> {
    this.#isStopped = true
    if (this.#deliveries.size === 0) return
    let cancel = (): void => undefined
    const patience = new Promise<void>((resolve) => {
      cancel = this.#deps.schedule(resolve, patienceMs)
    })
    await Promise.race([Promise.all(this.#deliveries), patience])
    cancel()
  }

  get inFlight(): number {
    let count = 0
    for (const busy of this.#inFlight.values()) count += busy.size
    return count
  }

  /**
   * Takes what is due, as much as there is room for; nothing before the start: what is taken and
   * not sent waits until the claim ends.
   */
  async step(channels: ReadonlyMap<number, ChannelInForce>): Promise<void> {
    if (this.#isStopped) return
    const { messages, steadyNow, instance } = this.#deps
    for (const id of await messages.dueChannels(steadyNow())) {
      const channel = channels.get(id)
      if (channel?.isEnabled !== true) continue
      const busy = new Set(this.#inFlight.get(id))
      const room = Math.min(maxPerChannel - busy.size, maxInFlight - this.inFlight)
      if (room <= 0) continue
      const now = steadyNow()
      const taken = await messages.take(id, { instance, now, until: now + claimMs }, room, busy)
      if (this.#isStopped) return
      for (const message of taken) this.#begin(channel, message)
    }
  }

  #begin(channel: ChannelInForce, message: DueMessage): void {
    const delivery = this.#deliver(channel, message).finally(() =>
      this.#deliveries.delete(delivery),
    )
    this.#deliveries.add(delivery)
  }

  async #deliver(channel: ChannelInForce, message: DueMessage): Promise<void> {
    const busy = this.#inFlight.get(channel.id) ?? new Set<number>()
    this.#inFlight.set(channel.id, busy.add(message.id))
    const { sender } = this.#deps
    // Only the gatherer writes it.
    const body = JSON.parse(message.body) as AlertMessage
    const outcome = await sender.send(channel, message.key, body)
    // The stop itself may have ended the attempt.
    if (this.#isStopped && outcome.kind !== 'sent') return
    const attempt = this.#judge(message, outcome)
    if (attempt.error !== null)
      this.#deps.log('warn', 'alert: not delivered', {
        channel: channel.name,
        message: message.key,
        error: attempt.error,
      })
    this.#deps.writes.add({
      run: () => this.#deps.messages.record(attempt, this.#deps.instance),
      done: () => {
        busy.delete(message.id)
        if (busy.size === 0) this.#inFlight.delete(channel.id)
        this.#deps.onEnd()
      },
    })
  }

  #judge({ id, attempts }: DueMessage, outcome: SendOutcome): MessageAttempt {
    const { now, steadyNow, random } = this.#deps
    const known = { id, now: now() }
    if (outcome.kind === 'sent')
      return { ...known, state: 'sent', nextAttemptAt: steadyNow(), error: outcome.refused ?? null }
    const { reason: error, isFinal, retryAfterMs } = outcome
    const waitMs = isFinal ? undefined : retryDelayMs(attempts, retryAfterMs, random)
    if (waitMs === undefined)
      return { ...known, state: 'failed', nextAttemptAt: steadyNow(), error }
    return { ...known, state: 'pending', nextAttemptAt: steadyNow() + waitMs, error }
  }
}
