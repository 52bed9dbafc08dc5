/**
 * The two clocks. Durations use steady time: talk, grants, limits, windows, deadlines. The system
 * clock may be set at any time; it only dates what is stored, shown or agreed with other systems.
 */
export interface Clocks {
  /** Milliseconds UTC of the system clock. */
  readonly now: () => number
  /**
   * Milliseconds UTC at the start of the process plus the time passed since. Never set and never
   * steps; it stops while the machine sleeps.
   */
  readonly steadyNow: () => number
}

export const MINUTE_MS = 60_000
export const HOUR_MS = 3_600_000
export const DAY_MS = 86_400_000

/** Runs `work` once after `delayMs`; the returned function cancels it. */
export type Schedule = (work: () => void, delayMs: number) => Cancel
export type Cancel = () => void
/** Runs `work` every `intervalMs` until the returned function is called. */
export type Every = (intervalMs: number, work: () => void) => Cancel

/**
 * The time for deadlines such as the end of a token: neither a clock that was set back nor a
 * machine that slept extends them.
 */
export const latest = ({ now, steadyNow }: Clocks): number => Math.max(now(), steadyNow())

/** The time for records that must not expire early: a clock that was set forward expires none. */
export const earliest = ({ now, steadyNow }: Clocks): number => Math.min(now(), steadyNow())

/**
 * The start of this machine by the steady clock of this process: processes since the same start can
 * translate each other's steady times, also when the system clock was set between them.
 */
export interface Boot {
  readonly id: string
  readonly at: number
}
