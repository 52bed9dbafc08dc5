import type { SharedEvent } from './shared-event.ts'

/** Kept of each node, for readers that come back in a moment. Older ones are asked of the node. */
const KEPT = 5_000

/** The events of another node since this one follows it. */
export class PeerLog {
  /** Of the numbering; undefined: it was never followed. */
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
    if (this.#events.length <= 2 * KEPT) return
    const forgotten = this.#events.splice(0, KEPT)
    this.#first = (forgotten.at(-1)?.sequence ?? 0) + 1
  }

  get last(): number {
    return this.#last
  }

  /** Of the oldest event that is here, if it came. */
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
