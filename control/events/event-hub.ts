/**
 * Many readers of the engine's events. Events are gathered for a moment and written once for all
 * readers of a tenant; who does not take them in time is let go, because nobody may make the calls wait.
 */
import type { EngineEvent, EventsPort } from '../../schema/contracts/engine-events.ts'
import { eventId, eventView, isVisible, sequenceOf } from './event-view.ts'

/** How often `flush` is to be called: what an event may be late. */
export const FLUSH_MS = 250
/** How often `keepAlive` is to be called. */
export const KEEP_ALIVE_MS = 15_000

const MAX_READERS = 2_000
/** So that neither a credential nor a tenant takes all of them. */
const MAX_OF_TENANT = 500
const MAX_OF_CREDENTIAL = 100
/** Unread bytes of one reader; more is a reader that does not read. */
const MAX_BACKLOG = 1_048_576
/** After it a reader has to come again. */
const MAX_LIFE_MS = 15 * 60_000
/** How long a reader whose credential has ended may be told more. */
const RECHECK_MS = 1_000

type Controller = ReadableStreamDefaultController<Uint8Array>

/** Who reads. */
export interface ReaderOwner {
  /** Null: what happens to all tenants. */
  readonly tenantId: number | null
  /** The key or user. */
  readonly actor: string
}

interface Reader extends ReaderOwner {
  readonly since: number
  /** Whether its credential still lets it read. */
  readonly holds: () => boolean
  checkedAt: number
  readonly controller: Controller
}

export class EventHub {
  readonly #events: EventsPort
  readonly #now: () => number
  readonly #byTenant = new Map<number | null, Set<Reader>>()
  readonly #byActor = new Map<string, number>()
  #size = 0
  #seen: number

  /** `now` in milliseconds by the steady clock. */
  constructor(events: EventsPort, now: () => number) {
    this.#events = events
    this.#now = now
    this.#seen = events.last
  }

  get size(): number {
    return this.#size
  }

  /**
   * Or who has as many readers as there may be. `lastId` as the reader has seen it; it is let go
   * as soon as `holds` is false.
   */
  open(
    { tenantId, actor }: ReaderOwner,
    lastId: string | undefined,
    holds: () => boolean,
  ): ReadableStream<Uint8Array> | 'credential' | 'tenant' | 'all' {
    const full = this.#fullFor(tenantId, actor)
    if (full !== undefined) return full
    // Whoever comes now gets what has gathered from the log, and nothing twice.
    this.flush()
    let reader: Reader | undefined
    return new ReadableStream<Uint8Array>(
      {
        start: (controller) => {
          const since = this.#now()
          reader = { tenantId, actor, since, holds, checkedAt: since, controller }
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

  /** Writes what has happened since the last time. */
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

  /** Keeps idle connections open, and lets readers of old age go. */
  keepAlive(): void {
    const oldest = this.#now() - MAX_LIFE_MS
    for (const readers of this.#byTenant.values()) {
      for (const reader of readers) if (reader.since <= oldest) this.#end(reader)
      this.#write(readers, ': keep-alive\n\n')
    }
  }

  /** Ends every stream. */
  close(): void {
    for (const readers of this.#byTenant.values()) for (const reader of readers) this.#end(reader)
  }

  #recheck(): void {
    const now = this.#now()
    for (const readers of this.#byTenant.values())
      for (const reader of readers) {
        if (now - reader.checkedAt < RECHECK_MS) continue
        reader.checkedAt = now
        if (!reader.holds()) this.#end(reader)
      }
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
        text += `id: ${eventId(this.#events, event.sequence)}\nevent: ${event.type}\ndata: ${JSON.stringify(eventView(event))}\n\n`
    return text
  }

  /** One array of bytes for all of them. */
  #write(readers: ReadonlySet<Reader>, text: string): void {
    const bytes = encode(text)
    for (const reader of readers)
      if ((reader.controller.desiredSize ?? 0) < bytes.length) this.#end(reader)
      else reader.controller.enqueue(bytes)
  }

  #end(reader: Reader): void {
    this.#leave(reader)
    reader.controller.close()
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

  #leave(reader: Reader): void {
    const readers = this.#byTenant.get(reader.tenantId)
    if (readers?.delete(reader) !== true) return
    this.#size -= 1
    const rest = (this.#byActor.get(reader.actor) ?? 1) - 1
    if (rest === 0) this.#byActor.delete(reader.actor)
    else this.#byActor.set(reader.actor, rest)
    if (readers.size === 0) this.#byTenant.delete(reader.tenantId)
  }
}

const encoder = new TextEncoder()
const encode = (text: string): Uint8Array => encoder.encode(text)
