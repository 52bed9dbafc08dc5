/** Says in the database that there is a journal, and which database a journal belongs to. */
import { closeSync, openSync, readSync } from 'node:fs'
import type { Log } from '../contracts/log.ts'
import { JOURNAL_OPEN } from './journal-entries.ts'
import type { LocalStore } from '../storage/store.ts'
import { execute, first, groupTransaction, type Tables } from '../sql/query.ts'
import { checked } from './line-buffer.ts'
import { headOf, numberOf, journalFiles } from './journal-file.ts'

/** False: it is another database's, empty or damaged. */
function isJournalOf(file: string, databaseId: string): boolean {
  const head = checked(headOf(databaseId))
  const start = Buffer.alloc(head.length)
  const opened = openSync(file, 'r')
  try {
    readSync(opened, start, 0, start.length, 0)
  } finally {
    closeSync(opened)
  }
  return start.equals(head)
}

export interface JournalFilesId {
  /** The start of the names of the files. */
  readonly path: string
  readonly databaseId: string
}

/**
 * A mark in the database while there is a journal, so that a start after a crash notices missing
 * files.
 */
export class JournalMark {
  readonly #store: Tables
  readonly #name: string

  /** @param instance absent: the database is a file, and has one process. */
  constructor(store: Tables, instance?: string) {
    this.#store = store
    this.#name = instance === undefined ? JOURNAL_OPEN : `${JOURNAL_OPEN} ${instance}`
  }

  /**
   * The file with this number has lines on the disk. Without an answer of the database there is no
   * mark.
   */
  async set(number: number): Promise<void> {
    const value = String(number)
    const query = this.#store.db
      .insertInto('setting')
      .values({ name: this.#name, value })
      .onConflict((conflict) => conflict.column('name').doUpdateSet({ value }))
    try {
      await groupTransaction(this.#store, () => execute(this.#store, query))
      await this.#store.statements.onDisk()
    } catch {
      // Calls go on: the journal is there without it.
    }
  }

  /** Removes the mark, before the files are removed. */
  async clear(): Promise<void> {
    await execute(this.#store, this.#store.db.deleteFrom('setting').where('name', '=', this.#name))
  }

  async isLost(place: JournalFilesId, log: Log): Promise<boolean> {
    const loss = await this.loss(place)
    if (loss !== undefined) log('error', `journal: ${loss}`)
    return loss !== undefined
  }

  /**
   * Describes why the journal of the last run is lost. Undefined: it is there, or there was none.
   */
  async loss({ path, databaseId }: JournalFilesId): Promise<string | undefined> {
    const query = this.#store.db
      .selectFrom('setting')
      .select('value')
      .where('name', '=', this.#name)
    const row = await first(this.#store, query)
    if (row === undefined) return undefined
    // A later one may not have been marked yet.
    const files = journalFiles(path).filter((file) => numberOf(file) >= Number(row.value))
    if (files.some((file) => isJournalOf(path + file, databaseId))) return undefined
    const [file] = files
    const loss =
      file === undefined
        ? `${path}.calls-${row.value} is missing`
        : `${path}${file} is empty or overwritten`
    return (
      `${loss}: calls that were open when the last run ended may have no record and no ` +
      'charge; compare the records of that time with those of your carriers'
    )
  }
}

/** The id of the database; copies of the file have the same. */
export const databaseId = ({ sqlite }: Pick<LocalStore, 'sqlite'>): string =>
  String(sqlite.prepare("SELECT value FROM setting WHERE name = 'database_id'").pluck().get())

/** The same for a database of either kind. */
export async function databaseIdOf(store: Tables): Promise<string> {
  const query = store.db.selectFrom('setting').select('value').where('name', '=', 'database_id')
  return (await first(store, query))?.value ?? ''
}
