/**
 * Targets that were silent or refused lately: they are tried last, and TCP towards them is not
 * tried only because a request is large. Knowing this saves each call the wait for the same silence.
 */
import type { Flow } from '../../flow.ts'

const maxTargets = 1_000

export class AvoidedTargets {
  /** Until when, oldest entry first. */
  readonly #until = new Map<string, number>()

  avoid(flow: Flow, until: number): void {
    const key = keyOf(flow)
    this.#until.delete(key)
    if (this.#until.size >= maxTargets)
      for (const oldest of this.#until.keys()) {
        this.#until.delete(oldest)
        break
      }
    this.#until.set(key, until)
  }

  isAvoided(flow: Flow, now: number): boolean {
    if (this.#until.size === 0) return false
    const key = keyOf(flow)
    const until = this.#until.get(key)
    if (until === undefined) return false
    if (until > now) return true
    this.#until.delete(key)
    return false
  }

  /** The same flows, the avoided ones last: even they are better than nothing. */
  sorted(flows: readonly Flow[], now: number): readonly Flow[] {
    if (this.#until.size === 0 || flows.length < 2) return flows
    const isAvoided = (flow: Flow): boolean => this.isAvoided(flow, now)
    return [...flows.filter((flow) => !isAvoided(flow)), ...flows.filter(isAvoided)]
  }
}

const keyOf = ({ listener, address, port }: Flow): string =>
  `${listener.protocol} ${address} ${port}`
