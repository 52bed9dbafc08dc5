/** Reads call records for the tools: the newest of a period, in slices. */
import { all } from '../../../schema/sql/query.ts'
import type { CdrFilter, CdrRow } from '../../pbx/reports/cdr-store.ts'
import { records } from '../../pbx/reports/find-record.ts'
import type { ToolUse } from '../tool.ts'

/** Rows per read: about 5 ms, after which the event loop is free for SIP. */
const SLICE = 500
/** Maximum rows examined by one search. */
const MAX_SCANNED = 10_000

interface Search extends Omit<CdrFilter, 'tenantId'> {
  /** Part of the calling or the called number; undefined matches all. */
  readonly number: string | undefined
  readonly limit: number
  /** Where an earlier search stopped; undefined starts at the newest record. */
  readonly after: Position | undefined
}

interface Found {
  readonly rows: readonly CdrRow[]
  /** The last record examined; undefined when the period has no older one. */
  readonly stoppedAt: Position | undefined
}

/** Newest first. */
export async function searchRecords(search: Search, use: ToolUse): Promise<Found> {
  const rows: CdrRow[] = []
  let position: Position = search.after ?? { start_stamp: search.before, id: 0 }
  for (let scanned = 0; scanned < MAX_SCANNED; scanned += SLICE) {
    const slice = await all(use.store, older(search, position, use).limit(SLICE))
    for (const row of slice) {
      if (!isMeant(row, search)) continue
      if (rows.length === search.limit) return { rows, stoppedAt: rows.at(-1) }
      rows.push(row)
    }
    const last = slice.at(-1)
    if (last === undefined || slice.length < SLICE) return { rows, stoppedAt: undefined }
    position = last
    await use.pause()
  }
  return { rows, stoppedAt: position }
}

/** Records older than this one. */
interface Position {
  readonly start_stamp: number
  readonly id: number
}

function isMeant(row: CdrRow, { number, disposition }: Search): boolean {
  if (disposition !== undefined && row.disposition !== disposition) return false
  if (number === undefined) return true
  return row.caller_id_number.includes(number) || row.destination_number.includes(number)
}

const older = ({ from, before }: Search, { start_stamp, id }: Position, use: ToolUse) =>
  records(use)
    .where('cdr.start_stamp', '>=', from)
    .where('cdr.start_stamp', '<', before)
    .where(({ eb, refTuple, tuple }) =>
      eb(refTuple('cdr.start_stamp', 'cdr.id'), '<', tuple(start_stamp, id)),
    )
    .orderBy('cdr.start_stamp', 'desc')
    .orderBy('cdr.id', 'desc')
