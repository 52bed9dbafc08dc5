/** Reports of any length as text, one slice at a time: nothing is held that has not been asked for. */
import type { CdrRow } from './cdr-store.ts'
import { viewOf, type CdrView } from './cdr-view.ts'

export type ExportFormat = 'csv' | 'ndjson'

export const contentTypes: Readonly<Record<ExportFormat, string>> = {
  csv: 'text/csv; charset=utf-8; header=present',
  ndjson: 'application/x-ndjson',
}

/** By the `Accept` header; undefined: JSON, as the specification has it. */
export function exportFormatOf(accept: string | undefined): ExportFormat | undefined {
  for (const range of (accept ?? '').split(',')) {
    const type = range.split(';', 1)[0]?.trim().toLowerCase()
    if (type === 'text/csv') return 'csv'
    if (type === 'application/x-ndjson' || type === 'application/ndjson') return 'ndjson'
    if (type === 'application/json' || type === '*/*') return undefined
  }
  return undefined
}

/** Pulled by the reader: a slow one makes the database wait, not the memory grow. */
export function exportStream(
  slices: AsyncGenerator<readonly CdrRow[]>,
  format: ExportFormat,
): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder()
  return new ReadableStream<Uint8Array>(
    {
      start: (controller) => {
        if (format === 'csv') controller.enqueue(encoder.encode(csvLine(columns)))
      },
      pull: async (controller) => {
        const slice = await slices.next()
        if (slice.done === true) return controller.close()
        const line = format === 'csv' ? csvOf : jsonOf
        controller.enqueue(encoder.encode(slice.value.map(viewOf).map(line).join('')))
      },
      cancel: async () => {
        await slices.return(undefined)
      },
    },
    { highWaterMark: 1 },
  )
}

const jsonOf = (record: CdrView): string => `${JSON.stringify(record)}\n`

/** Everything but the attempts, which have no place in a table. */
const columns = [
  'call_uuid',
  'caller_id_number',
  'destination_number',
  'start_stamp',
  'answer_stamp',
  'end_stamp',
  'billsec',
  'duration',
  'disposition',
  'cost_exact',
  'currency',
  'sip_code',
  'hangup_cause',
  'hangup_by',
  'denial_code',
  'direction',
  'set_id',
  'node',
  'carrier',
  'customer_id',
  'tenant_slug',
  'mos_score',
  'jitter_ms',
  'packet_loss_pct',
  'call_id',
] as const satisfies readonly (keyof CdrView)[]

const csvOf = (record: CdrView): string => csvLine(columns.map((column) => record[column] ?? ''))

/** RFC 4180. A cell that a spreadsheet would run as a formula is made text: callers choose names. */
function csvLine(cells: readonly (string | number)[]): string {
  return `${cells.map(csvCell).join(',')}\r\n`
}

function csvCell(value: string | number): string {
  if (typeof value === 'number') return String(value)
  const text = /^[=@\t\r]|^[+-](?!\d*$)/.test(value) ? `'${value}` : value
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}
