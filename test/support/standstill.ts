/** How long a machine stands still while a test measures something on it. */
import type { AtEnd } from './scripted-node.ts'

/**
 * How long this process has stood still at most since it was asked to watch, in milliseconds: by so much a time that a
 * machine has measured may differ from what it should be. Ends with the test.
 */
export function watchStandstill(atEnd: AtEnd): () => number {
  let [last, longest] = [performance.now(), 0]
  const look = (): number => {
    const now = performance.now()
    longest = Math.max(longest, now - last)
    last = now
    return longest
  }
  const timer = setInterval(look, 20)
  atEnd(() => clearInterval(timer))
  return look
}
