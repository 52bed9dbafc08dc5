/**
 * Alerts: rules on what happens and on what is measured, and messages about it by e-mail, Slack,
 * PagerDuty and webhook. Events come from the outbox, so none is lost; one instance at a time
 * finds out what they mean, so none counts twice; and all instances deliver.
 */
import { DAY_MS, type Clocks, earliest, MINUTE_MS, type Schedule } from '../../schema/clock.ts'
import type { CertificateStatus } from '../../schema/contracts/certificates.ts'
import type { InstanceIdentity } from '../../schema/contracts/instances.ts'
import type { Log } from '../../schema/contracts/log.ts'
import { OneAtATime } from '../../schema/one-at-a-time.ts'
import { lockedTransaction, onOneInstance } from '../../schema/sql/query.ts'
import { isUnstored } from '../../schema/storage/storage.ts'
import type { Store } from '../../schema/storage/store.ts'
import { runEach, WriteQueue } from '../../schema/storage/write-queue.ts'
import type { SideOutbox } from '../webhooks/outbox.ts'
import type { SetStatus } from '../../schema/contracts/engine.ts'
import { AlertBook, type AlertEnd, type AlertRow } from './alert-book.ts'
import { endsOf, type HeardInstance } from './alert-ends.ts'
import { testMessage } from './alert-message.ts'
import { AlertOutbox } from './alert-outbox.ts'
import { type AlertRuleSet, loadRuleSet } from './alert-rule-set.ts'
import type { AlertSender } from './alert-sender.ts'
import type { SendOutcome } from './send-outcome.ts'
import { AlertWatch, type DiskSpace } from './alert-watch.ts'
import { Gatherer } from './gatherer.ts'
import { type AlertBacklog, MessageStore } from './message-store.ts'
import { Messenger } from './messenger.ts'
import { sightingsOfCarriers, sightingsOfNodes, type SeenCarriers, Witnesses } from './witnesses.ts'

export interface AlertsDeps extends Clocks {
  readonly store: Store
  readonly instance: Pick<InstanceIdentity, 'name'>
  /** Draws a number from 0 (inclusive) to 1 (exclusive). */
  readonly random: () => number
  /** Cryptographically secure. */
  readonly randomBytes: (size: number) => Buffer
  readonly schedule: Schedule
  readonly sender: Pick<AlertSender, 'send' | 'close'>
  readonly disks: () => Promise<readonly DiskSpace[]>
  /** The instances of the installation. */
  readonly instances: () => readonly HeardInstance[]
  readonly log: Log
}

/** Other processes write events, and may die: then it looks. */
const lookMs = 1_000
/** Between two turns while there is work. */
const pauseMs = 10
/** Messages for a channel that is switched off wait for so long. */
const waitsMs = 7 * DAY_MS
/** The log of alerts. */
const retentionMs = 90 * DAY_MS
const pruneLimit = 500
/** Alerts that one look for ended ones reads at once, and in all. */
const endsAtOnce = 100
const endsLooked = 1_000
/** Longer than any delay between two attempts. */
const longestDelayMs = 3 * DAY_MS

const nobody: AlertRuleSet = { rules: [], channels: new Map() }

export class Alerts {
  readonly #deps: AlertsDeps
  readonly #outbox: AlertOutbox
  readonly #writes: WriteQueue
  readonly #messages: MessageStore
  readonly #messenger: Messenger
  readonly #book: AlertBook
  readonly #gatherer: Gatherer
  readonly #watch: AlertWatch
  readonly #witnesses: Witnesses
  readonly #reloads = new OneAtATime(() => this.#load())
  readonly #turns = new OneAtATime(() => this.#turn())
  readonly #minutes = new OneAtATime(() => this.#minute())
  #inForce = nobody
  #certificates: () => readonly CertificateStatus[] = () => []
  #nodes: () => readonly SetStatus[] = () => []
  #carriers: () => SeenCarriers = () => new Map()
  /** The next look for ended alerts begins after this one. */
  #lookedUpTo = 0
  #isStopped = true
  /** The last stop: whoever asks for one waits for it. */
  #ending: Promise<void> = Promise.resolve()
  #cancelTurn: (() => void) | undefined
  #cancelMinute: (() => void) | undefined
  /** When the next turn is; Infinity: none is planned. */
  #turnsAt = Infinity
  /** Channels that are being tested. */
  readonly #tests = new Set<number>()

  constructor(deps: AlertsDeps) {
    this.#deps = deps
    const { store, schedule, log, instance } = deps
    const newKey = keysFrom(deps.randomBytes)
    const name = instance.name
    this.#outbox = new AlertOutbox({
      store,
      instance: name,
      now: deps.now,
      onWrite: () => this.#soon(pauseMs),
    })
    this.#writes = new WriteQueue({
      store,
      schedule,
      run: runEach,
      onFailure: (error, waiting) =>
        log('error', 'alert: results of deliveries cannot be stored', { error, waiting }),
    })
    this.#messages = new MessageStore(store)
    this.#messenger = new Messenger({
      ...deps,
      instance: name,
      messages: this.#messages,
      writes: this.#writes,
      onEnd: () => this.#soon(pauseMs),
    })
    this.#book = new AlertBook({ ...deps, newKey })
    const book = this.#book
    this.#witnesses = new Witnesses({
      ...deps,
      book,
      instance: name,
      sightings: () => [
        ...sightingsOfNodes(this.#nodes()),
        ...sightingsOfCarriers(this.#carriers()),
      ],
    })
    const witnesses = this.#witnesses
    this.#gatherer = new Gatherer({ ...deps, book, witnesses, newKey })
    this.#watch = new AlertWatch({
      ...deps,
      instance: name,
      book,
      witnesses,
      certificates: () => this.#certificates(),
    })
  }

  /** Takes the events that rules look at, in the transactions that make them true. */
  get sink(): SideOutbox {
    return this.#outbox
  }

  /** The certificates of this process, once they are known. */
  watchCertificates(list: () => readonly CertificateStatus[]): void {
    this.#certificates = list
  }

  /** The nodes of dispatcher sets, as this process sees them. */
  watchNodes(list: () => readonly SetStatus[]): void {
    this.#nodes = list
  }

  /** Carriers, as this process sees them. */
  watchCarriers(seen: () => SeenCarriers): void {
    this.#carriers = seen
  }

  /** Call `reload` first. */
  start(): void {
    this.#isStopped = false
    const { steadyNow, instance } = this.#deps
    this.#writes.add({
      run: async () => {
        await this.#messages.release(instance.name)
        await this.#messages.bringForward(steadyNow(), steadyNow() + longestDelayMs)
      },
      done: () => {
        if (this.#isStopped) return
        this.#messenger.start()
        this.#soon(pauseMs)
      },
      waitMs: 0,
    })
    this.#minuteLater()
  }

  /** Starts no further delivery. What takes long may be repeated after the next start. */
  stop(): Promise<void> {
    if (!this.#isStopped) {
      this.#isStopped = true
      this.#ending = this.#stop()
    }
    return this.#ending
  }

  async #stop(): Promise<void> {
    this.#cancelTurn?.()
    this.#cancelMinute?.()
    await this.#messenger.stop()
    this.#deps.sender.close()
    for (const work of [this.#turns, this.#minutes]) await work.between(nothing)
    // Else other instances take them when the claims end.
    if (await this.#writes.flush()) await this.#messages.release(this.#deps.instance.name)
  }

  /** Reads rules and channels. */
  reload(): Promise<void> {
    return this.#reloads.request()
  }

  /**
   * Sends a test by a channel now, and resolves with what became of it; when it was delivered,
   * what waits for the channel is sent, too. Undefined: it is not there; `busy`: it is being
   * tested.
   */
  async test(channelId: number): Promise<SendOutcome | 'busy' | undefined> {
    await this.reload()
    const channel = this.#inForce.channels.get(channelId)
    if (channel === undefined) return undefined
    if (this.#tests.has(channelId) || this.#tests.size >= maxTests) return 'busy'
    this.#tests.add(channelId)
    try {
      const key = `test-${this.#deps.randomBytes(15).toString('hex')}`
      const message = testMessage(channel.name, this.#deps.now())
      const outcome = await this.#deps.sender.send(channel, key, message)
      // The incident of a test is over at once.
      const [item] = message.items
      if (channel.kind === 'pagerduty' && outcome.kind === 'sent' && item !== undefined)
        await this.#deps.sender.send(channel, key, {
          ...message,
          items: [{ ...item, kind: 'recovered' }],
        })
      if (outcome.kind === 'sent') {
        await this.#messages.bringChannelForward(channelId, this.#deps.steadyNow())
        this.#soon(pauseMs)
      }
      return outcome
    } finally {
      this.#tests.delete(channelId)
    }
  }

  backlog(): Promise<AlertBacklog> {
    return this.#messages.backlog()
  }

  async #load(): Promise<void> {
    this.#inForce = await loadRuleSet(this.#deps.store)
    this.#outbox.setRules(this.#inForce.rules)
    this.#soon(pauseMs)
  }

  #soon(delayMs: number): void {
    if (this.#isStopped) return
    const at = this.#deps.steadyNow() + delayMs
    if (at >= this.#turnsAt) return
    this.#cancelTurn?.()
    this.#turnsAt = at
    this.#cancelTurn = this.#deps.schedule(() => {
      this.#turnsAt = Infinity
      void this.#turns.request()
    }, delayMs)
  }

  /** Never rejects. */
  async #turn(): Promise<void> {
    if (this.#isStopped) return
    let nextMs = lookMs
    try {
      if (await this.#gatherer.step(this.#inForce)) nextMs = pauseMs
      await this.#messenger.step(this.#inForce.channels)
    } catch (error) {
      if (!isUnstored(error)) this.#deps.log('error', 'alert: a turn has failed', { error })
    }
    // Without a channel nobody waits: the first one begins it again.
    if (this.#inForce.channels.size > 0) this.#soon(nextMs)
  }

  #minuteLater(): void {
    this.#cancelMinute = this.#deps.schedule(() => {
      this.#minuteLater()
      void this.#minutes.request()
    }, MINUTE_MS)
  }

  /** Never rejects. */
  async #minute(): Promise<void> {
    if (this.#isStopped) return
    const { store } = this.#deps
    try {
      await this.#endGone()
      await this.#watch.tick(this.#inForce.rules)
      const before = earliest(this.#deps)
      await onOneInstance(
        store,
        'alerts',
        async () => {
          await this.#end(await this.#witnesses.unseen())
          // A rule of another instance that is not known here yet would hold nothing.
          const { rules } = store.statements.isShared ? await loadRuleSet(store) : this.#inForce
          await this.#book.hasten(rules)
          await this.#messages.giveUp(before - waitsMs)
          await this.#messages.prune(before - retentionMs, pruneLimit)
        },
        lockedTransaction,
      )
    } catch (error) {
      if (!isUnstored(error)) this.#deps.log('error', 'alert: the watch has failed', { error })
    }
    this.#soon(pauseMs)
  }

  /** Ends alerts that nothing else would end, in turn where there are many. */
  async #endGone(): Promise<void> {
    const { store, instances, now } = this.#deps
    const work = async (): Promise<number> => {
      const alerts = await this.#book.alertsAfter(this.#lookedUpTo, endsAtOnce)
      this.#lookedUpTo = alerts.length < endsAtOnce ? 0 : (alerts.at(-1)?.id ?? 0)
      await this.#end(await endsOf({ alerts, store, instances: instances(), now: now() }))
      return alerts.length
    }
    for (let looked = 0; looked < endsLooked; looked += endsAtOnce) {
      const done = await onOneInstance(store, 'alerts', work, lockedTransaction)
      if (done.kind === 'elsewhere' || done.result < endsAtOnce) return
    }
  }

  async #end(ends: ReadonlyMap<AlertRow, AlertEnd>): Promise<void> {
    for (const [alert, end] of ends) {
      const rule = this.#inForce.rules.find(({ id }) => id === alert.rule_id)
      await this.#book.end(alert, rule, this.#deps.now(), end)
    }
  }
}

const nothing = async (): Promise<void> => undefined

/** Tests at once. */
const maxTests = 8

/** Unique across restarts by a random start, without random bytes for each. */
function keysFrom(randomBytes: (size: number) => Buffer): () => string {
  const start = randomBytes(12).toString('hex')
  let count = 0
  return () => `alert-${start}.${(count += 1).toString(36)}`
}
