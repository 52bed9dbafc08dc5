/** The events of this node as other nodes follow them: one line each, and an empty one while nothing happens. */
import type { EventsPort } from '../../../schema/contracts/engine-events.ts'
import type { PriceSource } from '../../calls/active-call-view.ts'
import { sequenceOf } from './event-view.ts'
import { shared } from './shared-event.ts'

/** More nodes than that are no installation; each has one, and a second one while it is started anew. */
const MAX_FOLLOWERS = 256
/** Unread bytes of one follower. */
const MAX_BACKLOG = 8_388_608
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

  /** `now` is steady time. */
  constructor(events: EventsPort, now: () => number, ocs: PriceSource | undefined) {
    this.#events = events
    this.#now = now
    this.#ocs = ocs
    this.#seen = events.last
    this.#beatAt = now()
  }

  /** `after`: what the follower has; from there if it is all kept, from now on otherwise. */
  open(after: string | undefined): ReadableStream<Uint8Array> | undefined {
    if (this.#followers.size >= MAX_FOLLOWERS) return undefined
    this.flush()
    let own: Controller
    return new ReadableStream<Uint8Array>(
      {
        start: (controller) => {
          own = controller
          this.#followers.add(controller)
          controller.enqueue(encode(this.#beginning(after)))
        },
        cancel: () => void this.#followers.delete(own),
      },
      new ByteLengthQueuingStrategy({ highWaterMark: MAX_BACKLOG }),
    )
  }

  /** Called as often as readers are sent what is new. */
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
    if (this.#followers.delete(follower)) follower.close()
  }

  #beginning(id: string | undefined): string {
    const known = id === undefined ? undefined : sequenceOf(this.#events, id)
    const isKept = known !== undefined && known >= this.#events.forgotten(null)
    const after = isKept ? known : this.#events.last
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
