/**
 * Threads that work in the background leave the processors to the thread of the calls. Their CPU
 * time matters where a machine has less than all of them want.
 */
import { getPriority, setPriority } from 'node:os'

/** Nobody is nicer. */
const NICEST = 19

/**
 * Makes the thread that calls it nicer than the process was started, for good. Linux counts
 * priorities by thread; elsewhere, where they are the process's, nothing happens.
 *
 * @param by 19: the thread gets a 68th of what the thread of the calls gets, when both want one
 *   processor; 10: a ninth.
 * @param platform as `process.platform`.
 */
export function runBehindCalls(by: number, platform: string = process.platform): void {
  if (platform !== 'linux') return
  try {
    setPriority(0, Math.min(NICEST, getPriority(0) + by))
  } catch {
    // A sandbox may forbid it: the work is done all the same.
  }
}
