/**
 * Tells webhooks of phones that are lost: their bindings have expired, or the connections over
 * which they had registered are closed. The write that removes a binding keeps it as lost, so that
 * none is missed and none told twice. Phones that register again within moments are not lost, and
 * those of a tenant are told together: when a whole site goes, its receivers get a few events.
 */
import type { Selectable } from 'kysely'
import type { EventSink, OutgoingEvent } from '../../schema/contracts/engine.ts'
import { timeToText } from '../../schema/columns.ts'
import type { Log } from '../../schema/contracts/log.ts'
import { all, transaction } from '../../schema/sql/query.ts'
import { isUnstored } from '../../schema/storage/storage.ts'
import type { Store } from '../../schema/storage/store.ts'
import type { LostRegistrationTable } from '../../schema/tables/findings.ts'

interface LostRegistrationsDeps {
  readonly store: Store
  readonly sink: Pick<EventSink, 'writeAll'>
  /** Milliseconds UTC, of the clock of bindings. */
  readonly now: () => number
  readonly log: Log
}

/** Each tenant gets an event in such a time at most. */
export const LOST_REGISTRATIONS_TICK_MS = 5_000
/** A phone whose connection has ended registers again within it. */
const GRACE_MS = 10_000
/** Told at a time; the rest comes next. */
const MAX_TOLD = 2_000
/** Named in an event; all are counted. */
const MAX_NAMED = 100
/** Names of one statement. */
const SLICE = 200

type LostRow = Selectable<LostRegistrationTable>

export class LostRegistrations {
  readonly #deps: LostRegistrationsDeps
  #isBusy = false

  constructor(deps: LostRegistrationsDeps) {
    this.#deps = deps
  }

  /** Never rejects. */
  async tell(): Promise<void> {
    if (this.#isBusy) return
    this.#isBusy = true
    try {
      await this.#tellSome()
    } catch (error) {
      // Then the next time.
      if (!isUnstored(error))
        this.#deps.log('error', 'lost registrations cannot be told', { error: String(error) })
    } finally {
      this.#isBusy = false
    }
  }

  async #tellSome(): Promise<void> {
    const { store, now, sink } = this.#deps
    const before = now() - GRACE_MS
    const due = store.db
      .selectFrom('lost_registration')
      .select('id')
      .where('at', '<=', before)
      .orderBy('id')
      .limit(MAX_TOLD)
    const last = (await all(store, due)).at(-1)
    if (last === undefined) return
    await transaction(store, async () => {
      // Who deletes a row tells of it: another instance finds it gone.
      const taken = store.db
        .deleteFrom('lost_registration')
        .where('id', '<=', last.id)
        .where('at', '<=', before)
        .returningAll()
      const lost = await this.#stillLost(await all(store, taken))
      await sink.writeAll(eventsOf(lost))
    })
  }

  /** Leaves out phones that have registered again since. */
  async #stillLost(rows: readonly LostRow[]): Promise<readonly LostRow[]> {
    const { store, now } = this.#deps
    const present = new Map<number, { readonly contact: string; readonly at: number }[]>()
    const ids = [...new Set(rows.map(({ extension_id: id }) => id))]
    for (let start = 0; start < ids.length; start += SLICE) {
      const query = store.db
        .selectFrom('binding')
        .select(['extension_id', 'contact', 'registered_at as at'])
        .where('extension_id', 'in', ids.slice(start, start + SLICE))
        .where('expires_at', '>', now())
      for (const { extension_id: id, ...binding } of await all(store, query))
        present.set(id, [...(present.get(id) ?? []), binding])
    }
    return rows.filter(({ extension_id: id, contact, at }) => {
      const bindings = present.get(id) ?? []
      return !bindings.some((binding) => binding.contact === contact || binding.at >= at)
    })
  }
}

/** One event for each tenant, the phones that were lost first named in it. */
function eventsOf(lost: readonly LostRow[]): readonly OutgoingEvent[] {
  const byTenant = new Map<number, LostRow[]>()
  for (const row of lost) {
    const known = byTenant.get(row.tenant_id)
    if (known === undefined) byTenant.set(row.tenant_id, [row])
    else known.push(row)
  }
  return [...byTenant].map(([tenantId, rows]) => {
    const registrations = rows
      .toSorted((one, other) => one.id - other.id)
      .slice(0, MAX_NAMED)
      .map(({ extension, domain, contact, reason, at }) => ({
        extension,
        domain,
        contact,
        reason,
        at: timeToText(at),
      }))
    // One phone is said without a list, too.
    const sole = rows.length === 1 ? registrations[0] : {}
    const data = { of: 'extension', count: rows.length, ...sole, registrations }
    return { type: 'registration.lost', tenantId, data }
  })
}
