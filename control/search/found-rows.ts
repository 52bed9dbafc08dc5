/**
 * Finds rows of a table by their names: a bounded number of the newest rows is read whole, and of a
 * larger table the parts of its indexes that begin with the text.
 */
import { type RawBuilder, sql } from 'kysely'
import type { Store } from '../../schema/storage/store.ts'
import { all } from '../../schema/sql/query.ts'
import { likePattern, startPattern } from '../http/envelope.ts'
import type { FoundTable } from '../http/found-by.ts'
import { matchesLike } from '../http/text-match.ts'
import { compiled } from '../resources/table-rows.ts'
import { ranked } from './rank.ts'
import { endOf, spellingsOf } from './texts.ts'

export interface FoundRow {
  readonly id: string
  readonly title: string
  readonly beside: readonly string[]
  /** By which its page is found. */
  readonly page: string | undefined
}

export interface RowSearch {
  readonly text: string
  readonly tenantId: number | null
  readonly domain: string | null
  readonly limit: number
}

/** Older rows of a larger table are found by their beginnings alone. */
const MAX_SCANNED = 20_000
/** Candidates of one statement: the best of them are shown. */
const MAX_CANDIDATES = 50

export async function foundRows(
  store: Store,
  found: FoundTable,
  search: RowSearch,
): Promise<readonly FoundRow[]> {
  const queries = [scanned(found, search), ...indexed(found, search)]
  const rows = new Map<string, FoundRow>()
  for (const query of queries)
    for (const row of await all<FoundColumns>(store, compiled(store, query))) {
      const known = rowOf(row)
      rows.set(known.id, known)
    }
  return ranked([...rows.values()], search.text).slice(0, search.limit)
}

/** Columns with the names of `selected`; those beside the name are `beside0`, `beside1` … */
interface FoundColumns {
  readonly id: number
  readonly title: string | null
  readonly page?: string | number | null
  readonly [beside: `beside${number}`]: string | null
}

function rowOf(row: FoundColumns): FoundRow {
  const beside = Object.entries({ ...row } as Readonly<Record<string, unknown>>)
    .filter(([name]) => name.startsWith('beside'))
    .map(([, value]) => value)
    .filter((value) => value !== null && value !== undefined && value !== '')
    .map(String)
  const { page } = row
  return {
    id: String(row.id),
    title: row.title ?? '',
    beside,
    page: page === undefined || page === null ? undefined : String(page),
  }
}

/** Rows among the newest that have each word of the text in one of their columns. */
function scanned(found: FoundTable, search: RowSearch): RawBuilder<FoundColumns> {
  const { beside = [], id, isKnownById } = found
  const columns = ['title', ...beside.map((_, index) => `beside${index}`)]
  const words = search.text.split(/\s+/).filter(Boolean).slice(0, MAX_WORDS)
  const holds = words.map((word) => anyOf(columns, (name) => like(name, word, likePattern)))
  const byId = /^#?\d{1,15}$/.test(search.text) && isKnownById === true
  const named = sql<boolean>`(${sql.join(holds, sql` AND `)})`
  const wantedId = Number(search.text.replace('#', ''))
  const matching = byId ? sql<boolean>`(${named} OR id = ${wantedId})` : named
  // The best are among the candidates, however many match.
  const begins = like('title', search.text, startPattern)
  return sql`SELECT * FROM (${selected(found)} WHERE ${sql.join(visible(found, search), sql` AND `)}
      ORDER BY ${sql.ref(id)} DESC LIMIT ${MAX_SCANNED}) AS scanned
    WHERE ${matching}
    ORDER BY CASE WHEN ${begins} THEN 0 ELSE 1 END, length(title), title
    LIMIT ${MAX_CANDIDATES}`
}

const MAX_WORDS = 5

const like = (
  column: string,
  word: string,
  pattern: (text: string) => string,
): RawBuilder<boolean> => matchesLike(sql.ref<string>(column), word, pattern)

const anyOf = (
  columns: readonly string[],
  condition: (column: string) => RawBuilder<boolean>,
): RawBuilder<boolean> => sql`(${sql.join(columns.map(condition), sql` OR `)})`

/** Parts of indexes that begin with the text. */
function indexed(found: FoundTable, search: RowSearch): readonly RawBuilder<FoundColumns>[] {
  const { starts = [], numbers = [], holdsNumber } = found
  const spellings = spellingsOf(search.text)
  const ranges = [
    ...starts.flatMap((column) => lettersOf(search.text).map((text) => within(column, text))),
    ...numbers.flatMap((column) => spellings.map((text) => within(column, text))),
    ...(holdsNumber === undefined || spellings[0] === undefined ? [] : [holdsNumber(spellings[0])]),
  ]
  return ranges.map(
    (range) => sql`${selected(found)}
      WHERE ${sql.join([...visible(found, search), range], sql` AND `)} LIMIT ${MAX_CANDIDATES}`,
  )
}

const within = (column: string, start: string): RawBuilder<boolean> =>
  sql`(${sql.ref(column)} >= ${start} AND ${sql.ref(column)} < ${endOf(start)})`

/** An index tells small letters from large ones: as typed, and as names are usually written. */
function lettersOf(text: string): readonly string[] {
  const small = text.toLowerCase()
  return [
    ...new Set([text, small, text.toUpperCase(), small.charAt(0).toUpperCase() + small.slice(1)]),
  ]
}

function selected({ table, joins, id, title, beside = [], page }: FoundTable): RawBuilder<unknown> {
  const columns = [
    sql`${sql.ref(id)} AS id`,
    sql`${typeof title === 'string' ? sql.ref(title) : title} AS title`,
    ...beside.map((column, index) => sql`${sql.ref(column)} AS ${sql.ref(`beside${index}`)}`),
    ...(page === undefined ? [] : [sql`${sql.ref(page)} AS page`]),
  ]
  return sql`SELECT ${sql.join(columns)} FROM ${table} ${joins ?? sql``}`
}

function visible(
  { owner, domain }: FoundTable,
  { tenantId, domain: only }: RowSearch,
): readonly RawBuilder<boolean>[] {
  return [
    tenantId === null ? sql<boolean>`true` : sql<boolean>`${sql.ref(owner)} = ${tenantId}`,
    ...(only === null || domain === undefined ? [] : [sql<boolean>`${sql.ref(domain)} = ${only}`]),
  ]
}
