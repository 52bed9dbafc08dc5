/**
 * The processes that share a database, by their names. Times are those of the database server, so
 * that the clocks of machines need not agree.
 */
import { DAY_MS } from '../clock.ts'
import { existsSync, linkSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { type Selectable, sql } from 'kysely'
import { type InstanceIdentity, RUN_MARK_BYTES, runMark } from '../contracts/instances.ts'
import { JOURNAL_OPEN } from '../journal/journal-entries.ts'
import type { Store } from '../storage/store.ts'
import { DatabaseRefused } from '../sql/failure.ts'
import { execute, first, transaction } from '../sql/query.ts'
import type { Statements } from '../sql/statements.ts'
import type { InstanceTable } from '../tables/installation.ts'

export interface NewInstance {
  readonly name: string
  /** Identifies the disk with the journal of its calls. */
  readonly installId: string
  readonly address: string
  readonly version: string
  /**
   * How long the instance grants while the server is unreachable. Milliseconds; absent: for the
   * time to live.
   */
  readonly offlineMs?: number
}

/** An instance that is silent for longer is `lost`: it may be dead. Milliseconds. */
export const HEARTBEAT_TTL_MS = 10_000
/**
 * Begins the name of a row of `setting`, and the name of an instance follows: the settings that all
 * instances compare.
 */
export const SETTINGS_OF_INSTANCE = 'settings of node '
/**
 * Begins the name of a row of `setting`, and the name of an instance follows: how many milliseconds
 * its clock is ahead of the server's, where that is beyond the tolerance.
 */
export const CLOCK_OF_INSTANCE = 'clock of node '
/** Rows of instances that are silent for longer are removed: a name may never be used again. */
const FORGOTTEN_MS = 30 * DAY_MS

/**
 * Registers the process under its name with the next epoch, which fences the process that had the
 * name. Safe to repeat: an unused epoch does no harm.
 *
 * @throws {DatabaseRefused} a process with another disk has the name, and its last heartbeat is
 * recent.
 */
export function registerInstance(store: Store, instance: NewInstance): Promise<InstanceIdentity> {
  const { name, installId, address, version, offlineMs = HEARTBEAT_TTL_MS } = instance
  return transaction(store, async () => {
    const now = await serverNow(store)
    const known = await rowOf(store, name)
    if (known !== undefined && known.install_id !== installId) refuseAlive(known, now)
    const old = store.db.deleteFrom('node').where('heartbeat_at', '<', now - FORGOTTEN_MS)
    await execute(store, old.where('name', '<>', name))
    await removeNotes(store)
    // Only one process runs on a disk: the earlier one is dead and will not finish its requests.
    if (known?.install_id === installId) await endRequestsOf(store, { name, epoch: known.epoch })
    const epoch = (known?.epoch ?? 0) + 1
    const row = {
      epoch,
      install_id: installId,
      address,
      version,
      state: 'starting' as const,
      sip_uri: '',
      sip_addresses: '',
      live_calls: 0,
      started_at: now,
      heartbeat_at: now,
      away_ms: offlineMs,
    }
    const insert = store.db.insertInto('node').values({ name, ...row })
    await execute(
      store,
      insert.onConflict((conflict) => conflict.column('name').doUpdateSet(row)),
    )
    return { name, epoch }
  })
}

/**
 * Ends the claims of a run that has died. Otherwise a client that repeats a request with the same
 * `Idempotency-Key` would get "in progress" for minutes.
 */
async function endRequestsOf(store: Store, run: InstanceIdentity): Promise<void> {
  const claims = store.db.deleteFrom('idempotent_claim')
  await execute(
    store,
    claims.where(sql<boolean>`substr(claim, 1, ${sql.lit(RUN_MARK_BYTES)}) = ${runMark(run)}`),
  )
}

/**
 * Removes notes about instances that no longer exist: they would grow with each name. An instance
 * that returns counts its epochs from 1 again, and an old note would suppress its events.
 */
async function removeNotes(store: Store): Promise<void> {
  const notes = (prefix: string) =>
    store.db
      .deleteFrom('setting')
      .where(sql<boolean>`starts_with(name, ${prefix})`)
      .where(({ not, exists, selectFrom }) =>
        not(
          exists(
            selectFrom('node')
              .select('node.name')
              .where(sql<boolean>`setting.name = ${prefix} || node.name`),
          ),
        ),
      )
  const prefixes = [
    'lost node ',
    'fenced node ',
    SETTINGS_OF_INSTANCE,
    CLOCK_OF_INSTANCE,
    `${JOURNAL_OPEN} `,
  ]
  for (const prefix of prefixes) await execute(store, notes(prefix))
}

const rowOf = (store: Store, name: string): Promise<Selectable<InstanceTable> | undefined> =>
  first(store, store.db.selectFrom('node').selectAll().where('name', '=', name))

function refuseAlive(
  { name, state, address, heartbeat_at: beatAt, away_ms: offlineMs }: Selectable<InstanceTable>,
  now: number,
): void {
  const silentMs = now - beatAt
  // That process may grant for so long from its shares of wallets, which the next process of this
  // name takes over.
  const aliveMs = Math.max(HEARTBEAT_TTL_MS, offlineMs)
  if (state === 'stopped' || silentMs >= aliveMs) return
  const seconds = Math.ceil((aliveMs - silentMs) / 1_000)
  throw new DatabaseRefused(
    `cannot serve as node ${name}: a process with another disk has this name (${address}, ` +
      `heard ${silentMs} ms ago): set another NODE_NAME; if that process is gone, and its ` +
      `disk with it, start again in ${seconds} s`,
  )
}

export async function serverNow(store: Store): Promise<number> {
  const now = sql<number>`CAST(floor(extract(epoch FROM clock_timestamp()) * 1000) AS bigint)`
  const row = await first(store, store.db.selectNoFrom(now.as('now')))
  if (row === undefined) throw new Error('the database server does not tell the time')
  return row.now
}

/** Returns the names of instances with a recent heartbeat. Works on a database of any version. */
export async function servingInstances(statements: Statements): Promise<readonly string[]> {
  const table = await statements
    .prepare<{ readonly there: string | null }>("SELECT to_regclass('node')::text AS there")
    .get([])
  if (table?.there == null) return []
  const rows = await statements
    .prepare<{ readonly name: string }>(
      `SELECT name FROM node WHERE state <> 'stopped'
         AND heartbeat_at > extract(epoch FROM clock_timestamp()) * 1000 - $1 ORDER BY name`,
    )
    .all([HEARTBEAT_TTL_MS])
  return rows.map(({ name }) => name)
}

/**
 * The id of a disk: a random number in a file next to the journal of calls. Two processes with one
 * instance name have the same number only if one runs after the other.
 */
const ID = /^[0-9a-f]{32}$/

/**
 * Reads the id of the disk, or creates one. Call it while no other process serves from this disk.
 *
 * @param databasePath the path of the instance's files.
 * @throws {DatabaseRefused} the file cannot be read or written.
 */
export function installIdAt(databasePath: string, randomBytes: (size: number) => Buffer): string {
  const file = `${databasePath}.node`
  try {
    if (!existsSync(file)) write(file, randomBytes(16).toString('hex'))
    const id = readFileSync(file, 'utf8').trim()
    if (ID.test(id)) return id
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    throw new DatabaseRefused(`cannot use ${file}, which says which disk this is: ${reason}`)
  }
  throw new DatabaseRefused(
    `${file} is damaged: it must hold 32 hexadecimal digits; remove it if no other process ` +
      'has this NODE_NAME',
  )
}

/** Creates the file with its whole content, or not at all. */
function write(file: string, id: string): void {
  const draft = `${file}.new`
  writeFileSync(draft, `${id}\n`, { mode: 0o600, flush: true })
  linkSync(draft, file)
  rmSync(draft)
}
