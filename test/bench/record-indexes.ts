/**
 * CPU that a record costs when it is stored among many, in batches as the program stores them; and
 * with indexes for searches that the program does not have for that reason.
 */
import { copyFileSync, existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { settlementStatements } from '../../engine/charging/settlement/statements.ts'
import { DAY_MS } from '../../schema/clock.ts'
import { cdrColumns } from '../../schema/records/stored-record.ts'
import { PostgresStatements } from '../../schema/sql/postgres-statements.ts'
import type { Statements } from '../../schema/sql/statements.ts'
import { openDatabase } from '../../schema/sqlite/open.ts'
import { freshDatabase, hasPostgres } from '../support/postgres.ts'
import { optionsOf } from './load/options.ts'
import { fillFile, fillServer, load, type RecordsShape } from './load/varied-records.ts'

const usual = {
  records: '1000000',
  stored: '20000',
  batch: '20',
  rounds: '3',
  database: 'sqlite',
  keep: '',
}

export const describe =
  'CPU of storing a record among 1,000,000, and what indexes of numbers would add; arguments: ' +
  Object.entries(usual)
    .map(([name, value]) => `${name}=${value}`)
    .join(' ')

const DAYS = 90

const indexes = {
  'the caller': 'cdr (caller_id_number, start_stamp, tenant_id)',
  'the called number': 'cdr (destination_number, start_stamp, tenant_id)',
  'the Call-ID': 'cdr (call_id)',
} as const

export async function run(words: readonly string[] = []): Promise<void> {
  const { records, database, keep, ...rest } = optionsOf(words, usual)
  const end = Math.floor(Date.now() / DAY_MS) * DAY_MS
  const shape: RecordsShape = {
    records: Number(records),
    days: DAYS,
    customers: 2_000,
    carriers: 20,
    prefixes: 500,
    tenants: 20,
    start: end - DAYS * DAY_MS,
  }
  const plan = {
    first: Number(records),
    start: end,
    stored: Number(rest.stored),
    batch: Number(rest.batch),
    rounds: Number(rest.rounds),
  }
  const progress = (text: string) => console.log(`  ${new Date().toISOString()} ${text}`)
  if (database === 'postgres') {
    if (!hasPostgres) return console.log('  not run: there is no PostgreSQL')
    const { url, drop } = await freshDatabase()
    try {
      await fillServer(url, shape, progress)
      await onServer(url, plan)
    } finally {
      await drop()
    }
    return
  }
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-indexes-'))
  const path = join(folder, 'records.db')
  try {
    if (keep !== '' && !existsSync(keep)) await fillFile(keep, shape, progress)
    if (keep === '') await fillFile(path, shape, progress)
    else copyFileSync(keep, path)
    await inFile(path, plan)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

interface Plan {
  readonly first: number
  readonly start: number
  readonly stored: number
  readonly batch: number
  readonly rounds: number
}

interface Target {
  readonly statements: Statements
  readonly execute: (sql: string) => Promise<unknown>
  /** CPU of this process, and of the server's. */
  readonly cpuSeconds: () => number
  /** Bytes of the log since the last time. */
  readonly logged: () => Promise<number>
}

async function inFile(path: string, plan: Plan): Promise<void> {
  const store = openDatabase(path)
  const { sqlite } = store
  await compare(
    {
      statements: store.statements,
      execute: async (sql) => void sqlite.exec(sql),
      cpuSeconds: ownSeconds,
      logged: async () => NaN,
    },
    plan,
  )
  store.close()
}

async function onServer(url: string, plan: Plan): Promise<void> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  const statements = new PostgresStatements({ url, connections: 1 })
  const asked = statements.prepare<{ pid: number }>('SELECT pg_backend_pid() AS pid')
  const { pid = 0 } = (await asked.get([])) ?? {}
  const position = async (): Promise<number> =>
    Number(
      (await client.query<{ at: string }>(`SELECT pg_current_wal_lsn() - '0/0' AS at`)).rows[0]?.at,
    )
  let last = await position()
  await compare(
    {
      statements,
      execute: (sql) => client.query(sql),
      cpuSeconds: () => ownSeconds() + secondsOf(pid),
      logged: async () => {
        const now = await position()
        const bytes = now - last
        last = now
        return bytes
      },
    },
    plan,
  )
  await statements.close()
  await client.end()
}

const ownSeconds = (): number => {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1e6
}

/** In ticks of 10 ms. */
function secondsOf(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? []
  return (Number(fields[11]) + Number(fields[12])) / 100
}

async function compare(target: Target, plan: Plan): Promise<void> {
  const insert = settlementStatements({ statements: target.statements }).insertRecords
  let next = plan.first
  const names = Object.keys(indexes)
  const sets = [[], ...names.map((name) => [name]), names]
  const found = sets.map(() => [] as number[])
  const logs = sets.map(() => [] as number[])
  const store = async (): Promise<number> => {
    const before = target.cpuSeconds()
    for (let done = 0; done < plan.stored; done += plan.batch) {
      const rows = Array.from({ length: plan.batch }, () => recordOf(next++, plan.start))
      await target.statements.transaction(() => insert(rows))
    }
    return ((target.cpuSeconds() - before) / plan.stored) * 1e6
  }
  await store()
  for (let round = 0; round < plan.rounds; round += 1)
    for (const [at, added] of sets.entries()) {
      for (const [number, [name, columns]] of Object.entries(indexes).entries())
        if (added.includes(name)) await target.execute(`CREATE INDEX added_${number} ON ${columns}`)
      await target.logged()
      found[at]?.push(await store())
      logs[at]?.push((await target.logged()) / plan.stored)
      for (const [number, name] of names.entries())
        if (added.includes(name)) await target.execute(`DROP INDEX added_${number}`)
    }
  for (const [at, added] of sets.entries()) {
    const us = (found[at] ?? []).toSorted((one, other) => one - other)
    const bytes = Math.min(...(logs[at] ?? []))
    console.log(
      `  ${added.length === 0 ? 'as the program has it' : `with indexes of ${added.join(', ')}`}: ` +
        `${us.map((each) => each.toFixed(1)).join(', ')} us of CPU a record` +
        `${Number.isNaN(bytes) ? '' : `, ${bytes.toFixed(0)} bytes of log`} (load ${load()})`,
    )
  }
}

const text = (n: number, seed: number): string => ((n * seed) % 1_000_000_007).toString(36)

/** A call with numbers and identifiers like those of the others, in no order. */
function recordOf(n: number, start: number): Record<string, string | number | null> {
  const who = (n * 7_919) % 2_000
  const prefix = 1_000 + ((n * 104_729) % 500)
  const at = start + n
  const known: Record<string, string | number | null> = {
    call_uuid: `00000000-0000-4000-9000-${String(n).padStart(12, '0')}`,
    call_id: `${(n * 982_451_653) % 1_000_000_007}-${text(n, 6_700_417)}@203.0.113.7`,
    direction: 'outbound',
    caller_id_number: String(15_550_000_000 + who * 5 + (n % 5)),
    destination_number: `${prefix}${1_000_000 + ((n * 15_485_863) % 7_919)}`,
    start_stamp: at,
    answer_stamp: at + 2_000,
    end_stamp: at + 62_000,
    post_dial_delay_ms: 150,
    duration: 62,
    billsec: 60,
    disposition: 'ANSWERED',
    sip_code: 200,
    hangup_cause: 'NORMAL_CLEARING',
    hangup_by: 'caller',
    set_id: 1,
    node: 'sip:10.0.0.1:5060;transport=udp',
    carrier: `carrier ${n % 20}`,
    attempts:
      '[{"destination":"sip:10.0.0.1:5060;transport=udp","status":200,"reason":"OK",' +
      `"sent":{"called":"${prefix}","caller":"1555"},"startedAt":${at},"endedAt":${at + 2_000}}]`,
    customer_id: who + 1,
    rate_prefix: String(prefix),
    cost_micros: 6_000,
    currency: 'USD',
    source_address: '203.0.113.7:5060',
    is_recovered: 0,
    is_unauthorized_by_ocs: 0,
    instance: 'sbc-1',
    rated: '[0,1,6000,1,6000]',
    number_dialled: `00${prefix}1000000`,
  }
  return Object.fromEntries(cdrColumns.map((column) => [column, known[column] ?? null]))
}
