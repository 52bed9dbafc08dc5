import { sql } from 'kysely'
import { restore, CHANGED_SINCE } from './undo.ts'
import type { Log } from '../../schema/contracts/log.ts'
import { prepare } from '../../schema/sql/query.ts'
import type { Store } from '../../schema/storage/store.ts'
import { isUnstored } from '../../schema/storage/storage.ts'
import { ApiError } from '../http/api-error.ts'
import { auditEntry, type AuditLog } from './audit.ts'
import { UNDER_WAY } from './change.ts'
import { type ChangeEntry, ChangeStore, stateIn } from './change-store.ts'
import { type ChangeDeps, isSameState, restorable } from './kinds.ts'
import { everywhere } from '../auth/tenants.ts'

/** Changes of one poll. */
const BATCH = 20

/**
 * How long one waits that cannot be undone now, such as for another node of its set to be in
 * service.
 */
const RETRY_MS = 60_000
const PLATFORM = 'platform'

export interface ChangeDutiesDeps extends ChangeDeps {
  readonly audit: AuditLog
  readonly newCorrelationId: () => string
  readonly log: Log
}

export class ChangeDuties {
  readonly #deps: ChangeDutiesDeps
  readonly #entries: ChangeStore
  readonly #anyDue: ReturnType<typeof prepareAnyDue>
  /**
   * Changes that could not be undone, with the time of the next attempt: no more than fall due in
   * `RETRY_MS`.
   */
  readonly #waiting = new Map<string, number>()
  #isBusy = false
  #isFailing = false

  /** @param deps `now` is early rather than late: no change ends before its time. */
  constructor(deps: ChangeDutiesDeps) {
    this.#deps = deps
    this.#entries = new ChangeStore(deps.store)
    this.#anyDue = prepareAnyDue(deps.store)
  }

  /**
   * Called before the first request, unless another process serves: claims of a dead process end.
   */
  begin(): Promise<void> {
    return this.#entries.endClaims()
  }

  /** Called every `CHANGES_POLL_MS`; the last call may still be at work. */
  async poll(): Promise<void> {
    if (this.#isBusy) return
    this.#isBusy = true
    try {
      const now = this.#deps.now()
      for (const [changeId, retryAt] of this.#waiting)
        if (retryAt <= now) this.#waiting.delete(changeId)
      if ((await this.#anyDue.get({ now })) !== undefined) await this.#end(now)
      this.#isFailing = false
    } catch (error) {
      if (!this.#isFailing && !isUnstored(error))
        this.#deps.log('warn', 'expired changes could not be undone', { error: String(error) })
      this.#isFailing = true
    } finally {
      this.#isBusy = false
    }
  }

  async #end(now: number): Promise<void> {
    for (const entry of await this.#entries.abandoned(now, BATCH)) await this.#settle(entry)
    const waiting = [...this.#waiting.keys()]
    for (const entry of await this.#entries.due(now, BATCH, waiting)) await this.#expire(entry)
  }

  /**
   * Settles a change whose process has ended: the state of the target shows whether the change was
   * made.
   */
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
    const ended = { undone_at: now(), undone_by: PLATFORM, undo_reason: null }
    const { change_id: changeId, tool, target_kind, target_id } = entry
    const logged = { changeId, tool, target: `${target_kind} ${target_id}` }
    try {
      const restored = await restore(
        entry,
        { ...ended, state: 'expired' },
        {
          kind,
          entries: this.#entries,
          deps: this.#deps,
          asker: { ...everywhere, actor: PLATFORM, now: now() },
          admit: () => Promise.resolve(),
        },
      )
      if (restored === undefined) return
      log('info', 'a temporary change has expired and was undone', logged)
      await this.#audit(entry)
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      if (error.code === CHANGED_SINCE || error.status === 404)
        return this.#entries.end(entry, { ...ended, state: 'superseded' })
      if (error.code === UNDER_WAY) return undefined
      this.#waiting.set(changeId, now() + RETRY_MS)
      log('warn', 'a temporary change has expired, but cannot be undone yet', {
        ...logged,
        code: error.code,
      })
    }
  }

  #audit(entry: ChangeEntry): Promise<void> {
    const { audit, newCorrelationId, now } = this.#deps
    return audit.record(
      auditEntry({
        at: now(),
        by: { actor: PLATFORM, tenant_id: entry.tenant_id },
        address: PLATFORM,
        action: `expire ${entry.tool}`,
        target: `${entry.target_kind} ${entry.target_id}`,
        status: 200,
        correlationId: newCorrelationId(),
        changeId: entry.change_id,
        reason: entry.reason,
      }),
    )
  }
}

/**
 * Whether a change has expired, or was abandoned. Most polls find none: they ask one prepared
 * statement. The states are literals, without which SQLite would not use the indexes.
 */
const prepareAnyDue = (store: Store) =>
  prepare<{ now: number }, { change_id: string }>(store, (db, param) =>
    db
      .selectFrom('change_entry')
      .select('change_id')
      .where('state', '=', sql.lit('made'))
      .where('expires_at', '<=', param('now'))
      .unionAll(
        db
          .selectFrom('change_entry')
          .select('change_id')
          .where('state', '=', sql.lit('pending'))
          .where('claimed_until', '<=', param('now')),
      )
      .limit(1),
  )
