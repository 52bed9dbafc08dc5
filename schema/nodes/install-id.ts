/**
 * Which disk this is: a random number in a file beside the journal of calls. Two processes that have one node name have
 * the same number only if one comes after the other.
 */
import { existsSync, linkSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { DatabaseRefused } from '../refusal.ts'

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
