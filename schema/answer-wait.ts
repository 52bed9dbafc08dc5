/**
 * How long a call waits for the answer of a database. Time in which this process stands still counts as one part of the
 * wait: the answer may be there unread.
 */
import type { Cancel, Schedule } from './clock.ts'

/** So long for a database that has not answered at all: a caller waits rather than hears 503. */
export const UNANSWERED_WAIT_MS = 500
const PART_MS = 30
/** The end of a wait: a late event loop runs timers first, and then reads the answer that is there. */
const LAST_MS = 10
/** Nothing waits for longer, whatever stands still. */
const LONGEST_WAIT_MS = 1_000

interface Clock {
  /** Milliseconds by the steady clock. */
  readonly now: () => number
  readonly schedule: Schedule
}

/** Calls `giveUp` after `atMostMs` of waiting, which may become less or more meanwhile; the returned function cancels it. */
export function waitForAnswer(
  { now, schedule }: Clock,
  atMostMs: () => number,
  giveUp: () => void,
): Cancel {
  const latest = now() + LONGEST_WAIT_MS
  let cancel: Cancel = () => undefined
  const wait = (waitedMs: number): void => {
    const leftMs = now() < latest ? atMostMs() - LAST_MS - waitedMs : 0
    const partMs = Math.min(PART_MS, leftMs)
    cancel =
      partMs > 0 ? schedule(() => wait(waitedMs + partMs), partMs) : schedule(giveUp, LAST_MS)
  }
  wait(0)
  return () => cancel()
}
