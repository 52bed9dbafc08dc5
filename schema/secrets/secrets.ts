/** The secrets of a database, and the encryption key that the processes of a server share. */
import { DatabaseRefused } from '../sql/failure.ts'
import { boxOf, createKeyFile, KEY_MARK, keyProblem, newMark, notAKey, readKeyFile } from './key.ts'
import { isSealed, type SecretLocation } from './secret-box.ts'
import type { Statements } from '../sql/statements.ts'

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

/** The secrets of a database on a server: all of its instances have the same key. */
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
    // Another instance may be first, with another key.
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
