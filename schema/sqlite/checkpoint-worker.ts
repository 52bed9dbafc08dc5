/**
 * The thread that moves the write-ahead log into the file of the database, with a connection of its
 * own: the event loop does not wait for the disk. It locks out no writer.
 */
import { parentPort, workerData } from 'node:worker_threads'
import Sqlite from 'better-sqlite3'
import { runBehindCalls } from '../behind-calls.ts'
import { stateOf } from '../sql/write-ahead-log.ts'

runBehindCalls(10)

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
