/**
 * The processes that share a database: who has which name. Times are those of the database server, so that the clocks
 * of machines need not agree.
 */
import { existsSync, linkSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { type Selectable, sql } from 'kysely'
import { type NodeIdentity, RUN_MARK_BYTES, runMark } from '../contracts/nodes.ts'
import { JOURNAL_OPEN } from '../journal/call-journal.ts'
import type { Store } from '../open.ts'
import { DatabaseRefused } from '../sql/failure.ts'
import { execute, first, transaction } from '../sql/query.ts'
import type { Statements } from '../sql/statements.ts'
import type { NodeTable } from '../database.ts'

export interface NewNode {
  readonly name: string
  /** Of its disk, which has the journal of its calls. */
  readonly installId: string
  readonly address: string
  readonly version: string
  /** How long it grants without the server. Milliseconds; absent: for the time to live. */
  readonly awayMs?: number
}

/** A node that is silent for longer may be dead: others say that it is lost. Milliseconds. */
export const HEARTBEAT_TTL_MS = 10_000
/** With the name of the node: the row of `setting` in which it tells its own. */
export const SETTINGS_OF_NODE = 'settings of node '
/** Rows of nodes that are silent for longer are removed: machines may have names that never come again. */
const FORGOTTEN_MS = 30 * 86_400_000

/**
 * Takes the name, with the next epoch: the process that had it is fenced. Safe to repeat: one more epoch does no harm.
 *
 * @throws {DatabaseRefused} a process with another disk has it, and was heard a moment ago.
 */
export function registerNode(store: Store, node: NewNode): Promise<NodeIdentity> {
  const { name, installId, address, version, awayMs = HEARTBEAT_TTL_MS } = node
  return transaction(store, async () => {
    const now = await serverNow(store)
    const known = await rowOf(store, name)
    if (known !== undefined && known.install_id !== installId) refuseAlive(known, now)
    const old = store.db.deleteFrom('node').where('heartbeat_at', '<', now - FORGOTTEN_MS)
    await execute(store, old.where('name', '<>', name))
    await forgetTold(store)
    // On the same disk only one process runs: that one is dead, and what it was at will not be ended by it.
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
      away_ms: awayMs,
    }
    const insert = store.db.insertInto('node').values({ name, ...row })
    await execute(
      store,
      insert.onConflict((conflict) => conflict.column('name').doUpdateSet(row)),
    )
    return { name, epoch }
  })
}

/** Else a client that repeats its request with the same `Idempotency-Key` would be told for minutes that it is in progress. */
async function endRequestsOf(store: Store, run: NodeIdentity): Promise<void> {
  const claims = store.db.deleteFrom('idempotent_claim')
  await execute(
    store,
    claims.where(sql<boolean>`substr(claim, 1, ${sql.lit(RUN_MARK_BYTES)}) = ${runMark(run)}`),
  )
}

/**
 * What was told of nodes that are not there any more: it would grow with each name, and one that comes again counts its
 * epochs anew, so what was told of an earlier one would keep it silent.
 */
async function forgetTold(store: Store): Promise<void> {
  const told = (what: string) =>
    store.db
      .deleteFrom('setting')
      .where(sql<boolean>`starts_with(name, ${what})`)
      .where(({ not, exists, selectFrom }) =>
        not(
          exists(
            selectFrom('node')
              .select('node.name')
              .where(sql<boolean>`setting.name = ${what} || node.name`),
          ),
        ),
      )
  for (const what of ['lost node ', 'fenced node ', SETTINGS_OF_NODE, `${JOURNAL_OPEN} `])
    await execute(store, told(what))
}

const rowOf = (store: Store, name: string): Promise<Selectable<NodeTable> | undefined> =>
  first(store, store.db.selectFrom('node').selectAll().where('name', '=', name))

function refuseAlive(
  { name, state, address, heartbeat_at: heardAt, away_ms: awayMs }: Selectable<NodeTable>,
  now: number,
): void {
  const silentMs = now - heardAt
  // For so long it may grant from what it holds of wallets, which the next process of its name takes over.
  const aliveMs = Math.max(HEARTBEAT_TTL_MS, awayMs)
  if (state === 'stopped' || silentMs >= aliveMs) return
  const seconds = Math.ceil((aliveMs - silentMs) / 1_000)
  throw new DatabaseRefused(
    `cannot serve as node ${name}: a process with another disk has this name (${address}, heard ${silentMs} ms ago): set another NODE_NAME; if that process is gone, and its disk with it, start again in ${seconds} s`,
  )
}

async function serverNow(store: Store): Promise<number> {
  const now = sql<number>`CAST(floor(extract(epoch FROM clock_timestamp()) * 1000) AS bigint)`
  const row = await first(store, store.db.selectNoFrom(now.as('now')))
  if (row === undefined) throw new Error('the database server does not tell the time')
  return row.now
}

/** Names of nodes that were heard a moment ago. Of a database of any version. */
export async function servingNodes(statements: Statements): Promise<readonly string[]> {
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
 * Which disk this is: a random number in a file beside the journal of calls. Two processes that have one node name have
 * the same number only if one comes after the other.
 */
const ID = /^[0-9a-f]{32}$/

/**
 * Reads the number, or writes one. Call it while no other process serves with this disk.
 *
 * @param databasePath the place of the node's files.
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
    `${file} is damaged: it must hold 32 hexadecimal digits; remove it if no other process has this NODE_NAME`,
  )
}

/** Whole, or not at all. */
function write(file: string, id: string): void {
  const draft = `${file}.new`
  writeFileSync(draft, `${id}\n`, { mode: 0o600, flush: true })
  linkSync(draft, file)
  rmSync(draft)
}
