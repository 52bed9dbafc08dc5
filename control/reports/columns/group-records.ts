/** The records of a place in sums by group. */
import type { CallSources, Grouping } from '../call-filters.ts'
import type { GroupRow } from '../figures.ts'
import { scan } from './block-scan.ts'
import { groupedColumns, RecordGroups } from './record-groups.ts'
import type { RecordPlace } from './record-place.ts'
import { PriceReader } from './seen-prices.ts'

interface GroupRequest {
  readonly place: RecordPlace
  readonly groupBy: Grouping
  /** So many groups are kept until they are given away: a group may come again. */
  readonly together: number
  /** Milliseconds of the steady clock: no more is read then. */
  readonly until: number
}

/** Yields undefined when there is nothing yet; returns whether all records were read. */
export async function* groupRecords(
  sources: CallSources,
  { place: { scope, parts }, groupBy, together, until }: GroupRequest,
): AsyncGenerator<Iterable<GroupRow> | undefined, boolean, undefined> {
  const groups = new RecordGroups(groupBy)
  const reader = new PriceReader(sources, scope.tenantId)
  const wanted = groupedColumns(groupBy)
  let isComplete = true
  for await (const found of scan(sources, { scope, parts, reader, wanted })) {
    if (found !== undefined) {
      groups.add(found)
      if (groups.size >= together) yield groups.take()
      continue
    }
    yield undefined
    if (sources.steadyNow() < until) continue
    isComplete = false
    break
  }
  yield groups.take()
  return isComplete
}
