/**
 * `max_calls` and `max_cps` of carriers. Live calls are counted by call control; starts are
 * remembered for one second. Where other nodes count against the same limits, this one has a share
 * of each.
 */
import type { Share } from '../../schema/contracts/limits.ts'
import type { SharedCounting } from '../shares/call-limit.ts'
import type { CarrierRecord } from './routing-records.ts'

const WINDOW_MS = 1_000

type LimitedCarrier = Pick<CarrierRecord, 'carrierId' | 'maxCalls' | 'maxCps'>

export class CarrierLimits {
  readonly #activeCalls: (carrierId: number) => number
  readonly #now: () => number
  readonly #shared: SharedCounting | undefined
  readonly #byCarrier = new Map<number, { readonly calls: Share; readonly starts: Share }>()
  /** Times of the starts in the last second, oldest first. */
  readonly #starts = new Map<number, number[]>()

  constructor(
    activeCalls: (carrierId: number) => number,
    now: () => number,
    shared?: SharedCounting,
  ) {
    this.#activeCalls = activeCalls
    this.#now = now
    this.#shared = shared
  }

  /** Whether no call may begin, by the counts of this node. */
  isReached(carrier: LimitedCarrier): boolean {
    return this.#reached(carrier) !== undefined
  }

  /** For the sentence of a call that is refused. */
  describe(carrier: LimitedCarrier): string {
    const { carrierId, maxCalls, maxCps } = carrier
    const values = { max_calls: maxCalls, max_cps: maxCps }
    const name = this.#reached(carrier)
    const set = Object.entries(values).filter(([, value]) => value > 0)
    const limits = name === undefined ? set : [[name, values[name]]]
    return `carrier ${carrierId}, ${limits.map((limit) => limit.join(' ')).join(', ')}`
  }

  #reached(carrier: LimitedCarrier): 'max_calls' | 'max_cps' | undefined {
    const { carrierId, maxCalls, maxCps } = carrier
    if (maxCalls > 0 && this.#activeCalls(carrierId) >= maxCalls) return 'max_calls'
    if (maxCps > 0 && this.#recentStarts(carrierId).length >= maxCps) return 'max_cps'
    const { calls, starts } = this.#sharesOf(carrier)
    if (calls?.mayAdmit(maxCalls) === false) return 'max_calls'
    return starts?.mayAdmit(maxCps) === false ? 'max_cps' : undefined
  }

  /**
   * Counts a start if a call may begin; it is live in this turn of the event loop. May have to ask
   * other nodes.
   */
  admit(carrier: LimitedCarrier): boolean | Promise<boolean> {
    if (this.isReached(carrier)) return false
    const { calls, starts } = this.#sharesOf(carrier)
    if (calls?.admits(carrier.maxCalls) !== false && starts?.admits(carrier.maxCps) !== false) {
      this.noteStart(carrier)
      return true
    }
    return this.#ask(carrier, calls, starts)
  }

  async #ask(
    carrier: LimitedCarrier,
    calls: Share | undefined,
    starts: Share | undefined,
  ): Promise<boolean> {
    const { maxCalls, maxCps } = carrier
    const holds = await Promise.all([calls?.obtain(maxCalls), starts?.obtain(maxCps)])
    // Only the share that is held for this call: other calls that wait are not counted yet.
    const isAdmitted =
      holds.every((hold) => hold?.isGiven !== false) &&
      calls?.admits(maxCalls, 1) !== false &&
      starts?.admits(maxCps, 1) !== false
    if (isAdmitted) this.noteStart(carrier)
    holds[1]?.end()
    // Until call control has counted the call, its room is not given to another one.
    if (isAdmitted) this.#shared?.schedule(() => holds[0]?.end(), 0)
    else holds[0]?.end()
    return isAdmitted
  }

  /** A call to or from the carrier starts now. */
  noteStart({ carrierId, maxCps }: LimitedCarrier): void {
    if (maxCps === 0) return
    this.#starts.set(carrierId, [...this.#recentStarts(carrierId), this.#now()])
  }

  /** Its calls are counted without being asked for: some have been resumed, or the limit is new. */
  noteCalls(carrier: LimitedCarrier): void {
    if (this.#activeCalls(carrier.carrierId) > 0)
      this.#sharesOf(carrier).calls?.noted(carrier.maxCalls)
  }

  /** Forgets carriers that are gone. */
  keepOnly(carrierIds: ReadonlySet<number>): void {
    for (const known of [this.#starts, this.#byCarrier])
      for (const carrierId of known.keys()) if (!carrierIds.has(carrierId)) known.delete(carrierId)
  }

  /** The shares of the limits that the carrier has. */
  #sharesOf({ carrierId, maxCalls, maxCps }: LimitedCarrier): {
    readonly calls?: Share | undefined
    readonly starts?: Share | undefined
  } {
    const { shares } = this.#shared ?? {}
    if (shares === undefined || (maxCalls === 0 && maxCps === 0)) return none
    let both = this.#byCarrier.get(carrierId)
    if (both === undefined) {
      const name = `carrier ${carrierId}`
      both = {
        calls: shares.of(`${name} calls`, () => this.#activeCalls(carrierId)),
        starts: shares.of(`${name} starts`, () => this.#recentStarts(carrierId).length),
      }
      this.#byCarrier.set(carrierId, both)
    }
    return {
      calls: maxCalls > 0 ? both.calls : undefined,
      starts: maxCps > 0 ? both.starts : undefined,
    }
  }

  #recentStarts(carrierId: number): readonly number[] {
    const since = this.#now() - WINDOW_MS
    return (this.#starts.get(carrierId) ?? []).filter((startedAt) => startedAt > since)
  }
}

const none = {}
