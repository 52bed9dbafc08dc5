/**
 * The thread that moves the write-ahead log into the file of the database, with a connection of its
 * own: the event loop does not wait for the disk. It locks out no writer.
 */
import { setPriority } from 'node:os'
import { parentPort, workerData } from 'node:worker_threads'
import Sqlite from 'better-sqlite3'
import { stateOf } from '../sql/write-ahead-log.ts'

/** Calls come first. On Linux it applies to this thread only. */
if (process.platform === 'linux') setPriority(0, 5)

/** A log is used from its start again once all of it is moved: what has come meanwhile follows. */
const ROUNDS = 4

const sqlite = new Sqlite(workerData as string, { fileMustExist: true, timeout: 0 })
sqlite.pragma('cache_size = 0')

parentPort?.on('message', () => {
  for (let round = 0; round < ROUNDS; round += 1) {
    const { log, checkpointed } = stateOf(sqlite, 'PASSIVE')
    if (log === checkpointed) break
  }
  parentPort?.postMessage('done', [])
})
