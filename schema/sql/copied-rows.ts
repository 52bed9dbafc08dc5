/**
 * Rows that a PostgreSQL server copies out in its binary format: bytes come as they are stored. In
 * the answer to a query they come as twice as many hexadecimal digits.
 */
import pg from 'pg'

/** Fields in their binary form: texts are UTF-8. */
export type CopiedRow = readonly (Buffer | null)[]

/** Resolves with the rows of a query without parameters. */
export function copyRows(client: pg.ClientBase, sql: string): Promise<readonly CopiedRow[]> {
  const config = { text: `COPY (${sql}) TO STDOUT (FORMAT binary)` }
  return new Promise((resolve, reject) => {
    const query = new CopyQuery(config, (error) => {
      const failure = error ?? query.failure
      if (failure) reject(failure)
      else resolve(query.copied)
    })
    client.query(query)
  })
}

/** A signature of 11 bytes, flags, and the length of what may follow. */
const HEADER = 19
const EXTENSION_AT = 15

/** The driver hands each message of a copy to its query, and the server sends a row in each. */
class CopyQuery extends pg.Query {
  readonly copied: CopiedRow[] = []
  failure: Error | undefined
  #isBegun = false

  /** The driver calls it, and must get no exception. */
  handleCopyData({ chunk }: { readonly chunk: Buffer }): void {
    if (this.failure !== undefined) return
    try {
      this.#add(chunk)
    } catch (error) {
      this.failure = error instanceof Error ? error : new Error(String(error))
    }
  }

  #add(message: Buffer): void {
    let at = this.#isBegun ? 0 : HEADER + message.readInt32BE(EXTENSION_AT)
    this.#isBegun = true
    if (at >= message.length) return
    const fields = message.readInt16BE(at)
    at += 2
    // The end of all rows.
    if (fields < 0) return
    const row: (Buffer | null)[] = []
    for (let field = 0; field < fields; field += 1) {
      const length = message.readInt32BE(at)
      at += 4
      row.push(length < 0 ? null : ownBytes(message, at, length))
      at += Math.max(0, length)
    }
    this.copied.push(row)
  }
}

/** The driver uses the memory of the message again; and numbers are read from aligned bytes. */
function ownBytes(message: Buffer, from: number, length: number): Buffer {
  if (from + length > message.length) throw new RangeError('a copied row is cut')
  const own = Buffer.allocUnsafe(length)
  message.copy(own, 0, from, from + length)
  return own
}
