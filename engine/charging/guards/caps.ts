/**
 * What the processes of an installation may spend within caps. Each takes from the row of a cap what its calls need, at
 * the moment when they need it, and gives back what they have not spent, within a second: the sum of what all have taken
 * is never more than the cap, and so the sum of all grants. There is no other agreement between them: what a process has
 * taken when it dies counts as spent.
 */
import { UNANSWERED_WAIT_MS, waitForAnswer } from '../../../schema/answer-wait.ts'
import type { Cancel, Schedule } from '../../../schema/clock.ts'
import type { Log } from '../../../schema/contracts/log.ts'
import type { SpendGuard } from '../../../schema/contracts/limits.ts'
import { OneAtATime } from '../../../schema/one-at-a-time.ts'
import type { Store } from '../../../schema/open.ts'
import { startOfDay } from '../customers/customer.ts'
import { giveBack, loadUse, take } from './guard-rows.ts'
import { Meter } from './meter.ts'

export interface CapsDeps {
  readonly store: Store
  /** Milliseconds UTC: days of caps are those of the calendar. */
  readonly wallNow: () => number
  /** Milliseconds by the steady clock. */
  readonly now: () => number
  readonly schedule: Schedule
  readonly log: Log
}

/** Requests of this time are one statement per cap. */
const GROUP_MS = 2
/** After a cap was found used up, it is not asked again for so long. */
const QUIET_MS = 250
/** What is not needed is given back after this time. */
const LOOK_MS = 1_000
const MAX_WAITING = 10_000

interface Waiting {
  readonly micros: number
  readonly done: (isHeard: boolean) => void
}

export class Caps {
  readonly #deps: CapsDeps
  readonly #meters = new Map<string, Meter>()
  readonly #waiting = new Map<Meter, Waiting[]>()
  readonly #work = new OneAtATime(() => this.#exchange())
  #waitingCalls = 0
  #isFailing = false
  #isStopped = false
  #cancelSoon: Cancel | undefined
  #cancelLook: Cancel | undefined

  constructor(deps: CapsDeps) {
    this.#deps = deps
  }

  /** Of the period that it is now. */
  meterOf(guard: SpendGuard): Meter {
    const start = this.#periodOf(guard)
    const known = this.#meters.get(guard.guardUuid)
    if (known?.periodStart === start) return known
    // What is free of the period before is worth nothing in this one.
    const meter = new Meter(guard, start, () => this.#lookLater())
    this.#meters.set(guard.guardUuid, meter)
    return meter
  }

  #periodOf({ per, startsAt }: SpendGuard): number {
    return per === 'day' ? Math.max(startsAt, startOfDay(this.#deps.wallNow())) : startsAt
  }

  /** Takes over what guards say now, and what was taken of them. `caps` are all that there are. */
  async load(caps: readonly SpendGuard[]): Promise<void> {
    const byUuid = new Map(caps.map((guard) => [guard.guardUuid, guard]))
    for (const [uuid, meter] of this.#meters) {
      const guard = byUuid.get(uuid)
      if (guard !== undefined) {
        meter.guard = guard
        meter.isOver = false
        if (meter.isMissing) this.#lookLater()
      } else if (meter.isIdle) this.#meters.delete(uuid)
    }
    if (caps.length === 0) return
    const starts = caps.map((guard) => this.#periodOf(guard))
    for (const used of await loadUse(this.#deps.store, Math.min(...starts))) {
      const guard = byUuid.get(used.guard_uuid)
      const meter = guard && this.meterOf(guard)
      if (meter?.periodStart === used.period_start) meter.noteTaken(used.taken_micros)
    }
  }

  /**
   * Resolves when so much is free on each of them, or when there is no more. False: the database has not answered in
   * time, and may have more.
   */
  async obtain(meters: readonly Meter[], micros: number): Promise<boolean> {
    const answers = await Promise.all(meters.map((meter) => this.#obtain(meter, micros)))
    return answers.every(Boolean)
  }

  #obtain(meter: Meter, micros: number): Promise<boolean> {
    const { now } = this.#deps
    if (meter.freeMicros >= micros || now() < meter.quietUntil) return Promise.resolve(true)
    if (this.#isStopped || this.#waitingCalls >= MAX_WAITING) return Promise.resolve(false)
    this.#waitingCalls += 1
    return new Promise((resolve) => {
      let isOver = false
      const done = (isHeard: boolean): void => {
        if (isOver) return
        isOver = true
        cancel()
        this.#waitingCalls -= 1
        resolve(isHeard)
      }
      const cancel = waitForAnswer(
        this.#deps,
        () => UNANSWERED_WAIT_MS,
        () => done(false),
      )
      const others = this.#waiting.get(meter)
      if (others === undefined) this.#waiting.set(meter, [{ micros, done }])
      else others.push({ micros, done })
      this.#soon()
    })
  }

  /** Gives back what no call holds. */
  async stop(): Promise<void> {
    this.#isStopped = true
    this.#cancelSoon?.()
    this.#cancelLook?.()
    await this.#work.request()
    for (const meter of this.#meters.values()) await this.#giveBack(meter, true)
  }

  #soon(): void {
    this.#cancelSoon ??= this.#deps.schedule(() => {
      this.#cancelSoon = undefined
      void this.#work.request()
    }, GROUP_MS)
  }

  /** Never rejects. */
  async #exchange(): Promise<void> {
    const missing = [...this.#meters.values()].filter(({ isMissing }) => isMissing)
    for (const meter of new Set([...this.#waiting.keys(), ...missing])) await this.#take(meter)
  }

  async #take(meter: Meter): Promise<void> {
    const waiting = this.#waiting.get(meter) ?? []
    this.#waiting.delete(meter)
    let wanted = -meter.freeMicros
    for (const { micros } of waiting) wanted += micros
    let isHeard = true
    if (wanted > 0) isHeard = await this.#ask(meter, wanted)
    for (const { done } of waiting) done(isHeard)
  }

  /** False: the database did not answer. */
  async #ask(meter: Meter, wanted: number): Promise<boolean> {
    const { store, now, log } = this.#deps
    // One process alone may take more than it needs now: nothing is kept from others.
    const ahead = store.statements.isShared ? 0 : meter.aheadMicros
    try {
      const got = await take(store, meter, Math.min(wanted + ahead, meter.guard.amountMicros))
      if (got === undefined) meter.isOver = true
      else meter.taken(got.given_micros, got.taken_micros)
      if ((got?.given_micros ?? 0) < wanted) meter.quietUntil = now() + QUIET_MS
      if (this.#isFailing) log('info', 'billing: caps of spend guards can be used again')
      this.#isFailing = false
      return true
    } catch (error) {
      const message = 'billing: what is left of spend guards is not known: their calls are refused'
      if (!this.#isFailing) log('error', message, { error })
      this.#isFailing = true
      return false
    }
  }

  /** Only while something is free or missing. */
  #lookLater(): void {
    if (this.#isStopped) return
    this.#cancelLook ??= this.#deps.schedule(() => {
      this.#cancelLook = undefined
      void this.#look()
    }, LOOK_MS)
  }

  async #look(): Promise<void> {
    for (const meter of this.#meters.values()) {
      if (meter.freeMicros > 0) await this.#giveBack(meter, false)
      if (meter.freeMicros > 0 || meter.isMissing) this.#lookLater()
      if (meter.isMissing) this.#soon()
    }
  }

  /** Never rejects. What an answer is lost of counts as spent. */
  async #giveBack(meter: Meter, isAll: boolean): Promise<void> {
    const micros = meter.giveBack(isAll)
    if (micros === 0) return
    try {
      await giveBack(this.#deps.store, meter, micros)
    } catch (error) {
      const message = 'billing: what calls have not spent of a cap counts as spent'
      this.#deps.log('warn', message, { error, guard_uuid: meter.guard.guardUuid, micros })
    }
  }
}
