/** Where the records of a filter are: in which blocks, and among which others. */
import { all, first } from '../../../schema/sql/query.ts'
import type { CallSources } from '../call-filters.ts'
import { recordParts, type RecordParts, type RecordTimes } from './block-store.ts'
import type { RecordScope } from './record-tests.ts'

export interface RecordPlace {
  readonly scope: RecordScope
  readonly parts: RecordParts
}

/** Records that are past their retention are gone, while their blocks are not. */
export async function placeOf(sources: CallSources, scope: RecordScope): Promise<RecordPlace> {
  const { store } = sources
  const uuid = scope.match?.call_uuid
  if (uuid !== undefined) {
    const ranges = (await idsOfUuid(sources, uuid)).map((id) => ({ first: id, last: id }))
    return { scope, parts: { blocks: [], ranges } }
  }
  const oldest = store.db.selectFrom('cdr').select('start_stamp').orderBy('start_stamp').limit(1)
  const from = Math.max(scope.from, (await first(store, oldest))?.start_stamp ?? scope.from)
  return { scope: { ...scope, from }, parts: await recordParts(sources) }
}

/** The record of a uuid is found without a search. */
async function idsOfUuid({ store }: CallSources, uuid: string): Promise<readonly number[]> {
  const query = store.db
    .selectFrom('cdr')
    .select('id')
    .where('call_uuid', 'in', [...new Set([uuid, uuid.toLowerCase()])])
  return (await all(store, query)).map(({ id }) => id)
}

/** The share of the time of a block that is in a period. */
export function overlap(
  { firstStart, lastStart }: RecordTimes,
  { from, before }: Pick<RecordScope, 'from' | 'before'>,
): number {
  const shared = Math.min(lastStart + 1, before) - Math.max(firstStart, from)
  return Math.max(0, shared) / (lastStart + 1 - firstStart)
}

/** About how many records of the period blocks have, and how many others there are at most. */
export const recordsIn = (
  { blocks, ranges }: RecordParts,
  scope: RecordScope,
): { readonly inBlocks: number; readonly others: number } => ({
  inBlocks: blocks.reduce((sum, block) => sum + block.head.count * overlap(block, scope), 0),
  others: ranges.reduce((sum, range) => sum + range.last - range.first + 1, 0),
})
