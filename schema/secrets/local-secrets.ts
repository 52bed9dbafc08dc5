/** The secrets of an SQLite database: their columns, and their key in a file or a setting. */
import type Sqlite from 'better-sqlite3'
import { DatabaseRefused } from '../sql/failure.ts'
import {
  boxOf,
  createKeyFile,
  KEY_MARK,
  keyFileOf,
  keyProblem,
  newKey,
  newMark,
  notAKey,
  readKeyFile,
} from './key.ts'
import { isSealed, type SecretLocation, sealedGlob, SecretBox } from './secret-box.ts'
import type { Secrets } from './secrets.ts'

/** All columns with encrypted texts. */
const columns = [
  { table: 'carrier', column: 'auth_password', key: 'id' },
  { table: 'webhook_endpoint', column: 'secret', key: 'id' },
  { table: 'webhook_endpoint', column: 'previous_secret', key: 'id' },
  { table: 'routing_webhook', column: 'secret', key: 'id' },
  { table: 'routing_webhook', column: 'previous_secret', key: 'id' },
  { table: 'alert_channel', column: 'secret', key: 'id' },
  { table: 'stir_key', column: 'private_key', key: 'id' },
  { table: 'user_second_factor', column: 'secret', key: 'user_id' },
  { table: 'identity_provider', column: 'client_secret', key: 'id' },
  { table: 'setting', column: 'value', key: 'name', only: "name = 'jwt_secret'" },
] as const

export class LocalSecrets implements Secrets {
  readonly #sqlite: Sqlite.Database
  readonly #configured: string | undefined
  readonly #path: string
  #box: SecretBox | undefined

  /**
   * @param configured text of the key; undefined when it is in a file next to the database.
   * @param path of the database, if it is open under another name.
   */
  constructor(sqlite: Sqlite.Database, configured: string | undefined, path = sqlite.name) {
    this.#sqlite = sqlite
    this.#path = path
    this.#configured = configured
  }

  /** The place of the key, for the operator. */
  get keySource(): string {
    return this.#configured === undefined ? keyFileOf(this.#path) : 'SECRET_KEY'
  }

  seal(place: SecretLocation, text: string): string {
    return this.#open().seal(place, text)
  }

  open(place: SecretLocation, stored: string): string | undefined {
    return isSealed(stored) ? this.#open().open(place, stored) : stored
  }

  keyFor(purpose: string): Buffer {
    return this.#open().keyFor(purpose)
  }

  /**
   * Checks the key, and encrypts texts that an earlier version stored in clear. Returns their
   * number. Safe to repeat. Call it after `migrate`.
   *
   * @throws {DatabaseRefused} the key is missing, or belongs to another database.
   */
  protect(): number {
    const box = this.#open()
    const sqlite = this.#sqlite
    if (columns.every((column) => this.#inClear(column).length === 0)) return 0
    // Overwritten data leaves no trace in the remaining pages …
    sqlite.pragma('secure_delete = ON')
    const count = sqlite.transaction(() => this.#sealAll(box)).immediate()
    sqlite.pragma('secure_delete = OFF')
    // … nor in pages freed earlier, nor in the log.
    sqlite.exec('VACUUM')
    sqlite.pragma('wal_checkpoint(TRUNCATE)')
    return count
  }

  /**
   * Returns why the secrets cannot be read with the current key; undefined when they can. Changes
   * nothing.
   */
  problem(): string | undefined {
    return keyProblem(this.#mark(), this.#keyText(), this.keySource)
  }

  #open(): SecretBox {
    this.#box ??= this.#sqlite.memory ? new SecretBox(newKey()) : this.#unlock()
    return this.#box
  }

  #unlock(): SecretBox {
    const problem = this.problem()
    if (problem !== undefined) throw this.#refusal(problem)
    if (this.#keyText() === undefined) createKeyFile(keyFileOf(this.#path))
    const box = boxOf(this.#keyText())
    if (box === undefined) throw this.#refusal(notAKey(this.keySource))
    if (this.#mark() === undefined)
      this.#sqlite
        .prepare('INSERT INTO setting (name, value) VALUES (?, ?)')
        .run(KEY_MARK, newMark(box))
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
}
