/**
 * Writes an audit entry for a command that changes something. The actor is the console of the
 * machine.
 */
import { AuditLog } from '../../control/changes/audit.ts'
import type { Store } from '../../schema/storage/store.ts'
import type { CommandContext } from './command.ts'
import { type Presence, withStore } from './with-store.ts'

export interface AuditedCommand {
  /** The name of the command. */
  readonly action: string
  /** The target: never a token or a password. */
  readonly target: string
}

/** Opens the database, runs `work`, and resolves when the entry is stored. */
export function withAudit<T>(
  context: CommandContext,
  { action, target }: AuditedCommand,
  work: (store: Store) => T | Promise<T>,
  presence: Presence = 'must exist',
): Promise<T> {
  const audited = async (store: Store): Promise<T> => {
    let isLost = false
    const log = new AuditLog(store, () => (isLost = true))
    const record = async (outcome: 'success' | 'failed'): Promise<boolean> => {
      await log.record({
        at: context.now(),
        actor: 'console',
        actor_name: null,
        actor_key_prefix: null,
        tenant_id: null,
        address: 'console',
        action: `command ${action}`,
        target,
        outcome,
        status: outcome === 'success' ? 0 : 1,
        code: null,
        before_digest: null,
        after_digest: null,
        correlation_id: context.newUuid(),
        change_id: null,
        reason: null,
        effect: null,
      })
      return (await log.flush()) && !isLost
    }
    const result = await attempt(
      () => work(store),
      () => record('failed'),
    )
    if (!(await record('success')))
      throw new Error('it is done, but its audit entry could not be stored')
    return result
  }
  return withStore(context, audited, presence)
}

async function attempt<T>(
  work: () => T | Promise<T>,
  onFailure: () => Promise<unknown>,
): Promise<T> {
  try {
    return await work()
  } catch (error) {
    await onFailure()
    throw error
  }
}
