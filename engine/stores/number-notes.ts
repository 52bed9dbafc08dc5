/**
 * Notes on stored rates and routes that miss numbers, or hold them twice, because of how
 * international numbers are dialled.
 */
import { sql } from 'kysely'
import type { Log } from '../../schema/contracts/log.ts'
import type { Store } from '../../schema/storage/store.ts'
import {
  exitCodeOf,
  internationalPrefix,
  usualExitCodes,
  withoutPlus,
} from '../../schema/rules/numbers.ts'
import type { ExitCodes } from '../../schema/contracts/charging.ts'
import { all, first } from '../../schema/sql/query.ts'

type Queried = Pick<Store, 'statements' | 'db'>

/** More lines add nothing. */
const MAX_LINES = 20

/** One line for each thing that an operator should look at; for `tollgate check`. */
export const numberNotes = (
  store: Queried,
  exitCodes: ExitCodes | undefined,
): Promise<readonly string[]> =>
  exitCodes === undefined ? withoutExitCodes(store) : sameStarts(store, exitCodes)

/** Logs the notes at a start, which goes on without an answer of the database. */
export async function logNumberNotes(
  store: Queried,
  exitCodes: ExitCodes | undefined,
  log: Log,
): Promise<void> {
  try {
    for (const note of await numberNotes(store, exitCodes)) log('warn', `numbers: ${note}`)
  } catch (error) {
    log('warn', 'numbers: the prefixes of rates and routes could not be compared', { error })
  }
}

interface Counted {
  readonly count: number
  /** One of them. */
  readonly example: string | null
}

const INSTEAD =
  'set it to what is dialled in place of +, such as 00 or 011, or to none where nothing is ' +
  '(/guide#setting-exit_codes)'

/** `44` does not hold what is dialled as `0044…`, and `0044` does not hold `+44…` (D267). */
async function withoutExitCodes(store: Queried): Promise<readonly string[]> {
  const blocks = await counted(store, isWithoutCode, true)
  const coded = await counted(store, beginsWithCode(usualExitCodes), false)
  const lines: string[] = []
  if (blocks.text !== '')
    lines.push(
      `EXIT_CODES is not set: ${blocks.text}, such as ${blocks.example}, hold numbers as they ` +
        `are written, but not 00${withoutPlus(blocks.example)}… or ` +
        `011${withoutPlus(blocks.example)}…: ${INSTEAD}`,
    )
  if (coded.text !== '')
    lines.push(
      `EXIT_CODES is not set: ${coded.text}, such as ${coded.example}, begin like an exit code, ` +
        `and do not hold the same numbers with +: ${INSTEAD}`,
    )
  return lines
}

async function counted(
  store: Queried,
  condition: ReturnType<typeof beginsWithCode>,
  isBlock: boolean,
): Promise<{ readonly text: string; readonly example: string }> {
  const { db } = store
  const found = {
    count: sql<number>`count(*)`.as('count'),
    example: sql<string | null>`min(prefix)`.as('example'),
  }
  const rates = db.selectFrom('rate').select([found.count, found.example]).where(condition)
  const active = db
    .selectFrom('outbound_route')
    .select([found.count, found.example])
    .where('is_active', '=', 1)
    .where(condition)
  const ofRates = await first<Counted>(store, isBlock ? rates.where('is_blocked', '=', 1) : rates)
  const ofRoutes = await first<Counted>(
    store,
    isBlock ? active.where('mode', '=', 'block') : active,
  )
  const parts = [
    countText(ofRates, isBlock ? 'blocked rate' : 'rate'),
    countText(ofRoutes, isBlock ? 'blocking route' : 'route'),
  ]
  return {
    text: parts.filter((part) => part !== '').join(' and '),
    example: ofRates?.example ?? ofRoutes?.example ?? '',
  }
}

function countText(counts: Counted | undefined, what: string): string {
  const count = counts?.count ?? 0
  if (count === 0) return ''
  return count === 1 ? `1 ${what}` : `${count} ${what}s`
}

const digits = sql<string>`ltrim(prefix, '+')`

/** It may begin with a country code. */
const isWithoutCode = sql<boolean>`substr(${digits}, 1, 1) BETWEEN '1' AND '9'`

const beginsWithCode = (codes: ExitCodes) =>
  sql<boolean>`(${sql.join(
    codes.map((code) => sql`substr(${digits}, 1, ${sql.lit(code.length)}) = ${code}`),
    sql` OR `,
  )})`

/**
 * `0044` and `44` are one prefix with `EXIT_CODES=00`: the rate table takes the one that costs the
 * caller more. A statement for each spelling: with several in one, PostgreSQL compares each prefix
 * of a plan with all of them.
 */
async function sameStarts(store: Queried, exitCodes: ExitCodes): Promise<readonly string[]> {
  const lines = new Set<string>()
  for (const code of exitCodes)
    for (const start of ['', '+', ...exitCodes])
      for (const { name, coded, other } of await all(store, pairsOf(store, code, start))) {
        const isOfCode = exitCodeOf(withoutPlus(coded), exitCodes) === code
        const compared = [coded, other].map((prefix) => internationalPrefix(prefix, exitCodes))
        if (!isOfCode || compared[0] !== compared[1]) continue
        const pair = [coded, other].toSorted((a, b) => a.length - b.length || (a < b ? -1 : 1))
        lines.add(
          `rate plan ${JSON.stringify(name)}: ${pair.join(' and ')} are one prefix with ` +
            'EXIT_CODES: of those in force a blocked one holds, else the dearer; keep one of them',
        )
      }
  return [...lines].slice(0, MAX_LINES)
}

/** Prefixes that begin with the code, and are in their plan with `start` in its place, too. */
function pairsOf({ db }: Queried, code: string, start: string) {
  // Once each: with a thousand rates of each spelling, one to come after the other, there are a
  // million pairs of rates.
  const codedPrefixes = db
    .selectFrom('rate')
    .select(['rate_plan_id', 'prefix'])
    .distinct()
    .where(sql<boolean>`substr(${digits}, 1, ${sql.lit(code.length)}) = ${code}`)
    .as('coded')
  const rest = sql<string>`substr(ltrim(coded.prefix, '+'), ${sql.lit(code.length + 1)})`
  const spelled = sql<string>`${sql.lit(start)} || ${rest}`
  return db
    .selectFrom(codedPrefixes)
    .innerJoin('rate_plan', 'rate_plan.id', 'coded.rate_plan_id')
    .select(['rate_plan.name', 'coded.prefix as coded', spelled.as('other')])
    .where(sql<boolean>`${spelled} <> coded.prefix`)
    .where((row) =>
      row.exists(
        row
          .selectFrom('rate as same')
          .select('same.id')
          .whereRef('same.rate_plan_id', '=', 'coded.rate_plan_id')
          .where('same.prefix', '=', spelled),
      ),
    )
    .orderBy('rate_plan.name')
    .orderBy('coded.prefix')
    .limit(MAX_LINES)
}
