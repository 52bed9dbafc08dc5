/** The records that the daily totals have. */
import { type RawBuilder, sql, type SqlBool } from 'kysely'
import { all, first } from '../../schema/sql/query.ts'
import { type CallSources, isInFile } from './call-filters.ts'

/** The sums have the records up to `upTo`, but for those in `gaps`. */
export interface Watermark {
  readonly upTo: number
  readonly lastUuid: string
  readonly changesUpTo: number
  readonly gapsAfter: number
  readonly gaps: readonly Gap[]
}

export interface Gap {
  readonly firstId: number
  readonly lastId: number
  readonly noticedAt: number
}

export async function watermarkOf(sources: CallSources): Promise<Watermark> {
  const { sums } = sources
  const state = await first(sums, sums.db.selectFrom('call_sum_state').selectAll())
  if (state === undefined) return empty
  if (!(await isOfThisDatabase(sources, state.records_up_to, state.last_uuid))) return empty
  const gaps = await all(
    sums,
    sums.db
      .selectFrom('call_sum_gap')
      .select(['first_id as firstId', 'last_id as lastId', 'noticed_at as noticedAt'])
      .orderBy('first_id'),
  )
  return {
    upTo: state.records_up_to,
    lastUuid: state.last_uuid,
    gaps,
    changesUpTo: state.changes_up_to,
    gapsAfter: state.gaps_after,
  }
}

const empty: Watermark = { upTo: 0, lastUuid: '', changesUpTo: 0, gapsAfter: 0, gaps: [] }

/**
 * A file of sums may lie beside a database that was restored: the ids of its records are of other
 * calls.
 */
async function isOfThisDatabase(sources: CallSources, id: number, uuid: string): Promise<boolean> {
  if (!isInFile(sources) || id === 0) return true
  return (await uuidOf(sources.store, id)) === uuid
}

export async function uuidOf(store: CallSources['store'], id: number): Promise<string | undefined> {
  const query = store.db.selectFrom('cdr').select('call_uuid').where('id', '=', id)
  return (await first(store, query))?.call_uuid
}

/** Records that the sums do not have yet. */
export const newRecords = ({ upTo, gaps }: Watermark): RawBuilder<SqlBool> =>
  sql`(${sql.join(
    [
      sql`cdr.id > ${upTo}`,
      ...gaps.map(({ firstId, lastId }) => sql`cdr.id BETWEEN ${firstId} AND ${lastId}`),
    ],
    sql` OR `,
  )})`
