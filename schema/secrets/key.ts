/**
 * The key of the secrets, in a file next to the database: a copy of one is useless without the
 * other.
 */
import { generateKeySync } from 'node:crypto'
import {
  closeSync,
  fsyncSync,
  linkSync,
  openSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { dirname } from 'node:path'
import { type SecretLocation, SecretBox } from './secret-box.ts'

const KEY_BYTES = 32
const keyText = /^(?:[0-9a-f]{64}|[A-Za-z0-9+/_-]{43}=?)$/i

export const keyFileOf = (databasePath: string): string => `${databasePath}.key`

/** Parses 32 bytes as hexadecimal digits or base64; undefined when it is neither. */
function parseKey(text: string): Buffer | undefined {
  const trimmed = text.trim()
  if (!keyText.test(trimmed)) return undefined
  return Buffer.from(trimmed, trimmed.length === 2 * KEY_BYTES ? 'hex' : 'base64')
}

export const newKey = (): Buffer => generateKeySync('aes', { length: KEY_BYTES * 8 }).export()

/** Returns its text; undefined when there is no such file. */
export function readKeyFile(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined
    throw error
  }
}

/**
 * Writes a new key, readable by its owner only. It is on the disk before anything is encrypted with
 * it, and complete when it gets its name. If another process was first, its key stays.
 */
export function createKeyFile(path: string): void {
  const unfinished = `${path}.${process.pid}`
  rmSync(unfinished, { force: true })
  const file = openSync(unfinished, 'wx', 0o600)
  try {
    writeFileSync(file, `${newKey().toString('base64')}\n`)
    fsyncSync(file)
  } finally {
    closeSync(file)
  }
  try {
    linkSync(unfinished, path)
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error
  } finally {
    rmSync(unfinished, { force: true })
  }
  syncFolder(dirname(path))
}

function syncFolder(path: string): void {
  const folder = openSync(path, 'r')
  try {
    fsyncSync(folder)
  } finally {
    closeSync(folder)
  }
}

/**
 * The setting that is encrypted at the first use of the key: a key that cannot decrypt it is a
 * wrong key.
 */
export const KEY_MARK = 'secret_key_mark'
const markPlace: SecretLocation = { table: 'setting', column: 'value', row: KEY_MARK }

export const newMark = (box: SecretBox): string => box.seal(markPlace, 'tollgate')

/** Undefined when the text is not a key. */
export function boxOf(text: string | undefined): SecretBox | undefined {
  const key = parseKey(text ?? '')
  return key && new SecretBox(key)
}

/**
 * Returns why the secrets cannot be read; undefined when they can, or when there are none.
 *
 * @param mark value of the setting; undefined: no key has been used.
 * @param text of the key; undefined: there is none.
 */
export function keyProblem(
  mark: string | undefined,
  text: string | undefined,
  keySource: string,
): string | undefined {
  if (mark === undefined) return undefined
  if (text === undefined)
    return (
      `its secrets are encrypted and their key ${keySource} is missing; put that file back, ` +
      'or set SECRET_KEY to what was in it; if it is lost: tollgate secrets reset'
    )
  const box = boxOf(text)
  if (box === undefined) return notAKey(keySource)
  return box.open(markPlace, mark) !== undefined
    ? undefined
    : `${keySource} is not the key that its secrets are encrypted with; put the right one ` +
        'back; if it is lost: tollgate secrets reset'
}

export const notAKey = (keySource: string): string =>
  `${keySource} does not hold 32 bytes as base64 or hexadecimal digits`
