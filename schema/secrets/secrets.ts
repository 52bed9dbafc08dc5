/** The secrets of one database: which columns they are, and the key that they are encrypted with. */
import type Sqlite from 'better-sqlite3'
import { DatabaseRefused } from '../refusal.ts'
import { createKeyFile, keyFileOf, newKey, parseKey, readKeyFile } from './key-file.ts'
import { isSealed, type Place, SecretBox, sealedGlob } from './secret-box.ts'

/** Every column that holds sealed texts. */
const columns = [
  { table: 'carrier', column: 'auth_password', key: 'id' },
  { table: 'webhook_endpoint', column: 'secret', key: 'id' },
  { table: 'webhook_endpoint', column: 'previous_secret', key: 'id' },
  { table: 'setting', column: 'value', key: 'name', only: "name = 'jwt_secret'" },
] as const

/** Sealed when the key is first used: what does not open it is another key. */
export const KEY_MARK = 'secret_key_mark'
const markPlace: Place = { table: 'setting', column: 'value', row: KEY_MARK }

export class Secrets {
  readonly #sqlite: Sqlite.Database
  readonly #configured: string | undefined
  readonly #path: string
  #box: SecretBox | undefined

  /**
   * @param configured text of the key; undefined: it is in a file beside the database.
   * @param path of the database, where it is open by another name.
   */
  constructor(sqlite: Sqlite.Database, configured: string | undefined, path = sqlite.name) {
    this.#sqlite = sqlite
    this.#path = path
    this.#configured = configured
  }

  /** Where the key is kept, for the operator. */
  get keptIn(): string {
    return this.#configured === undefined ? keyFileOf(this.#path) : 'SECRET_KEY'
  }

  /** @throws {DatabaseRefused} the key is not there, or not the one of this database. */
  seal(place: Place, text: string): string {
    return this.#open().seal(place, text)
  }

  /** Undefined: damaged, or moved here from another place. A text from before encryption is itself. */
  open(place: Place, stored: string): string | undefined {
    return isSealed(stored) ? this.#open().open(place, stored) : stored
  }

  /**
   * Sees to it that the key is there and right, and encrypts what an earlier version stored in
   * clear. Answers how many texts that were. Safe to repeat. To be called after `migrate`.
   *
   * @throws {DatabaseRefused} the key is not there, or not the one of this database.
   */
  protect(): number {
    const box = this.#open()
    const sqlite = this.#sqlite
    if (columns.every((column) => this.#inClear(column).length === 0)) return 0
    // Whatever was overwritten leaves no trace in the pages that stay …
    sqlite.pragma('secure_delete = ON')
    const count = sqlite.transaction(() => this.#sealAll(box)).immediate()
    sqlite.pragma('secure_delete = OFF')
    // … and none in those that were freed before, nor in the log.
    sqlite.exec('VACUUM')
    sqlite.pragma('wal_checkpoint(TRUNCATE)')
    return count
  }

  /** Why the secrets cannot be read with the key at hand; undefined: they can. Changes nothing. */
  problem(): string | undefined {
    const mark = this.#mark()
    if (mark === undefined) return undefined
    const text = this.#keyText()
    if (text === undefined)
      return `its secrets are encrypted and their key ${this.keptIn} is missing; put that file back, or set SECRET_KEY to what was in it; if it is lost: tollgate secrets reset`
    const key = parseKey(text)
    if (key === undefined) return this.#notAKey()
    const isRight = new SecretBox(key).open(markPlace, mark) !== undefined
    return isRight
      ? undefined
      : `${this.keptIn} is not the key that its secrets are encrypted with; put the right one back; if it is lost: tollgate secrets reset`
  }

  #open(): SecretBox {
    this.#box ??= this.#sqlite.memory ? new SecretBox(newKey()) : this.#unlock()
    return this.#box
  }

  #unlock(): SecretBox {
    const problem = this.problem()
    if (problem !== undefined) throw this.#refusal(problem)
    if (this.#keyText() === undefined) createKeyFile(keyFileOf(this.#path))
    const key = parseKey(this.#keyText() ?? '')
    if (key === undefined) throw this.#refusal(this.#notAKey())
    const box = new SecretBox(key)
    if (this.#mark() === undefined)
      this.#sqlite
        .prepare('INSERT INTO setting (name, value) VALUES (?, ?)')
        .run(KEY_MARK, box.seal(markPlace, 'tollgate'))
    return box
  }

  #keyText(): string | undefined {
    return this.#configured ?? readKeyFile(keyFileOf(this.#path))
  }

  #mark(): string | undefined {
    return this.#sqlite
      .prepare<[string], string>('SELECT value FROM setting WHERE name = ?')
      .pluck()
      .get(KEY_MARK)
  }

  #sealAll(box: SecretBox): number {
    let count = 0
    for (const each of columns) {
      const { table, column, key } = each
      const update = this.#sqlite.prepare(`UPDATE ${table} SET ${column} = ? WHERE ${key} = ?`)
      for (const { row, text } of this.#inClear(each)) {
        update.run(box.seal({ table, column, row }, text), row)
        count += 1
      }
    }
    return count
  }

  #inClear({ table, column, key, ...more }: (typeof columns)[number]) {
    const only = 'only' in more ? more.only : 'TRUE'
    return this.#sqlite
      .prepare<[string], { row: number | string; text: string }>(
        `SELECT ${key} AS row, ${column} AS text FROM ${table}
         WHERE ${column} NOT GLOB ? AND ${only}`,
      )
      .all(sealedGlob)
  }

  #refusal(problem: string): DatabaseRefused {
    return new DatabaseRefused(`cannot use database ${this.#path}: ${problem}`)
  }

  #notAKey(): string {
    return `${this.keptIn} does not hold 32 bytes as base64 or hexadecimal digits`
  }
}
