import type { SharedEvent } from './event-view.ts'

/**
 * Stored events of each instance, for readers that reconnect. Older ones are requested from the
 * instance.
 */
const MAX_EVENTS = 5_000

/** The events of another instance since this one follows it. */
export class PeerLog {
  /** Epoch of the numbering; undefined: the instance was never followed. */
  epoch: string | undefined
  /** The last event that readers were sent, or that came before the first of them. */
  seen = 0
  #events: SharedEvent[] = []
  #first = 1
  #last = 0

  /** False: there may be events between what is here and what comes now. */
  begin(epoch: string, after: number): boolean {
    if (epoch === this.epoch && after === this.#last) return true
    this.epoch = epoch
    this.seen = after
    this.#events = []
    this.#first = after + 1
    this.#last = after
    return false
  }

  add(event: SharedEvent): void {
    if (event.sequence <= this.#last) return
    this.#events.push(event)
    this.#last = event.sequence
    if (this.#events.length <= 2 * MAX_EVENTS) return
    const forgotten = this.#events.splice(0, MAX_EVENTS)
    this.#first = (forgotten.at(-1)?.sequence ?? 0) + 1
  }

  get last(): number {
    return this.#last
  }

  /** Number of the oldest event that is here, if one came. */
  get first(): number {
    return this.#first
  }

  after(sequence: number): readonly SharedEvent[] {
    return this.#events.filter((event) => event.sequence > sequence)
  }

  idOf(sequence: number): string | undefined {
    return this.epoch && `${this.epoch}-${sequence}`
  }
}
