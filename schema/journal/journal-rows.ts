/** Calls that version 16 or an earlier one left open, in a table: closed at the first start of this one. */
import type { JournalEntry, OpenCall, Tariff } from './call-journal.ts'
import { all, compile, type Param } from '../sql/sync-query.ts'
import type { Store } from '../open.ts'

export class JournalRows {
  readonly #store: Store
  readonly #remove
  readonly #left = new Set<string>()

  constructor(store: Store) {
    this.#store = store
    this.#remove = compile(store, (db, param: Param<{ uuid: string }>) =>
      db.deleteFrom('call_journal').where('call_uuid', '=', param('uuid')),
    )
  }

  /** Oldest first. */
  entries(): readonly JournalEntry[] {
    const rows = all(
      this.#store,
      this.#store.db
        .selectFrom('call_journal')
        .select(['call_uuid', 'call', 'tariff', 'answered_at', 'alive_at'])
        .orderBy('answered_at')
        .orderBy('call_uuid'),
    )
    for (const row of rows) this.#left.add(row.call_uuid)
    return rows.map((row) => ({
      kind: 'cut',
      callUuid: row.call_uuid,
      // Only that version wrote these texts.
      call: JSON.parse(row.call) as OpenCall,
      tariff: row.tariff === null ? null : (JSON.parse(row.tariff) as Tariff),
      talkedMs: Math.max(0, row.alive_at - row.answered_at),
    }))
  }

  /** Inside the transaction that stores the call. */
  remove(callUuid: string): void {
    if (this.#left.has(callUuid)) this.#remove.run({ uuid: callUuid })
  }
}
