/**
 * Milliseconds of `GET /search` over many records, customers, extensions and numbers, from the
 * program itself, asked by the platform and by a tenant; and what the indexes cost a record.
 */
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Sqlite from 'better-sqlite3'
import pg from 'pg'
import { DAY_MS } from '../../schema/clock.ts'
import { freshDatabase, hasPostgres } from '../support/postgres.ts'
import { TollgateProcess } from '../support/tollgate-process.ts'
import { oneCustomer } from './load/one-customer.ts'
import { optionsOf } from './load/options.ts'
import { callIdOf, fillFile, fillServer, load, type RecordsShape } from './load/varied-records.ts'

const usual = { records: '1000000', things: '10000', times: '20', database: 'sqlite', keep: '' }

export const describe =
  'GET /search over 1,000,000 records, 10,000 customers, 10,000 extensions, 10,000 numbers; ' +
  'arguments: ' +
  Object.entries(usual)
    .map(([name, value]) => `${name}=${value}`)
    .join(' ')

const DAYS = 90
const TENANTS = 20

export async function run(words: readonly string[] = []): Promise<void> {
  const { records, things, times, database, keep } = optionsOf(words, usual)
  const end = Math.floor(Date.now() / DAY_MS) * DAY_MS
  const shape: RecordsShape = {
    records: Number(records),
    days: DAYS,
    customers: Number(things),
    carriers: 20,
    prefixes: 500,
    tenants: TENANTS,
    start: end - DAYS * DAY_MS,
  }
  const progress = (text: string) => console.log(`  ${new Date().toISOString()} ${text}`)
  if (database === 'postgres') {
    // Records of an earlier run: the URL of a database.
    if (keep !== '') return measure({ DATABASE_URL: keep }, Number(times))
    if (!hasPostgres) return console.log('  not run: there is no PostgreSQL')
    const { url, drop } = await freshDatabase()
    try {
      await fillServer(url, shape, progress)
      const client = new pg.Client({ connectionString: url })
      await client.connect()
      for (const statement of thingsIn(shape)) await client.query(statement)
      await client.query('VACUUM ANALYZE')
      await client.end()
      await measure({ DATABASE_URL: url }, Number(times))
    } finally {
      await drop()
    }
    return
  }
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-search-'))
  const path = keep === '' ? join(folder, 'search.db') : keep
  try {
    if (!existsSync(path)) {
      await fillFile(path, shape, progress)
      const sqlite = new Sqlite(path)
      for (const statement of thingsIn(shape)) sqlite.exec(statement)
      sqlite.close()
    }
    await measure({ DATABASE_PATH: path }, Number(times))
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Tenants, customers, extensions and numbers, in words of both databases. */
const thingsIn = ({ customers, start }: RecordsShape): readonly string[] => {
  const numbered = (end: number) =>
    `WITH RECURSIVE one (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM one WHERE i < ${end})`
  const into = (table: string, columns: string, values: string, end: number) =>
    `INSERT INTO ${table} (${columns}) ${numbered(end)} SELECT ${values} FROM one`
  const tenant = `1 + i % ${TENANTS}`
  return [
    into('tenant', 'slug, name, created_at', `'t' || i, 'Tenant ' || i, ${start}`, TENANTS),
    into('tenant_domain', 'domain, tenant_id', `'t' || i || '.example', i`, TENANTS),
    into(
      'customer',
      'tenant_id, name, email, created_at, updated_at',
      `${tenant}, 'Customer ' || i || ' of Street ' || (i * 7919 % 10007),
       'c' || i || '@mail.example', ${start}, ${start}`,
      customers,
    ),
    into(
      'extension',
      'tenant_id, domain, extension, display_name, ha1_md5, ha1_sha256, created_at, updated_at',
      `${tenant}, 't' || (${tenant}) || '.example', CAST(10000 + i AS TEXT), 'Phone of ' || i,
       '', '', ${start}, ${start}`,
      customers,
    ),
    into(
      'phone_number',
      'tenant_id, number, first_number, last_number, digits, customer_id, created_at, updated_at',
      `${tenant}, '+' || (49300000000 + i), CAST(49300000000 + i AS TEXT),
       CAST(49300000000 + i AS TEXT), 11, i, ${start}, ${start}`,
      customers,
    ),
  ]
}

async function measure(environment: Record<string, string>, times: number): Promise<void> {
  const tollgate = await TollgateProcess.start(oneCustomer([5_060]), {
    ...environment,
    LOG_LEVEL: 'warn',
  })
  try {
    for (const [who, ...limits] of [['platform'], ['tenant', '--tenant', 't5']] as const) {
      const name = `bench ${who} ${Date.now()}`
      const token = await tollgate.createKey('--name', name, '--scopes', '*', ...limits)
      for (const [meaning, text] of texts) {
        const ms: number[] = []
        let found = ''
        for (let time = 0; time < times; time += 1) {
          const begin = performance.now()
          const url = `http://127.0.0.1:${tollgate.apiPort}/api/v1/search?q=${encodeURIComponent(text)}`
          const answer = await fetch(url, { headers: { authorization: `Bearer ${token}` } })
          found = summed(await answer.text())
          ms.push(performance.now() - begin)
        }
        const sorted = ms.toSorted((one, other) => one - other)
        const at = (share: number) => (sorted[Math.floor(sorted.length * share)] ?? NaN).toFixed(1)
        console.log(
          `  ${who}, ${meaning} "${text}": median ${at(0.5)} ms, worst ${at(0.999)} ms ` +
            `(load ${load()}): ${found}`,
        )
      }
    }
  } finally {
    await tollgate.stop()
  }
}

const texts = [
  ['a whole number', '15550004997'],
  ['a number that many call', '10001000000'],
  ['the beginning of all numbers', '1555'],
  ['the beginning of many numbers', '10001'],
  ['a beginning of some numbers', '155500001'],
  ['a uuid', '00000000-0000-4000-8000-100000777777'],
  ['the beginning of all uuids', '00000000-0000'],
  ['a Call-ID', callIdOf(777_777)],
  ['the beginning of a Call-ID', callIdOf(777_777).slice(0, 12)],
  ['a name', 'customer 4711'],
  ['a part of all names', 'street'],
  ['a letter', 'e'],
  ['an extension', '14711'],
  ['a number of a customer', '49300004711'],
  ['nothing', 'no such thing'],
] as const

/** `call 5, customer 1` */
function summed(body: string): string {
  const { data = [] } = JSON.parse(body) as { data?: readonly { kind: string }[] }
  const counts = new Map<string, number>()
  for (const { kind } of data) counts.set(kind, (counts.get(kind) ?? 0) + 1)
  return [...counts].map(([kind, hits]) => `${kind} ${hits}`).join(', ') || body.slice(0, 200)
}
