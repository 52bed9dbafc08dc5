/** The lines of a deck, whatever it is written in. */
import { type CsvRecord, csvRecords } from '../csv-records.ts'
import { deckFormat } from './deck-format.ts'
import type { DeckMapping } from './deck-mapping.ts'
import { workbookRecords } from './deck-workbook.ts'

export type LineForm = Partial<Pick<DeckMapping, 'encoding' | 'separator' | 'sheet'>>

/**
 * Skips empty lines, and counts them.
 *
 * @param pause gives other work a turn.
 * @throws {CsvProblem} while it is read.
 */
export function deckLines(
  table: Uint8Array,
  form: LineForm,
  pause: () => Promise<unknown>,
): AsyncGenerator<readonly CsvRecord[]> {
  const format = deckFormat(table, form)
  if (format.kind === 'csv') return csvRecords(table, pause, format)
  return workbookRecords(table, form.sheet ?? 1, pause)
}
