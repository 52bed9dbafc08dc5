/**
 * The thread that copies the database, with a connection of its own that can only read: calls do
 * not wait for it.
 */
import { setPriority } from 'node:os'
import { parentPort, workerData } from 'node:worker_threads'
import Sqlite from 'better-sqlite3'
import { copyDatabase } from '../../schema/sqlite/copy.ts'

export interface BackupOrder {
  readonly path: string
  readonly file: string
}

/** Where there is not enough for both, calls come first. Linux counts it for this thread alone. */
if (process.platform === 'linux') setPriority(0, 5)

const { path, file } = workerData as BackupOrder
const sqlite = new Sqlite(path, { readonly: true, fileMustExist: true })
try {
  copyDatabase({ sqlite }, file)
} finally {
  sqlite.close()
}
parentPort?.postMessage('done', [])
