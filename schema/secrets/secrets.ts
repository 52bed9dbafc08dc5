/** The secrets of a database: their columns, and their encryption key. */
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
  isSealed,
  type SecretLocation,
  sealedGlob,
  SecretBox,
} from './key.ts'
import type { Statements } from '../sql/statements.ts'

/** All columns with encrypted texts. */
const columns = [
  { table: 'carrier', column: 'auth_password', key: 'id' },
  { table: 'webhook_endpoint', column: 'secret', key: 'id' },
  { table: 'webhook_endpoint', column: 'previous_secret', key: 'id' },
  { table: 'setting', column: 'value', key: 'name', only: "name = 'jwt_secret'" },
] as const

/** Encrypts and decrypts the texts that must not be stored in clear. */
export interface Secrets {
  /** @throws {DatabaseRefused} the key is missing, or belongs to another database. */
  seal(place: SecretLocation, text: string): string
  /**
   * Undefined when damaged or moved from another row. A text from before encryption is returned as
   * it is.
   */
  open(place: SecretLocation, stored: string): string | undefined
  /**
   * Returns 32 bytes for one purpose: the same in every process that has the key.
   *
   * @throws {DatabaseRefused} the key is missing, or belongs to another database.
   */
  keyFor(purpose: string): Buffer
}

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

  /** Where the key is stored, for the operator. */
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

/** The secrets of a database on a server: all of its nodes have the same key. */
export interface ServerKey {
  /** 32 bytes as base64 or hexadecimal digits; undefined when stored in the file. */
  readonly secretKey: string | undefined
  readonly keyFile: string
}

/**
 * Takes the key, and makes one where none was ever used. Call it after the migrations.
 *
 * @throws {DatabaseRefused} the key is missing, or another one than the database was first used
 * with.
 */
export async function openServerSecrets(
  statements: Statements,
  name: string,
  { secretKey, keyFile }: ServerKey,
): Promise<Secrets> {
  const keySource = secretKey === undefined ? keyFile : 'SECRET_KEY'
  const keyText = (): string | undefined => secretKey ?? readKeyFile(keyFile)
  const refuseIf = (problem: string | undefined): void => {
    if (problem !== undefined) throw new DatabaseRefused(`cannot use database ${name}: ${problem}`)
  }
  const mark = await markOf(statements)
  refuseIf(keyProblem(mark, keyText(), keySource))
  if (keyText() === undefined) createKeyFile(keyFile)
  const box = boxOf(keyText())
  if (box === undefined)
    throw new DatabaseRefused(`cannot use database ${name}: ${notAKey(keySource)}`)
  if (mark === undefined) {
    // Another node may be first, with another key.
    await statements
      .prepare('INSERT INTO setting (name, value) VALUES ($1, $2) ON CONFLICT DO NOTHING')
      .run([KEY_MARK, newMark(box)])
    refuseIf(keyProblem(await markOf(statements), keyText(), keySource))
  }
  return {
    seal: (place, text) => box.seal(place, text),
    open: (place, stored) => (isSealed(stored) ? box.open(place, stored) : stored),
    keyFor: (purpose) => box.keyFor(purpose),
  }
}

async function markOf(statements: Statements): Promise<string | undefined> {
  const row = await statements
    .prepare<{ readonly value: string }>('SELECT value FROM setting WHERE name = $1')
    .get([KEY_MARK])
  return row?.value
}
