/** Call records for tools: one by its uuid, and the newest of a period, read in slices. */
import { first, all } from '../../../schema/query.ts'
import type { CdrFilter, CdrRow } from '../../pbx/reports/cdr-store.ts'
import type { ToolUse } from '../tool.ts'

/** Rows read at once: about 5 ms, after which SIP has its turn. */
const SLICE = 500
/** Rows that one search looks at. */
const MAX_SCANNED = 10_000

export function findRecord(uuid: string, use: ToolUse): CdrRow | undefined {
  return first(use.store, records(use).where('cdr.call_uuid', '=', uuid))
}

interface Search extends Omit<CdrFilter, 'tenantId'> {
  /** Part of the caller's or the called number; undefined: all. */
  readonly number: string | undefined
  readonly limit: number
  /** Where an earlier search stopped; undefined: from the newest on. */
  readonly after: Position | undefined
}

interface Found {
  readonly rows: readonly CdrRow[]
  /** The last record that was looked at; undefined: the period holds no older one. */
  readonly stoppedAt: Position | undefined
}

/** The newest first. */
export async function searchRecords(search: Search, use: ToolUse): Promise<Found> {
  const rows: CdrRow[] = []
  let position: Position = search.after ?? { start_stamp: search.before, id: 0 }
  for (let scanned = 0; scanned < MAX_SCANNED; scanned += SLICE) {
    const slice = all(use.store, older(search, position, use).limit(SLICE))
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

/** Whatever comes next is older than this record. */
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

function records({ store, principal: { tenantId } }: ToolUse) {
  const query = store.db
    .selectFrom('cdr')
    .leftJoin('tenant', 'tenant.id', 'cdr.tenant_id')
    .selectAll('cdr')
    .select('tenant.slug as tenant_slug')
  return tenantId === null ? query : query.where('cdr.tenant_id', '=', tenantId)
}
