/**
 * Sends the engine's events, and those of the other instances, to many readers. Events are
 * collected for a moment and written once per tenant. A reader that does not keep up is
 * disconnected: it must not delay calls.
 */
import type { Cancel, Every } from '../../../schema/clock.ts'
import type { EngineEvent, EventsPort } from '../../../schema/contracts/engine.ts'
import type { PriceSource } from '../../calls/active-call-view.ts'
import {
  dataFor,
  eventId,
  eventViewFor,
  isVisible,
  type EventPosition,
  positionText,
  sequenceOf,
  type SharedEvent,
} from './event-view.ts'
import type { PeerEvents } from './peer-events.ts'
import type { PeerLog } from './peer-log.ts'
import { asEvents, FLUSH_MS, type MissedEvents, missedOf, ownPosition } from './event-feed.ts'

/** How often to call `keepAlive`. */
export const KEEP_ALIVE_MS = 15_000

const MAX_READERS = 2_000
/** Limits per credential and per tenant, so that neither takes all streams. */
const MAX_OF_TENANT = 500
const MAX_OF_CREDENTIAL = 100
/** Maximum unread bytes of one reader; more means that it does not read. */
const MAX_BACKLOG = 1_048_576
/** Maximum age of a stream; the reader then reconnects. */
const MAX_LIFE_MS = 15 * 60_000
/** How long a stream may outlive its credential. */
const RECHECK_MS = 1_000

type Controller = ReadableStreamDefaultController<Uint8Array>

/** A reader of events. */
export interface ReaderOwner {
  /** Null for the events of all tenants. */
  readonly tenantId: number | null
  /** The key or user. */
  readonly actor: string
}

interface Reader extends ReaderOwner {
  readonly since: number
  /** Whether its credential still allows reading. */
  readonly isStillAdmitted: () => Promise<boolean>
  checkedAt: number
  /** The check under way; events wait for it. */
  check: Promise<void> | undefined
  readonly controller: Controller
  /** The reader has all events before those of the next flush. */
  isGreeted: boolean
}

/** How long the instances are followed after the last reader has left. */
const LINGER_MS = 30_000

interface LogEvents {
  readonly name: string
  readonly log: PeerLog
  readonly events: readonly SharedEvent[]
}

export class EventHub {
  readonly #events: EventsPort
  readonly #now: () => number
  readonly #ocs: PriceSource | undefined
  readonly #peers: PeerEvents | undefined
  #isFollowing = false
  /** Steady time. */
  #readAt = 0
  readonly #byTenant = new Map<number | null, Set<Reader>>()
  readonly #byActor = new Map<string, number>()
  #size = 0
  #seen: number
  #every: Every | undefined
  #cancelFlush: Cancel | undefined

  /** `now` is steady time in milliseconds. */
  constructor(events: EventsPort, now: () => number, ocs?: PriceSource, peers?: PeerEvents) {
    this.#peers = peers
    this.#events = events
    this.#now = now
    this.#ocs = ocs
    this.#seen = events.last
  }

  get size(): number {
    return this.#size
  }

  /** From here on events are written by themselves, at intervals while somebody reads them. */
  begin(every: Every): void {
    this.#every = every
    this.#flushWhileRead()
  }

  #flushWhileRead(): void {
    if (this.#size > 0 || this.#isFollowing)
      return void (this.#cancelFlush ??= this.#every?.(FLUSH_MS, () => this.flush()))
    this.#cancelFlush?.()
    this.#cancelFlush = undefined
  }

  /**
   * Opens a stream, or returns which limit is reached. `lastId` is the last event that the reader
   * received. The stream closes as soon as `isStillAdmitted` resolves with false.
   */
  open(
    { tenantId, actor }: ReaderOwner,
    lastId: string | undefined,
    isStillAdmitted: () => Promise<boolean>,
  ): ReadableStream<Uint8Array> | 'credential' | 'tenant' | 'all' {
    const full = this.#fullFor(tenantId, actor)
    if (full !== undefined) return full
    // A new reader gets the collected events from the log; it must not get them twice.
    this.flush()
    let reader: Reader | undefined
    return new ReadableStream<Uint8Array>(
      {
        start: (controller) => {
          const since = this.#now()
          const admission = { isStillAdmitted, checkedAt: since, check: undefined }
          reader = { tenantId, actor, since, ...admission, controller, isGreeted: false }
          this.#join(reader)
          if (this.#peers === undefined) this.#greet(reader, this.#greeting(tenantId, lastId))
          else void this.#greetWithPeers(reader, lastId, this.#peers)
        },
        cancel: () => {
          if (reader) this.#leave(reader)
        },
      },
      new ByteLengthQueuingStrategy({ highWaterMark: MAX_BACKLOG }),
    )
  }

  /** Writes the events collected since the last call. */
  flush(): void {
    this.#recheck()
    if (this.#isFollowing) this.#peers?.tick()
    const logs = this.#newsOfPeers()
    if (this.#seen === this.#events.last && logs.length === 0) return
    if (this.#size > 0) {
      const events = this.#events.after(this.#seen)
      for (const [tenantId, readers] of this.#byTenant) {
        const text =
          this.#peers === undefined
            ? this.#textOf(events, tenantId)
            : this.#textOfAll(events, logs, tenantId, this.#peers)
        if (text !== '') this.#write(readers, text)
      }
    }
    for (const [, log] of logs) log.seen = log.last
    this.#seen = this.#events.last
  }

  /** Keeps idle connections open, and closes streams past their maximum age. */
  keepAlive(): void {
    if (this.#size > 0) this.#readAt = this.#now()
    else if (this.#isFollowing && this.#now() - this.#readAt >= LINGER_MS) this.#unfollow()
    const oldest = this.#now() - MAX_LIFE_MS
    for (const readers of this.#byTenant.values()) {
      for (const reader of readers) if (reader.since <= oldest) this.#end(reader)
      this.#write(readers, ': keep-alive\n\n')
    }
  }

  /** Closes all streams. */
  close(): void {
    this.#unfollow()
    for (const readers of this.#byTenant.values()) for (const reader of readers) this.#end(reader)
  }

  #recheck(): void {
    const now = this.#now()
    for (const readers of this.#byTenant.values())
      for (const reader of readers) {
        if (now - reader.checkedAt < RECHECK_MS) continue
        reader.checkedAt = now
        // Undecided since the last time.
        if (reader.check !== undefined) this.#end(reader)
        else reader.check = this.#check(reader)
      }
  }

  async #check(reader: Reader): Promise<void> {
    const isAdmitted = await reader.isStillAdmitted()
    reader.check = undefined
    if (!isAdmitted) this.#end(reader)
  }

  #greeting(tenantId: number | null, lastId: string | undefined): string {
    if (lastId === undefined) return hello
    const sequence = sequenceOf(this.#events, lastId)
    const isComplete = sequence !== undefined && sequence >= this.#events.forgotten(tenantId)
    const missed = this.#textOf(this.#events.after(sequence ?? 0), tenantId)
    return isComplete ? hello + missed : `${hello}${gapText}${missed}`
  }

  #greet(reader: Reader, text: string): void {
    if (this.#byTenant.get(reader.tenantId)?.has(reader) !== true) return
    reader.isGreeted = true
    reader.controller.enqueue(encode(text))
  }

  async #greetWithPeers(
    reader: Reader,
    lastId: string | undefined,
    peers: PeerEvents,
  ): Promise<void> {
    this.#follow(peers)
    await peers.ready()
    const { tenantId } = reader
    const missed = lastId === undefined ? undefined : await missedOf(peers, lastId, tenantId)
    // No `await` from here on: the next flush sends all further events.
    this.flush()
    const unreachable = peers.unreachable()
    const partial = unreachable.length === 0 ? '' : partialText(unreachable)
    this.#greet(reader, `${hello}${this.#missedText(missed, tenantId, peers)}${partial}`)
  }

  #missedText(
    missed: MissedEvents | undefined,
    tenantId: number | null,
    peers: PeerEvents,
  ): string {
    if (missed === undefined) return ''
    const events = this.#events
    const own = ownPosition(missed.position, peers.self)
    const sequence = own === undefined ? undefined : sequenceOf(events, own)
    const isWhole = sequence !== undefined && sequence >= events.forgotten(tenantId)
    const others = [...peers.logs()].map(([name, log]) => ({ name, log, ...missed.of(name, log) }))
    const isComplete = isWhole && others.every((each) => each.isComplete) && missed.isComplete
    const text = this.#textWith(
      asEvents(events.after(sequence ?? 0), this.#ocs),
      others,
      tenantId,
      new Map([...missed.position, [peers.self, own ?? eventId(events, 0)] as const]),
    )
    return isComplete ? text : `${gapText}${text}`
  }

  #follow(peers: PeerEvents): void {
    this.#readAt = this.#now()
    if (this.#isFollowing) return
    this.#isFollowing = true
    this.#flushWhileRead()
    peers.start({
      onEvents: () => this.flush(),
      onGap: () => this.#broadcast(gapText),
      onReachability: () => this.#broadcast(partialText(peers.unreachable())),
    })
  }

  #unfollow(): void {
    this.#isFollowing = false
    this.#peers?.stop()
    this.#flushWhileRead()
  }

  /** Sends to the readers that are there now. */
  #broadcast(text: string): void {
    for (const readers of this.#byTenant.values()) this.#write(readers, text)
  }

  #newsOfPeers(): readonly (readonly [string, PeerLog])[] {
    if (this.#peers === undefined) return []
    return [...this.#peers.logs()].filter(([, log]) => log.seen !== log.last)
  }

  /** Each id says where every log is after its event. */
  #textOfAll(
    events: readonly EngineEvent[],
    logs: readonly (readonly [string, PeerLog])[],
    tenantId: number | null,
    peers: PeerEvents,
  ): string {
    const position = new Map([[peers.self, eventId(this.#events, this.#seen)]])
    for (const [name, log] of peers.logs()) position.set(name, log.idOf(log.seen) ?? '')
    const own = events.filter((event) => isVisible(event, tenantId))
    const news = logs.map(([name, log]) => ({ name, log, events: log.after(log.seen) }))
    return this.#textWith(asEvents(own, this.#ocs), news, tenantId, position)
  }

  #textWith(
    own: readonly SharedEvent[],
    others: readonly LogEvents[],
    tenantId: number | null,
    start: EventPosition,
  ): string {
    const position = new Map(start)
    let text = ''
    const add = (events: readonly SharedEvent[], name: string, idOf: (n: number) => string) => {
      for (const event of events) {
        if (tenantId !== null && event.tenantId !== tenantId) continue
        position.set(name, idOf(event.sequence))
        text += eventText(
          positionText(position),
          event.type,
          JSON.stringify(dataFor(event, tenantId)),
        )
      }
    }
    add(own, this.#peers?.self ?? '', (sequence) => eventId(this.#events, sequence))
    for (const { name, log, events } of others) add(events, name, (n) => log.idOf(n) ?? '')
    return text
  }

  #textOf(events: readonly EngineEvent[], tenantId: number | null): string {
    let text = ''
    for (const event of events)
      if (isVisible(event, tenantId))
        text += eventText(
          eventId(this.#events, event.sequence),
          event.type,
          JSON.stringify(eventViewFor(event, tenantId, this.#ocs)),
        )
    return text
  }

  /** One byte array shared by all readers. */
  #write(readers: ReadonlySet<Reader>, text: string): void {
    const bytes = encode(text)
    for (const reader of readers)
      if (!reader.isGreeted) continue
      else if (reader.check === undefined) this.#send(reader, bytes)
      else void reader.check.then(() => this.#send(reader, bytes))
  }

  #send(reader: Reader, bytes: Uint8Array): void {
    if (this.#byTenant.get(reader.tenantId)?.has(reader) !== true) return
    if ((reader.controller.desiredSize ?? 0) < bytes.length) this.#end(reader)
    else reader.controller.enqueue(bytes)
  }

  #end(reader: Reader): void {
    if (this.#leave(reader)) reader.controller.close()
  }

  #fullFor(tenantId: number | null, actor: string): 'credential' | 'tenant' | 'all' | undefined {
    if ((this.#byActor.get(actor) ?? 0) >= MAX_OF_CREDENTIAL) return 'credential'
    const ofTenant = tenantId === null ? 0 : (this.#byTenant.get(tenantId)?.size ?? 0)
    if (ofTenant >= MAX_OF_TENANT) return 'tenant'
    return this.#size >= MAX_READERS ? 'all' : undefined
  }

  #join(reader: Reader): void {
    this.#size += 1
    this.#byActor.set(reader.actor, (this.#byActor.get(reader.actor) ?? 0) + 1)
    const readers = this.#byTenant.get(reader.tenantId)
    if (readers) readers.add(reader)
    else this.#byTenant.set(reader.tenantId, new Set([reader]))
    this.#flushWhileRead()
  }

  /** False: it has left before. */
  #leave(reader: Reader): boolean {
    const readers = this.#byTenant.get(reader.tenantId)
    if (readers?.delete(reader) !== true) return false
    this.#size -= 1
    const rest = (this.#byActor.get(reader.actor) ?? 1) - 1
    if (rest === 0) this.#byActor.delete(reader.actor)
    else this.#byActor.set(reader.actor, rest)
    if (readers.size === 0) this.#byTenant.delete(reader.tenantId)
    this.#flushWhileRead()
    return true
  }
}

const hello = 'retry: 2000\n: welcome\n\n'
const gapText = 'event: stream.gap\ndata: {}\n\n'

/** Tells a reader the instances whose events do not come now. */
const partialText = (unreachable: readonly string[]): string =>
  `event: stream.partial\ndata: ${JSON.stringify({ unreachable_nodes: unreachable })}\n\n`

const eventText = (id: string, type: string, data: string): string =>
  `id: ${id}\nevent: ${type}\ndata: ${data}\n\n`

const encoder = new TextEncoder()
const encode = (text: string): Uint8Array => encoder.encode(text)
