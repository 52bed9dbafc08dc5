/** `max_calls` and `max_cps` of carriers. */
import { CallLimit, type SharedCounting } from '../shares/call-limit.ts'
import { LimitedCounter } from '../shares/limited-counter.ts'
import { RollingSecond } from '../shares/rolling-second.ts'
import type { CarrierRecord } from './routing-records.ts'

type LimitedCarrier = Pick<CarrierRecord, 'carrierId' | 'maxCalls' | 'maxCps'>

interface Starts {
  readonly times: RollingSecond
  readonly counter: LimitedCounter
}

export class CarrierLimits {
  readonly #now: () => number
  readonly #shared: SharedCounting | undefined
  readonly #calls: CallLimit
  readonly #starts = new Map<number, Starts>()

  constructor(
    activeCalls: (carrierId: number) => number,
    now: () => number,
    shared?: SharedCounting,
  ) {
    this.#now = now
    this.#shared = shared
    this.#calls = new CallLimit('carrier', activeCalls, shared)
  }

  /** Whether no call may begin, as far as this instance knows. */
  isReached(carrier: LimitedCarrier): boolean {
    return this.#reached(carrier) !== undefined
  }

  /** Names the limit in the sentence of a call that is refused. */
  describe(carrier: LimitedCarrier): string {
    const { carrierId, maxCalls, maxCps } = carrier
    const values = { max_calls: maxCalls, max_cps: maxCps }
    const name = this.#reached(carrier)
    const set = Object.entries(values).filter(([, value]) => value > 0)
    const limits = name === undefined ? set : [[name, values[name]]]
    return `carrier ${carrierId}, ${limits.map((limit) => limit.join(' ')).join(', ')}`
  }

  #reached({ carrierId, maxCalls, maxCps }: LimitedCarrier): 'max_calls' | 'max_cps' | undefined {
    if (maxCalls === 0 && maxCps === 0) return undefined
    const calls = this.#calls.of(carrierId)
    const starts = this.#startsOf(carrierId).counter
    if (calls.isReachedHere(maxCalls)) return 'max_calls'
    if (starts.isReachedHere(maxCps)) return 'max_cps'
    if (calls.isReachedElsewhere(maxCalls)) return 'max_calls'
    return starts.isReachedElsewhere(maxCps) ? 'max_cps' : undefined
  }

  /**
   * Counts a start if a call may begin; it is live in this turn of the event loop. May have to ask
   * other instances.
   */
  admit(carrier: LimitedCarrier): boolean | Promise<boolean> {
    const { carrierId, maxCalls, maxCps } = carrier
    if (maxCalls === 0 && maxCps === 0) return true
    if (this.isReached(carrier)) return false
    const calls = this.#calls.of(carrierId)
    const starts = this.#startsOf(carrierId).counter
    if (!calls.admits(maxCalls) || !starts.admits(maxCps)) return this.#ask(carrier, calls, starts)
    this.noteStart(carrier)
    return true
  }

  async #ask(
    carrier: LimitedCarrier,
    calls: LimitedCounter,
    starts: LimitedCounter,
  ): Promise<boolean> {
    const { maxCalls, maxCps } = carrier
    const [call, start] = await Promise.all([calls.obtain(maxCalls), starts.obtain(maxCps)])
    // Only the slots that are held for this call: other calls that wait are not counted yet.
    const isAdmitted =
      call?.isGiven !== false &&
      start?.isGiven !== false &&
      calls.admits(maxCalls, call) &&
      starts.admits(maxCps, start)
    if (isAdmitted) this.noteStart(carrier)
    start?.end()
    this.#calls.release(call, isAdmitted)
    return isAdmitted
  }

  /** A call to or from the carrier starts now. */
  noteStart({ carrierId, maxCps }: LimitedCarrier): void {
    if (maxCps > 0) this.#startsOf(carrierId).times.add(this.#now())
  }

  /** Counts calls that were not admitted here: some have been resumed, or the limit is new. */
  noteCalls({ carrierId, maxCalls }: LimitedCarrier): void {
    this.#calls.note(carrierId, maxCalls)
  }

  /** Forgets carriers that are gone. */
  keepOnly(carrierIds: ReadonlySet<number>): void {
    this.#calls.keepOnly(carrierIds)
    for (const id of this.#starts.keys()) if (!carrierIds.has(id)) this.#starts.delete(id)
  }

  #startsOf(carrierId: number): Starts {
    const known = this.#starts.get(carrierId)
    if (known !== undefined) return known
    const times = new RollingSecond()
    // The share may outlive this entry, so it looks for the one of the moment.
    const used = (): number => this.#starts.get(carrierId)?.times.count(this.#now()) ?? 0
    const resource = `carrier ${carrierId} starts`
    const starts = { times, counter: new LimitedCounter(resource, used, this.#shared?.shares) }
    this.#starts.set(carrierId, starts)
    return starts
  }
}
