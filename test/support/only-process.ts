/** The only process of an installation on PostgreSQL: alive, and told nothing by others. */
import type { ShareMembers } from '../../engine/shares/instance-shares.ts'
import type { Schedule } from '../../schema/clock.ts'

export const onlyProcess = (): ShareMembers => ({
  name: 'test-1',
  process: `${(runs += 1)}`,
  canHold: () => true,
  size: () => 1,
  gone: () => [],
  notices: { on: () => () => undefined, notify: () => undefined },
})

let runs = 0

/** Requests that are asked together wait so long. */
const GROUP_MS = 10

/**
 * A schedule for virtual time: a question that waits for others of its kind waits no longer, as no
 * time would pass meanwhile.
 */
export const hurried =
  (schedule: Schedule): Schedule =>
  (work, delayMs) => {
    if (delayMs > GROUP_MS) return schedule(work, delayMs)
    const timer = setImmediate(work)
    return () => clearImmediate(timer)
  }

/** The bound of a wait is no judge of a busy machine. */
const LONG_MS = 100

interface RealTimers {
  readonly schedule: Schedule
  /** Ends waits for a moment, such as those for more to be written together. */
  hurry(): void
  end(): void
}

/** Real time, for what waits for a database server; what takes long takes much longer. */
export function realTimers(): RealTimers {
  const timers = new Map<NodeJS.Timeout, { readonly delayMs: number; readonly run: () => void }>()
  return {
    schedule(work, delayMs) {
      const run = (): void => {
        clearTimeout(timer)
        if (timers.delete(timer)) work()
      }
      const timer = setTimeout(run, delayMs >= LONG_MS ? delayMs * 100 : delayMs)
      timers.set(timer, { delayMs, run })
      return () => {
        clearTimeout(timer)
        timers.delete(timer)
      }
    },
    hurry() {
      for (const { delayMs, run } of [...timers.values()]) if (delayMs <= LONG_MS) run()
    },
    end() {
      for (const timer of timers.keys()) clearTimeout(timer)
      timers.clear()
    },
  }
}
