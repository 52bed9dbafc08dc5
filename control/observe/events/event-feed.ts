/**
 * The events of this instance as other instances follow them: one line each, and an empty one while
 * nothing happens.
 */
import type { Cancel, Every } from '../../../schema/clock.ts'
import type { EngineEvent, EventsPort } from '../../../schema/contracts/engine.ts'
import type { PriceSource } from '../../calls/active-call-view.ts'
import {
  type LogPart,
  ONLY_INSTANCE,
  parsePosition,
  type EventPosition,
  sequenceOf,
  shared,
  type SharedEvent,
} from './event-view.ts'
import type { PeerEvents } from './peer-events.ts'
import type { PeerLog } from './peer-log.ts'

/**
 * More instances than that are no installation; each has one, and a second one while it is started
 * anew.
 */
const MAX_FOLLOWERS = 256
/** Unread bytes of one follower. */
const MAX_BACKLOG = 8_388_608
/** The maximum delay of an event. */
export const FLUSH_MS = 250
/** How often something is sent. */
const BEAT_MS = 1_000

type Controller = ReadableStreamDefaultController<Uint8Array>

export class EventFeed {
  readonly #events: EventsPort
  readonly #now: () => number
  readonly #ocs: PriceSource | undefined
  readonly #followers = new Set<Controller>()
  #seen: number
  #beatAt: number
  #every: Every | undefined
  #cancelFlush: Cancel | undefined

  /** `now` is steady time. */
  constructor(events: EventsPort, now: () => number, ocs: PriceSource | undefined) {
    this.#events = events
    this.#now = now
    this.#ocs = ocs
    this.#seen = events.last
    this.#beatAt = now()
  }

  /**
   * `after`: the last event that the follower has. The stream goes on there if the log reaches back
   * so far, otherwise from now on.
   */
  open(after: string | undefined): ReadableStream<Uint8Array> | undefined {
    if (this.#followers.size >= MAX_FOLLOWERS) return undefined
    this.flush()
    let own: Controller
    return new ReadableStream<Uint8Array>(
      {
        start: (controller) => {
          own = controller
          this.#followers.add(controller)
          this.#flushWhileFollowed()
          controller.enqueue(encode(this.#beginning(after)))
        },
        cancel: () => void this.#leave(own),
      },
      new ByteLengthQueuingStrategy({ highWaterMark: MAX_BACKLOG }),
    )
  }

  /** From here on events are written by themselves, at intervals while somebody follows. */
  begin(every: Every): void {
    this.#every = every
    this.#flushWhileFollowed()
  }

  #flushWhileFollowed(): void {
    if (this.#followers.size > 0)
      return void (this.#cancelFlush ??= this.#every?.(FLUSH_MS, () => this.flush()))
    this.#cancelFlush?.()
    this.#cancelFlush = undefined
  }

  /** Writes the events collected since the last call, or that the feed goes on. */
  flush(): void {
    const isBeat = this.#now() - this.#beatAt >= BEAT_MS
    if (this.#followers.size > 0 && (isBeat || this.#seen !== this.#events.last)) {
      const bytes = encode(`${this.#linesAfter(this.#seen)}\n`)
      for (const follower of this.#followers)
        if ((follower.desiredSize ?? 0) < bytes.length) this.#end(follower)
        else follower.enqueue(bytes)
      this.#beatAt = this.#now()
    }
    this.#seen = this.#events.last
  }

  close(): void {
    for (const follower of this.#followers) this.#end(follower)
  }

  #end(follower: Controller): void {
    if (this.#leave(follower)) follower.close()
  }

  /** False: it has left before. */
  #leave(follower: Controller): boolean {
    if (!this.#followers.delete(follower)) return false
    this.#flushWhileFollowed()
    return true
  }

  #beginning(id: string | undefined): string {
    const known = id === undefined ? undefined : sequenceOf(this.#events, id)
    const isStored = known !== undefined && known >= this.#events.forgotten(null)
    const after = isStored ? known : this.#events.last
    const head = { epoch: this.#events.epoch.toString(36), after }
    return `${JSON.stringify(head)}\n${this.#linesAfter(after)}`
  }

  #linesAfter(sequence: number): string {
    return this.#events
      .after(sequence)
      .map((event) => `${JSON.stringify(shared(event, this.#ocs))}\n`)
      .join('')
  }
}

const encoder = new TextEncoder()
const encode = (text: string): Uint8Array => encoder.encode(text)

/** The events of the other instances that a returning reader has missed. */
export interface MissedEvents {
  readonly position: EventPosition
  /** Every instance of the position could be asked. */
  readonly isComplete: boolean
  /**
   * The events of a log that the reader lacks, up to the last one sent to the other readers. No
   * `await` may follow before these are sent.
   */
  of(
    instance: string,
    log: PeerLog,
  ): { readonly events: readonly SharedEvent[]; isComplete: boolean }
}

/** The id of this instance's log in a position, which may be of a time when it was alone. */
export const ownPosition = (position: EventPosition, self: string): string | undefined =>
  position.get(self) ?? position.get(ONLY_INSTANCE)

export const asEvents = (
  events: readonly EngineEvent[],
  ocs: PriceSource | undefined,
): SharedEvent[] => events.map((event) => shared(event, ocs))

export async function missedOf(
  peers: PeerEvents,
  lastId: string,
  tenantId: number | null,
): Promise<MissedEvents> {
  const position = parsePosition(lastId)
  const parts = new Map<string, LogPart>()
  // The instance itself is asked for events that are older than the log here.
  const older = [...peers.logs()].filter(([name, log]) => isOlder(position.get(name), log))
  if (older.length > 0)
    for (const [name, part] of await peers.parts(position, tenantId)) parts.set(name, part)
  const known = new Set([...peers.logs()].map(([name]) => name))
  const isComplete = [...position.keys()].every(
    (name) => name === ONLY_INSTANCE || name === peers.self || known.has(name),
  )
  const own = ownPosition(position, peers.self)
  const byInstance = new Map([...position].filter(([name]) => name !== ONLY_INSTANCE))
  if (own !== undefined) byInstance.set(peers.self, own)
  return {
    position: byInstance,
    isComplete,
    of: (name, log) => missing(position.get(name), log, parts.get(name)),
  }
}

function missing(
  id: string | undefined,
  log: PeerLog,
  part: LogPart | undefined,
): ReturnType<MissedEvents['of']> {
  const upToNow = (event: SharedEvent): boolean => event.sequence <= log.seen
  const sequence = sequenceIn(id, log)
  if (sequence !== undefined && sequence >= log.first - 1)
    return { events: log.after(sequence).filter(upToNow), isComplete: true }
  if (part === undefined || part.epoch !== log.epoch)
    return { events: id === undefined ? [] : log.after(0).filter(upToNow), isComplete: false }
  const joined = [...part.events, ...log.after(part.last)].filter(upToNow)
  const isJoined = part.last >= log.first - 1
  return {
    events: id === undefined ? [] : joined,
    isComplete: isJoined && part.isComplete,
  }
}

const isOlder = (id: string | undefined, log: PeerLog): boolean => {
  const sequence = sequenceIn(id, log)
  return id !== undefined && (sequence === undefined || sequence < log.first - 1)
}

/** Undefined: another numbering, of an earlier run of the instance. */
function sequenceIn(id: string | undefined, { epoch, last }: PeerLog): number | undefined {
  const [start, text = ''] = (id ?? '').split('-')
  return start === epoch && Number(text) <= last ? Number(text) : undefined
}
