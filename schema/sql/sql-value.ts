/** A value as a statement takes it. */
export type SqlValue = number | bigint | string | Buffer | null

/** @throws {TypeError} no column has values of this kind. */
export function toSqlValue(value: unknown): SqlValue {
  if (value === null || typeof value === 'string' || typeof value === 'number') return value
  if (typeof value === 'bigint' || Buffer.isBuffer(value)) return value
  throw new TypeError(`the database has no column for a ${typeof value}`)
}
