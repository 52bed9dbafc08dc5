/** The only process of an installation on PostgreSQL: alive, and told nothing by others. */
import type { Membership } from '../../engine/charging/leases/membership.ts'
import type { Schedule } from '../../schema/clock.ts'

export const onlyProcess: Membership = {
  identity: { name: 'test-1', epoch: 1 },
  leaseNames: { own: 'test-1', other: 'test-1/2' },
  isBeside: false,
  isAlive: () => true,
  size: () => 1,
  notices: { on: () => () => undefined, notify: () => undefined },
}

/** The bound of a wait is no judge of a busy machine. */
const LONG_MS = 100

/** Real time, for what waits for a database server; what takes long takes much longer. */
export function realTimers(): { readonly schedule: Schedule; readonly end: () => void } {
  const timers = new Set<NodeJS.Timeout>()
  return {
    schedule(work, delayMs) {
      const timer = setTimeout(
        () => {
          timers.delete(timer)
          work()
        },
        delayMs >= LONG_MS ? delayMs * 100 : delayMs,
      )
      timers.add(timer)
      return () => {
        clearTimeout(timer)
        timers.delete(timer)
      }
    },
    end() {
      for (const timer of timers) clearTimeout(timer)
      timers.clear()
    },
  }
}
