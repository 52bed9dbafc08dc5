/** What happens, numbered, for whoever looks: the last events, in memory. */
import type { ActiveCall, LiveCallEvent } from './call/active-calls.ts'
import type { CallRecord } from '../schema/call-record.ts'

export type EngineHappening =
  | {
      readonly type: LiveCallEvent
      readonly tenantId: number | null
      /** As it was at that moment. */
      readonly call: ActiveCall
    }
  | {
      readonly type: 'call.ended'
      readonly tenantId: number | null
      readonly record: CallRecord
    }
  | {
      readonly type: 'node.down' | 'node.up'
      readonly tenantId: number | null
      readonly setId: number
      readonly destination: string
      readonly state: 'active' | 'probing' | 'inactive'
    }
  | {
      readonly type: 'storage.failed' | 'storage.recovered'
      readonly tenantId: null
      /** Of `storage.failed`, one line for the operator. */
      readonly reason: string | null
    }
  | {
      readonly type: 'registration'
      readonly tenantId: number | null
      readonly extension: string
      readonly domain: string
      /** Of how many phones the extension can be reached now. */
      readonly contacts: number
    }

export type EngineEvent = EngineHappening & {
  /** Ascending by one. */
  readonly sequence: number
  /** Milliseconds UTC. */
  readonly at: number
}

/** 100 calls a second for 50 seconds; about 0.4 kB each. */
const CAPACITY = 20_000

export class EventLog {
  /** Milliseconds UTC; with the sequence it names an event for ever. */
  readonly epoch: number
  readonly #now: () => number
  readonly #ring: EngineEvent[] = []
  /** By tenant, so that the calls of others do not make one miss something. */
  readonly #forgotten = new Map<number | null, number>()
  #last = 0

  constructor(now: () => number) {
    this.#now = now
    this.epoch = now()
  }

  /** Sequence of the newest event; 0: there is none yet. */
  get last(): number {
    return this.#last
  }

  /** Sequence of the newest event of this tenant (null: of all) that is not kept any more; 0: all are. */
  forgotten(tenantId: number | null): number {
    if (tenantId === null) return Math.max(0, this.#last - CAPACITY)
    return this.#forgotten.get(tenantId) ?? 0
  }

  add(happening: EngineHappening): void {
    const sequence = ++this.#last
    const oldest = this.#ring[sequence % CAPACITY]
    if (oldest) this.#forgotten.set(oldest.tenantId, oldest.sequence)
    this.#ring[sequence % CAPACITY] = { ...happening, sequence, at: this.#now() }
  }

  /** Those that came after `sequence` and are still kept, oldest first. */
  after(sequence: number): readonly EngineEvent[] {
    const events: EngineEvent[] = []
    for (let next = Math.max(sequence, this.forgotten(null)) + 1; next <= this.#last; next++) {
      const event = this.#ring[next % CAPACITY]
      if (event) events.push(event)
    }
    return events
  }
}
