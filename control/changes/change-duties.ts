/**
 * What the platform does with changes by itself: it undoes those whose time is over, and settles those that a process
 * has left half made. Each node looks; of a change one of them is at work.
 */
import type { ChangeWorld } from './kinds.ts'
import { everywhere } from '../auth/tenants.ts'
import type { Log } from '../../schema/contracts/log.ts'
import { isUnstored } from '../../schema/storage/storage.ts'
import type { AuditLog } from './audit/audit-log.ts'
import { ApiError } from '../http/api-error.ts'
import { type ChangeEntry, ChangeStore, stateIn } from './change-store.ts'
import { isSameState, restorable } from './kinds.ts'
import { UNDER_WAY } from './make-change.ts'
import { CHANGED_SINCE, restore } from './undo-change.ts'

/** Interval between calls of `look`. */
export const CHANGES_LOOK_MS = 1_000
/** Changes of one look. */
const BATCH = 20
/** How long one waits that cannot be undone now, such as for another node of its set to be in service. */
const RETRY_MS = 60_000

const PLATFORM = 'platform'

export interface ChangeDutiesDeps extends ChangeWorld {
  readonly audit: AuditLog
  readonly newCorrelationId: () => string
  readonly log: Log
}

export class ChangeDuties {
  readonly #deps: ChangeDutiesDeps
  readonly #entries: ChangeStore
  /** Those that could not be undone, and when they are tried again: no more than are due in `RETRY_MS`. */
  readonly #waiting = new Map<string, number>()
  #isBusy = false
  #isFailing = false

  /** @param deps `now` is early rather than late: no change ends before its time. */
  constructor(deps: ChangeDutiesDeps) {
    this.#deps = deps
    this.#entries = new ChangeStore(deps.store)
  }

  /** Called before the first request, unless another process serves: what a dead one was at is waited for by nothing. */
  begin(): Promise<void> {
    return this.#entries.endClaims()
  }

  /** Called every `CHANGES_LOOK_MS`; the last call may still be at work. */
  async look(): Promise<void> {
    if (this.#isBusy) return
    this.#isBusy = true
    try {
      const now = this.#deps.now()
      for (const entry of await this.#entries.abandoned(now, BATCH)) await this.#settle(entry)
      for (const [changeId, retryAt] of this.#waiting)
        if (retryAt <= now) this.#waiting.delete(changeId)
      const waiting = [...this.#waiting.keys()]
      for (const entry of await this.#entries.due(now, BATCH, waiting)) await this.#expire(entry)
      this.#isFailing = false
    } catch (error) {
      if (!this.#isFailing && !isUnstored(error))
        this.#deps.log('warn', 'changes could not be ended', { error: String(error) })
      this.#isFailing = true
    } finally {
      this.#isBusy = false
    }
  }

  /** Its process ended before it could tell: the state of the target tells whether it was made. */
  async #settle(entry: ChangeEntry): Promise<void> {
    const kind = restorable(this.#deps.kinds, entry.target_kind)
    const isMade =
      kind !== null &&
      isSameState(kind, await kind.read(entry.target_id, this.#deps), stateIn(entry.state_after))
    await this.#entries.settle(entry.change_id, isMade ? 'made' : 'unconfirmed')
  }

  async #expire(entry: ChangeEntry): Promise<void> {
    const kind = restorable(this.#deps.kinds, entry.target_kind)
    if (kind === null) return
    const { now, log } = this.#deps
    const ended = { undone_at: now(), undone_by: PLATFORM, undo_reason: null } as const
    const { change_id, tool, target_kind, target_id } = entry
    const told = { changeId: change_id, tool, target: `${target_kind} ${target_id}` }
    try {
      const asker = { ...everywhere, actor: PLATFORM, now: now() }
      const by = { asker, admit: admitPlatform }
      const restoring = { kind, entries: this.#entries, world: this.#deps, ...by }
      const restored = await restore(entry, { ...ended, state: 'expired' }, restoring)
      if (restored === 'ended') return
      log('info', 'a change is over: what it changed is as before', told)
      await this.#enter(entry)
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      if (error.code === CHANGED_SINCE || error.status === 404)
        return this.#entries.end(entry, { ...ended, state: 'superseded' })
      if (error.code === UNDER_WAY) return undefined
      this.#waiting.set(change_id, now() + RETRY_MS)
      log('warn', 'a change is over, but cannot be undone yet', { ...told, code: error.code })
    }
  }

  async #enter(entry: ChangeEntry): Promise<void> {
    const { audit, newCorrelationId, now } = this.#deps
    await audit.record({
      at: now(),
      actor: PLATFORM,
      actor_name: null,
      actor_key_prefix: null,
      tenant_id: entry.tenant_id,
      address: PLATFORM,
      action: `expire ${entry.tool}`,
      target: `${entry.target_kind} ${entry.target_id}`,
      outcome: 'success',
      status: 200,
      code: null,
      before_digest: null,
      after_digest: null,
      correlation_id: newCorrelationId(),
      change_id: entry.change_id,
      reason: entry.reason,
    })
  }
}

const admitPlatform = (): Promise<void> => Promise.resolve()
