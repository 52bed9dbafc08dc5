/**
 * The encryption key of the secrets, in a file next to the database: a copy of one is useless without the
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

const KEY_BYTES = 32
const keyText = /^(?:[0-9a-f]{64}|[A-Za-z0-9+/_-]{43}=?)$/i

export const keyFileOf = (databasePath: string): string => `${databasePath}.key`

/** Parses 32 bytes as hexadecimal digits or base64; undefined when it is neither. */
export function parseKey(text: string): Buffer | undefined {
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
 * Writes a new key, readable by its owner only. It is on the disk before anything is encrypted with it, and
 * complete when it gets its name. If another process was first, that process's key is kept.
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
