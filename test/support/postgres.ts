/**
 * A PostgreSQL server for the tests of one run: started by the first test that asks, shared by all
 * workers, and gone with the run. With `TEST_DATABASE_URL`, that of a server on which databases may
 * be made, it is used instead.
 */
import { spawn, spawnSync } from 'node:child_process'
import {
  chownSync,
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
} from 'node:fs'
import { getPriority, setPriority, tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as later } from 'node:timers/promises'
import pg from 'pg'
import { migratePostgres } from '../../schema/migrations/migrate.ts'
import { PostgresStatements } from '../../schema/sql/postgres-statements.ts'

const given = process.env['TEST_DATABASE_URL']
/** `npm test` without `--all` turns it off. */
const isOff = process.env['TEST_POSTGRES'] === 'off'
const programs = given === undefined && !isOff ? findPrograms() : undefined

/** In CI it is always there: its absence is a failure. */
export const hasPostgres =
  !isOff && (given !== undefined || programs !== undefined || process.env['CI'] === 'true')

/** The folder of Debian's newest server. */
export function findPrograms(): string | undefined {
  const root = '/usr/lib/postgresql'
  const versions = existsSync(root) ? readdirSync(root).map(Number) : []
  return versions
    .toSorted((one, other) => other - one)
    .map((version) => join(root, String(version), 'bin'))
    .find((folder) => existsSync(join(folder, 'initdb')))
}

/** The workers of a run have one parent. */
const owner = process.env['VITEST'] === undefined ? process.pid : process.ppid
const folder = join(tmpdir(), `tollgate-postgres-${owner}`)
const template = 'tollgate_template'
let databases = 0

/** Makes an empty database with this program's schema. Returns its URL, and how to remove it. */
export async function freshDatabase(
  kind: 'migrated' | 'empty' = 'migrated',
): Promise<{ readonly url: string; readonly drop: () => Promise<void> }> {
  await startOnce()
  const name = `tollgate_${owner}_${process.pid}_${(databases += 1)}`
  const from = kind === 'migrated' ? template : 'template0'
  await administrate(`CREATE DATABASE ${name} TEMPLATE ${from}`)
  return {
    url: urlOf(name),
    drop: () => administrate(`DROP DATABASE ${name} WITH (FORCE)`),
  }
}

function urlOf(database: string): string {
  if (given === undefined) return `postgres://tollgate@localhost/${database}?host=${folder}`
  const url = new URL(given)
  url.pathname = `/${database}`
  return url.href
}

async function administrate(sql: string, database = 'postgres'): Promise<void> {
  const url = given !== undefined && database === 'postgres' ? given : urlOf(database)
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    await client.query(sql)
  } finally {
    await client.end()
  }
}

let started: Promise<void> | undefined
const startOnce = (): Promise<void> => (started ??= start())

/** The first worker makes the server and the template; the others wait for its mark. */
async function start(): Promise<void> {
  const lock = join(tmpdir(), `tollgate-postgres-${owner}.lock`)
  const isFirst = isMade(lock)
  const mark = join(lock, 'ready')
  if (!isFirst) {
    for (let waited = 0; !existsSync(mark); waited += 20) {
      if (waited > 60_000) throw new Error(`PostgreSQL was not started: ${readLog()}`)
      await later(20)
    }
    return
  }
  if (given === undefined) await startServer(lock)
  await administrate(`DROP DATABASE IF EXISTS ${template}`)
  await administrate(`CREATE DATABASE ${template} TEMPLATE template0`)
  const statements = new PostgresStatements({ url: urlOf(template) })
  await migratePostgres(statements, template, 0)
  await statements.close()
  closeSync(openSync(mark, 'w'))
}

function isMade(path: string): boolean {
  try {
    mkdirSync(path)
    return true
  } catch {
    return false
  }
}

async function startServer(lock: string): Promise<void> {
  if (programs === undefined)
    throw new Error('PostgreSQL is not installed: sudo apt-get install postgresql')
  const user = unprivileged()
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { mode: 0o700 })
  if (user !== undefined) for (const made of [folder, lock]) chownSync(made, user.uid, user.gid)
  const data = join(folder, 'data')
  const made = spawnSync(
    join(programs, 'initdb'),
    ['-D', data, '-U', 'tollgate', '-A', 'trust', '-E', 'UTF8', '--locale=C', '--no-sync'],
    { ...user, encoding: 'utf8', cwd: folder },
  )
  if (made.status !== 0) throw new Error(`initdb failed: ${made.stderr}`)
  const settings = [
    'fsync=off',
    'full_page_writes=off',
    'synchronous_commit=off',
    'max_connections=300',
    'listen_addresses=',
    `unix_socket_directories=${folder}`,
    'shared_buffers=64MB',
    // No database lives for long enough to be worth it.
    'autovacuum=off',
    'wal_level=minimal',
    'max_wal_senders=0',
  ]
  const server = [join(programs, 'postgres'), '-D', data, ...settings.flatMap((one) => ['-c', one])]
  // It ends with the process that owns the run, however that ends.
  const script = `"$@" >"${folder}/log" 2>&1 & server=$!
    while [ -d /proc/${owner} ] && kill -0 $server 2>/dev/null; do sleep 0.2; done
    kill -QUIT $server; wait $server; rm -rf "${folder}" "${lock}"`
  const options = { ...user, cwd: folder, detached: true, stdio: 'ignore' } as const
  ahead(() => spawn('sh', ['-c', script, 'sh', ...server], options).unref())
  for (let waited = 0; ; waited += 20)
    try {
      return await administrate('SELECT 1')
    } catch (error) {
      if (waited > 30_000)
        throw new Error(`PostgreSQL does not start: ${readLog()}`, { cause: error })
      await later(20)
    }
}

/**
 * A call is refused where the server does not say in a tenth of a second what its wallet has. The
 * answer takes a millisecond, in which the server waits for no test: where the system allows that,
 * which it does to root.
 */
function ahead(start: () => void): void {
  const usual = getPriority()
  try {
    setPriority(usual - 10)
  } catch {
    // As the others.
  }
  try {
    start()
  } finally {
    setPriority(usual)
  }
}

/** The server refuses to run as root. */
export function unprivileged(): { readonly uid: number; readonly gid: number } | undefined {
  if (process.getuid?.() !== 0) return undefined
  const lines = readFileSync('/etc/passwd', 'utf8').split('\n')
  const line = lines.find((each) => each.startsWith('postgres:')) ?? ''
  const [, , uid, gid] = line.split(':')
  return { uid: Number(uid), gid: Number(gid) }
}

function readLog(): string {
  const log = join(folder, 'log')
  return existsSync(log) ? readFileSync(log, 'utf8').slice(-2_000) : 'it has written nothing'
}
