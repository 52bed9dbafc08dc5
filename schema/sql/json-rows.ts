/** Many rows as one parameter of a statement on PostgreSQL, which reads them with `json_populate_recordset`. */

/** What PostgreSQL's texts cannot have: U+0000, and halves of a pair. They become U+FFFD. */
const unstorable = /\0|[\uD800-\uDBFF](?![\uDC00-\uDFFF])|(?<![\uD800-\uDBFF])[\uDC00-\uDFFF]/g

/** Without bigint, which JSON has not: it is given as a text. */
export type JsonRow = Readonly<Record<string, string | number | null>>

/** Without a function for each value, which would take longer than all the rest. */
export function jsonRows(rows: readonly JsonRow[]): string {
  const text = JSON.stringify(rows)
  return /\\u(?:0000|d[89a-f])/.test(text) ? JSON.stringify(rows, storable) : text
}

const storable = (_key: string, value: unknown): unknown =>
  typeof value === 'string' ? value.replaceAll(unstorable, '\uFFFD') : value
