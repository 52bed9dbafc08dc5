/** A mark in the database while there is a journal of calls: files of it that are gone after a crash are missed. */
import type { Log } from '../contracts/log.ts'
import { JOURNAL_OPEN } from './call-journal.ts'
import { isJournalOf, journalFiles, numberOf } from './journal-file.ts'
import type { LocalStore, Store } from '../open.ts'
import { execute, first } from '../sql/query.ts'

type Readable = Pick<Store, 'db' | 'statements'>

export interface JournalPlace {
  /** What the names of the files begin with. */
  readonly path: string
  readonly databaseId: string
}

export class JournalMark {
  readonly #store: Readable
  readonly #name: string

  /** @param node absent: the database is a file, and has one process. */
  constructor(store: Readable, node?: string) {
    this.#store = store
    this.#name = node === undefined ? JOURNAL_OPEN : `${JOURNAL_OPEN} ${node}`
  }

  /** The file with this number has lines on the disk. Without an answer of the database there is no mark. */
  async set(number: number): Promise<void> {
    const value = String(number)
    const query = this.#store.db
      .insertInto('setting')
      .values({ name: this.#name, value })
      .onConflict((conflict) => conflict.column('name').doUpdateSet({ value }))
    try {
      await execute(this.#store, query)
    } catch {
      // Calls go on: the journal is there without it.
    }
  }

  /** Before the files are removed. */
  async clear(): Promise<void> {
    await execute(this.#store, this.#store.db.deleteFrom('setting').where('name', '=', this.#name))
  }

  async isLost(place: JournalPlace, log: Log): Promise<boolean> {
    const loss = await this.loss(place)
    if (loss !== undefined) log('error', `journal: ${loss}`)
    return loss !== undefined
  }

  /** What has become of the journal that the last run left. Undefined: it is there, or there was none. */
  async loss({ path, databaseId }: JournalPlace): Promise<string | undefined> {
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
    const what =
      file === undefined
        ? `${path}.calls-${row.value} is missing`
        : `${path}${file} is empty or overwritten`
    return `${what}: calls that were open when the last run ended may have no record and no charge; compare the records of that time with those of your carriers`
  }
}

/** A copy of the file has the same. */
export const databaseId = ({ sqlite }: Pick<LocalStore, 'sqlite'>): string =>
  String(sqlite.prepare("SELECT value FROM setting WHERE name = 'database_id'").pluck().get())

/** The same of any. */
export async function databaseIdOf(store: Pick<Store, 'statements' | 'db'>): Promise<string> {
  const query = store.db.selectFrom('setting').select('value').where('name', '=', 'database_id')
  return (await first(store, query))?.value ?? ''
}
