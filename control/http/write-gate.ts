/**
 * Waits while another process, such as `tollgate seed`, holds the write lock of an SQLite database. The wait is
 * asynchronous here; inside a handler it would stop every call. A database server has no such lock.
 */
import type { MiddlewareHandler } from 'hono'
import type { Schedule } from '../../schema/clock.ts'
import type { MaybeLocal } from '../../schema/sql/handle.ts'
import { isLocked } from '../../schema/storage/storage.ts'
import type { ControlEnv } from './control-env.ts'

interface WriteGateDeps {
  readonly store: MaybeLocal
  readonly schedule: Schedule
}

const LOOK_MS = 20
/** Then the request continues; a write is answered with 503. */
const LONGEST_LOOKS = 100

export function writeGate({ store, schedule }: WriteGateDeps): MiddlewareHandler<ControlEnv> {
  let unlocked: Promise<void> | undefined
  const whenUnlocked = (): Promise<void> =>
    new Promise((resolve) => {
      let looks = 0
      const look = (): void => {
        looks += 1
        if (looks < LONGEST_LOOKS && isWriteLocked(store)) schedule(look, LOOK_MS)
        else resolve()
      }
      schedule(look, LOOK_MS)
    })
  return async (c, next) => {
    // Charging writes in groups, which wait by themselves.
    if (c.req.path.startsWith('/api/ocs/')) return next()
    if (unlocked !== undefined || isWriteLocked(store)) {
      unlocked ??= whenUnlocked().finally(() => (unlocked = undefined))
      await unlocked
    }
    return next()
  }
}

function isWriteLocked({ sqlite }: MaybeLocal): boolean {
  try {
    sqlite?.exec('BEGIN IMMEDIATE; ROLLBACK')
    return false
  } catch (error) {
    return isLocked(error)
  }
}
