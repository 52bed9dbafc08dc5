/** Conditions on texts that mean the same in SQLite and PostgreSQL. Upper and lower case are different. */
import { sql, type Expression, type RawBuilder } from 'kysely'

export const startsWith = (text: Expression<string>, start: string): RawBuilder<boolean> =>
  sql<boolean>`substr(${text}, 1, length(${start})) = ${start}`

/** LIKE regards case in one and not in the other; only one of them has `instr`. */
export const includes = (text: Expression<string>, part: string): RawBuilder<boolean> =>
  part === '' ? sql<boolean>`true` : sql<boolean>`replace(${text}, ${part}, '') <> ${text}`
