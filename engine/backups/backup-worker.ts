/**
 * The thread that copies the database, with a connection of its own that can only read: calls do
 * not wait for it.
 */
import { parentPort, workerData } from 'node:worker_threads'
import Sqlite from 'better-sqlite3'
import { runBehindCalls } from '../../schema/behind-calls.ts'
import { copyDatabase } from '../../schema/sqlite/copy.ts'

export interface BackupOrder {
  readonly path: string
  readonly file: string
}

runBehindCalls(10)

const { path, file } = workerData as BackupOrder
const sqlite = new Sqlite(path, { readonly: true, fileMustExist: true })
try {
  copyDatabase({ sqlite }, file)
} finally {
  sqlite.close()
}
parentPort?.postMessage('done', [])
