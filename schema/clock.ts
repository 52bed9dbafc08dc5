/**
 * The two clocks. Whatever is measured goes by the steady one: talk, grants, limits, windows, deadlines. The
 * machine's clock may be set at any time, and only dates what is stored, shown or agreed with others.
 */
export interface Clocks {
  /** Milliseconds UTC by the clock of the machine. */
  readonly now: () => number
  /**
   * Milliseconds UTC at the start of the process, plus what has passed since. Never set, never steps; it
   * stands while the machine sleeps.
   */
  readonly steadyNow: () => number
}

/** Runs `work` once after `delayMs`; the returned function cancels it. */
export type Schedule = (work: () => void, delayMs: number) => Cancel
export type Cancel = () => void

/**
 * For what must end in time, such as tokens: a clock that was set back does not let them live on, nor does
 * a machine that slept.
 */
export const latest = ({ now, steadyNow }: Clocks): number => Math.max(now(), steadyNow())

/** For what must not be forgotten too early: a clock that was set forward forgets nothing. */
export const earliest = ({ now, steadyNow }: Clocks): number => Math.min(now(), steadyNow())
