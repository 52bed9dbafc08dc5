/** The secrets of a database on a server: all of its nodes have the same key. */
import { DatabaseRefused } from '../refusal.ts'
import type { Statements } from '../sql/statements.ts'
import { createKeyFile, readKeyFile } from './key-file.ts'
import { boxOf, KEY_MARK, keyProblem, newMark, notAKey } from './key-mark.ts'
import { isSealed } from './secret-box.ts'
import type { Secrets } from './secrets.ts'

export interface ServerKey {
  /** 32 bytes as base64 or hexadecimal digits; undefined when stored in the file. */
  readonly secretKey: string | undefined
  readonly keyFile: string
}

/**
 * Takes the key, and makes one where none was ever used. Call it after the migrations.
 *
 * @throws {DatabaseRefused} the key is missing, or another one than the database was first used with.
 */
export async function openServerSecrets(
  statements: Statements,
  name: string,
  { secretKey, keyFile }: ServerKey,
): Promise<Secrets> {
  const keptIn = secretKey === undefined ? keyFile : 'SECRET_KEY'
  const keyText = (): string | undefined => secretKey ?? readKeyFile(keyFile)
  const refuseIf = (problem: string | undefined): void => {
    if (problem !== undefined) throw new DatabaseRefused(`cannot use database ${name}: ${problem}`)
  }
  const mark = await markOf(statements)
  refuseIf(keyProblem(mark, keyText(), keptIn))
  if (keyText() === undefined) createKeyFile(keyFile)
  const box = boxOf(keyText())
  if (box === undefined)
    throw new DatabaseRefused(`cannot use database ${name}: ${notAKey(keptIn)}`)
  if (mark === undefined) {
    // Another node may be first, with another key.
    await statements
      .prepare('INSERT INTO setting (name, value) VALUES ($1, $2) ON CONFLICT DO NOTHING')
      .run([KEY_MARK, newMark(box)])
    refuseIf(keyProblem(await markOf(statements), keyText(), keptIn))
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
