/**
 * Sends the engine's events to many readers. Events are collected for a moment and written once per tenant.
 * A reader that does not keep up is disconnected: it must not delay calls.
 */
import type { EngineEvent, EventsPort } from '../../schema/contracts/engine-events.ts'
import type { PriceSource } from '../pbx/calls/active-call-view.ts'
import { eventId, eventView, isVisible, sequenceOf } from './event-view.ts'

/** How often to call `flush`: the maximum delay of an event. */
export const FLUSH_MS = 250
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
}

export class EventHub {
  readonly #events: EventsPort
  readonly #now: () => number
  readonly #ocs: PriceSource | undefined
  readonly #byTenant = new Map<number | null, Set<Reader>>()
  readonly #byActor = new Map<string, number>()
  #size = 0
  #seen: number

  /** `now` is steady time in milliseconds. */
  constructor(events: EventsPort, now: () => number, ocs?: PriceSource) {
    this.#events = events
    this.#now = now
    this.#ocs = ocs
    this.#seen = events.last
  }

  get size(): number {
    return this.#size
  }

  /**
   * Opens a stream, or returns which limit is reached. `lastId` is the last event that the reader received.
   * The stream closes as soon as `isStillAdmitted` resolves with false.
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
          reader = { tenantId, actor, since, ...admission, controller }
          this.#join(reader)
          controller.enqueue(encode(this.#greeting(tenantId, lastId)))
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
    if (this.#seen === this.#events.last) return
    if (this.#size > 0) {
      const events = this.#events.after(this.#seen)
      for (const [tenantId, readers] of this.#byTenant) {
        const text = this.#textOf(events, tenantId)
        if (text !== '') this.#write(readers, text)
      }
    }
    this.#seen = this.#events.last
  }

  /** Keeps idle connections open, and closes streams past their maximum age. */
  keepAlive(): void {
    const oldest = this.#now() - MAX_LIFE_MS
    for (const readers of this.#byTenant.values()) {
      for (const reader of readers) if (reader.since <= oldest) this.#end(reader)
      this.#write(readers, ': keep-alive\n\n')
    }
  }

  /** Closes all streams. */
  close(): void {
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
    const hello = 'retry: 2000\n: welcome\n\n'
    if (lastId === undefined) return hello
    const sequence = sequenceOf(this.#events, lastId)
    const isComplete = sequence !== undefined && sequence >= this.#events.forgotten(tenantId)
    const missed = this.#textOf(this.#events.after(sequence ?? 0), tenantId)
    return isComplete ? hello + missed : `${hello}event: stream.gap\ndata: {}\n\n${missed}`
  }

  #textOf(events: readonly EngineEvent[], tenantId: number | null): string {
    let text = ''
    for (const event of events)
      if (isVisible(event, tenantId))
        text += `id: ${eventId(this.#events, event.sequence)}\nevent: ${event.type}\ndata: ${JSON.stringify(eventView(event, this.#ocs))}\n\n`
    return text
  }

  /** One byte array shared by all readers. */
  #write(readers: ReadonlySet<Reader>, text: string): void {
    const bytes = encode(text)
    for (const reader of readers)
      if (reader.check === undefined) this.#send(reader, bytes)
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
    return true
  }
}

const encoder = new TextEncoder()
const encode = (text: string): Uint8Array => encoder.encode(text)
