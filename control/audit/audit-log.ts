/** Who changed what: append-only, one row per mutating request and per tool call. */
import type { Selectable } from 'kysely'
import type { AuditEntryTable } from '../../schema/database.ts'
import { timeToText } from '../../schema/columns.ts'
import { compile, type Statement } from '../../schema/compiled.ts'
import type { Store } from '../../schema/open.ts'
import { all, first } from '../../schema/query.ts'
import { MAX_COUNTED, MAX_LISTED } from '../http/page.ts'

export type AuditEntry = Omit<Selectable<AuditEntryTable>, 'id'>

export interface AuditFilter {
  /** Only entries of this tenant's credentials; null: all. */
  readonly tenantId: number | null
  readonly actor?: string | undefined
  readonly outcome?: AuditEntry['outcome'] | undefined
  /** The beginning of the action, such as `DELETE` or `tool revoke`. */
  readonly action?: string | undefined
  /** Milliseconds UTC; `before` itself is not part of the period. */
  readonly from?: number | undefined
  readonly before?: number | undefined
}

export class AuditLog {
  readonly #store: Store
  readonly #insert: Statement<AuditEntry, unknown>

  constructor(store: Store) {
    this.#store = store
    this.#insert = compile(store, (db, param) =>
      db.insertInto('audit_entry').values({
        at: param('at'),
        actor: param('actor'),
        tenant_id: param('tenant_id'),
        address: param('address'),
        action: param('action'),
        target: param('target'),
        outcome: param('outcome'),
        status: param('status'),
        code: param('code'),
        before_digest: param('before_digest'),
        after_digest: param('after_digest'),
        correlation_id: param('correlation_id'),
      }),
    )
  }

  record(entry: AuditEntry): void {
    this.#insert.run(entry)
  }

  /** Newest first. */
  list(filter: AuditFilter, page: { limit: number; offset: number }) {
    let query = this.#store.db.selectFrom('audit_entry').selectAll()
    if (filter.tenantId !== null) query = query.where('tenant_id', '=', filter.tenantId)
    if (filter.actor !== undefined) query = query.where('actor', '=', filter.actor)
    if (filter.outcome !== undefined) query = query.where('outcome', '=', filter.outcome)
    if (filter.from !== undefined) query = query.where('at', '>=', filter.from)
    if (filter.before !== undefined) query = query.where('at', '<', filter.before)
    if (filter.action !== undefined)
      query = query.where((entry) =>
        entry(entry.fn('instr', ['action', entry.val(filter.action)]), '=', 1),
      )
    const some = query.clearSelect().select('id').limit(MAX_COUNTED).as('some')
    const count = this.#store.db
      .selectFrom(some)
      .select((entry) => entry.fn.countAll<number>().as('total'))
    const rows = query
      .orderBy('at', 'desc')
      .orderBy('id', 'desc')
      .limit(page.limit)
      .offset(page.offset)
    return {
      entries: page.offset >= MAX_LISTED ? [] : all(this.#store, rows).map(view),
      total: first(this.#store, count)?.total ?? 0,
    }
  }
}

const view = (entry: Selectable<AuditEntryTable>) => ({ ...entry, at: timeToText(entry.at) })
