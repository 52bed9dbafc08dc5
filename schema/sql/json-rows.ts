/** Many rows as one parameter of a statement on PostgreSQL, which reads them with `json_populate_recordset`. */

/** What PostgreSQL's texts cannot have: U+0000, and halves of a pair. They become U+FFFD. */
const unstorable = /\0|[\uD800-\uDBFF](?![\uDC00-\uDFFF])|(?<![\uD800-\uDBFF])[\uDC00-\uDFFF]/g

export function jsonRows(rows: readonly object[]): string {
  const text = JSON.stringify(rows, numbersAsText)
  return /\\u(?:0000|d[89a-f])/.test(text) ? JSON.stringify(rows, storable) : text
}

const numbersAsText = (_key: string, value: unknown): unknown =>
  typeof value === 'bigint' ? String(value) : value

const storable = (key: string, value: unknown): unknown =>
  typeof value === 'string' ? value.replaceAll(unstorable, '\uFFFD') : numbersAsText(key, value)
