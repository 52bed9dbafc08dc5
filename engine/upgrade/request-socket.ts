/**
 * How `tollgate upgrade` reaches the serving process: a Unix socket in a folder beside the database that only the owner
 * of the database may enter. A client that connects asks for an upgrade, and gets one line: how it went.
 */
import { existsSync, mkdirSync, readdirSync, rmdirSync, rmSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import { join, resolve } from 'node:path'
import { text } from 'node:stream/consumers'
import type { Log } from '../../schema/contracts/log.ts'
import type { UpgradeOutcome } from './upgrade.ts'

/** A Unix address has no room for more. */
const MAX_PATH_BYTES = 107

const folderOf = (databasePath: string): string => resolve(`${databasePath}.upgrade`)

/** Only the process that serves the database may call this. What stops it is logged: a signal still works. */
export function takeRequests(
  databasePath: string,
  pid: number,
  run: () => Promise<UpgradeOutcome>,
  log: Log,
): { close(): void } {
  const folder = folderOf(databasePath)
  // Of its own: the process that is upgraded removes its socket after this one has made another.
  const path = join(folder, String(pid))
  if (databasePath === ':memory:' || Buffer.byteLength(path) > MAX_PATH_BYTES)
    return { close: () => undefined }
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    socket.on('error', () => undefined)
    socket.resume()
    void run().then((outcome) => socket.end(JSON.stringify(outcome)))
  })
  server.on('error', (error) => log('warn', 'tollgate upgrade cannot be used', { error }))
  try {
    // Processes that were killed have left theirs.
    rmSync(folder, { recursive: true, force: true })
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    server.listen(path)
  } catch (error) {
    log('warn', 'tollgate upgrade cannot be used', { error })
  }
  server.unref()
  return {
    close: () => {
      server.close()
      if (existsSync(folder) && readdirSync(folder).length === 0) rmdirSync(folder)
    },
  }
}

/** @throws {Error} no process serves this database, or it ended before it answered. */
export async function requestUpgrade(databasePath: string): Promise<UpgradeOutcome> {
  const folder = folderOf(databasePath)
  const [name = ''] = existsSync(folder) ? readdirSync(folder) : []
  const socket = connect(join(folder, name))
  const answer = await text(socket)
  if (answer === '') throw new Error('the serving process has ended before it answered')
  return JSON.parse(answer) as UpgradeOutcome
}
