/**
 * Searches for findings once a minute, on one instance, and keeps what it finds: each is opened and
 * closed in the transaction that writes the event of it, so that a crash loses and doubles none.
 */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { DAY_MS } from '../../../schema/clock.ts'
import type { Log } from '../../../schema/contracts/log.ts'
import type { OutgoingEvent } from '../../../schema/contracts/engine.ts'
import { timeToText } from '../../../schema/columns.ts'
import { execute, first, onOneInstance } from '../../../schema/sql/query.ts'
import { isUnstored } from '../../../schema/storage/storage.ts'
import { ApiError } from '../../http/api-error.ts'
import { findingsIn } from './find-anomalies.ts'
import { type AnomalyDeps, kinds } from './finding.ts'
import { changesBy, type OwnedFinding } from './finding-life.ts'
import { type FindingRow, FindingStore, toldFinding } from './finding-store.ts'
import { withOwners } from './finding-owners.ts'

export interface FindingWatchDeps extends Omit<AnomalyDeps, 'tenantId' | 'domain' | 'pause'> {
  /** Takes events in the open transaction. */
  readonly webhooks: { readonly write: (event: OutgoingEvent) => Promise<void> }
  readonly log: Log
}

/** How often an instance asks whether a search is due. */
export const FINDINGS_TICK_MS = 10_000
/** Between two searches, of whichever instances. */
const INTERVAL_MS = 60_000
/** Nobody has searched for so long: what is missing may not have been looked for. */
const GAP_MS = 3 * INTERVAL_MS
/** Name of the row with the time of the last search. */
const SEARCHED_AT = 'findings searched at'

export class FindingWatch {
  readonly #deps: FindingWatchDeps
  readonly #kept: FindingStore
  #isBusy = false

  constructor(deps: FindingWatchDeps) {
    this.#deps = deps
    this.#kept = new FindingStore(deps.store)
  }

  /** Searches if that is due. Never rejects. */
  async tick(): Promise<void> {
    if (this.#isBusy) return
    this.#isBusy = true
    try {
      await this.#watch()
    } catch (error) {
      // Then the next time.
      const isLater = isUnstored(error) || (error instanceof ApiError && error.status === 503)
      if (!isLater) this.#deps.log('error', 'findings could not be kept', { error: String(error) })
    } finally {
      this.#isBusy = false
    }
  }

  async #watch(): Promise<void> {
    const { store, now } = this.#deps
    const claim = await this.#claim(now())
    if (claim === undefined) return
    const found = await this.#search()
    await onOneInstance(store, 'findings', () => this.#keep(found, claim))
  }

  /** Undefined: another instance searches, or none has to yet. */
  async #claim(now: number): Promise<{ readonly isAfterGap: boolean } | undefined> {
    const { store } = this.#deps
    const done = await onOneInstance(store, 'findings', async () => {
      const query = store.db.selectFrom('setting').select('value').where('name', '=', SEARCHED_AT)
      const row = await first(store, query)
      const sinceMs = row === undefined ? Infinity : now - Number(row.value)
      // A clock that was set back must not stop the watch.
      if (Math.abs(sinceMs) < INTERVAL_MS) return undefined
      const claim = store.db
        .insertInto('setting')
        .values({ name: SEARCHED_AT, value: String(now) })
        .onConflict((conflict) =>
          conflict.column('name').doUpdateSet((given) => ({ value: given.ref('excluded.value') })),
        )
      await execute(store, claim)
      return { isAfterGap: Math.abs(sinceMs) > GAP_MS }
    })
    return done.kind === 'done' ? done.result : undefined
  }

  async #search(): Promise<readonly OwnedFinding[]> {
    const own = { ...this.#deps, tenantId: null, domain: null, pause: () => nextTurn() }
    const before = this.#deps.now() + 1
    const span = { from: before - DAY_MS, before }
    const found = await findingsIn(own, span, new Set(kinds), { hasExtensions: true })
    return withOwners(this.#deps.store, found)
  }

  /** Inside the transaction. Another search may have been kept meanwhile. */
  async #keep(
    found: readonly OwnedFinding[],
    { isAfterGap }: { readonly isAfterGap: boolean },
  ): Promise<void> {
    const now = this.#deps.now()
    const { opened, seen, missed, closed } = changesBy(await this.#kept.open(), found, {
      now,
      isAfterGap,
    })
    for (const each of opened) await this.#tellOpened(await this.#kept.add(each, now), now)
    await this.#kept.see(seen)
    await this.#kept.miss(missed, now, isAfterGap)
    await this.#kept.close(closed, now)
    for (const row of closed) await this.#tellClosed(row, now)
    await this.#kept.forget(now)
  }

  async #tellOpened(row: FindingRow, now: number): Promise<void> {
    const snoozed_by = (await this.#kept.snoozesOf(row.id, now)).map(({ side }) => side)
    const data = { ...toldFinding(row), snoozed_by }
    await this.#deps.webhooks.write({ type: 'finding.opened', tenantId: row.tenant_id, data })
  }

  async #tellClosed(row: FindingRow, now: number): Promise<void> {
    const snoozed_by = (await this.#kept.snoozesOf(row.id, now)).map(({ side }) => side)
    const data = {
      ...toldFinding(row),
      closed_at: timeToText(now),
      duration_seconds: Math.max(0, Math.round((now - row.opened_at) / 1_000)),
      snoozed_by,
    }
    await this.#deps.webhooks.write({ type: 'finding.closed', tenantId: row.tenant_id, data })
  }
}
