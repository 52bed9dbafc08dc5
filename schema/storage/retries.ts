/** When a write that failed is tried again, and which failures are told. */
import { isLocked } from './storage.ts'

const delaysMs = [50, 100, 250, 500, 1_000] as const
/** Another process holds the write lock, usually for a moment. */
const lockedDelayMs = 20
/** After about a second, such a wait is told. */
const failuresOfALongLock = 64

/** `failures`: those in a row before this one. */
export function retryDelayMs(error: unknown, failures: number): number {
  if (isLocked(error)) return lockedDelayMs
  return delaysMs[Math.min(failures, delaysMs.length - 1)] ?? lockedDelayMs
}

/** Of failures in a row the first, the second, the fourth and so on. `failures`: with this one. */
export function isNews(error: unknown, failures: number): boolean {
  const isPowerOfTwo = (failures & (failures - 1)) === 0
  return isPowerOfTwo && (!isLocked(error) || failures >= failuresOfALongLock)
}
