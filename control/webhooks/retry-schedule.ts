/** When a message that was not accepted is sent again: ten attempts over three days. */
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../schema/clock.ts'

/** The longest delay between two attempts, without the random part. */
export const LONGEST_RETRY_DELAY_MS = DAY_MS

const delaysMs: readonly number[] = [
  5_000,
  MINUTE_MS,
  5 * MINUTE_MS,
  30 * MINUTE_MS,
  2 * HOUR_MS,
  6 * HOUR_MS,
  12 * HOUR_MS,
  LONGEST_RETRY_DELAY_MS,
  LONGEST_RETRY_DELAY_MS,
]

/** Maximum delay that a receiver may request. */
const longestRetryAfterMs = HOUR_MS

/**
 * Milliseconds until the next attempt; undefined: there was the last one.
 *
 * @param attempts that were made before the one that has just failed.
 * @param retryAfterMs delay that the receiver requests; 0 for none.
 * @param random from 0 to below 1: up to a quarter more, so that messages that failed together are
 *   not sent again together.
 */
export function retryDelayMs(
  attempts: number,
  retryAfterMs: number,
  random: () => number,
): number | undefined {
  const delayMs = delaysMs[attempts]
  if (delayMs === undefined) return undefined
  const jittered = Math.round(delayMs * (1 + 0.25 * random()))
  return Math.max(jittered, Math.min(retryAfterMs, longestRetryAfterMs))
}
