/**
 * How long a call waits for the answer of a database. Time in which this process stands still counts as one part of the
 * wait: it has not asked, or the answer is there unread.
 */
import type { Cancel, Schedule } from './clock.ts'

/** So long for a database that has not answered at all: a caller waits rather than hears 503. */
export const UNANSWERED_WAIT_MS = 500
const PART_MS = 25
/** A part that took longer counts so much: a process that is slow all the time does not hold its callers for long. */
const LONGEST_PART_MS = 100
/** The end of a wait: a late event loop runs timers first, and then reads the answer that is there. */
const LAST_MS = 10
/** Nothing waits for longer, whatever stands still: a caller that heard nothing else has repeated its INVITE four times. */
const LONGEST_WAIT_MS = 5_000

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
    const startedAt = now()
    const leftMs = startedAt < latest ? atMostMs() - LAST_MS - waitedMs : 0
    const partMs = Math.min(PART_MS, leftMs)
    const next = (): void => {
      const tookMs = Math.max(partMs, now() - startedAt)
      wait(waitedMs + Math.min(tookMs, LONGEST_PART_MS))
    }
    cancel = partMs > 0 ? schedule(next, partMs) : schedule(giveUp, LAST_MS)
  }
  wait(0)
  return () => cancel()
}
