/** One backup, made by a thread where the program has one, so that no call waits for it. */
import { existsSync } from 'node:fs'
import { Worker } from 'node:worker_threads'
import { copyDatabase } from '../../schema/storage/copy.ts'
import type { LocalStore } from '../../schema/open.ts'
import type { BackupOrder } from './backup-worker.ts'

/** Beside the bundle; there is none when the program runs from its sources. */
const threadFile = new URL('./backup-worker.js', import.meta.url)

export function makeBackup(store: LocalStore, file: string): Promise<void> {
  const { memory, name: path } = store.sqlite
  if (!memory && existsSync(threadFile)) return inThread({ path, file })
  return new Promise((resolve) => {
    copyDatabase(store, file)
    resolve()
  })
}

function inThread(order: BackupOrder): Promise<void> {
  return new Promise((resolve, reject) => {
    const worker = new Worker(threadFile, { workerData: order })
    worker.unref()
    worker.once('message', () => resolve())
    worker.once('error', reject)
    worker.once('exit', () => reject(new Error('the thread of backups has ended')))
  })
}
