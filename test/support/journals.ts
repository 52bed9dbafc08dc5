/** The journal of calls in memory: it survives an OCS, as the file survives its process. */
import { CallJournal } from '../../schema/journal/call-journal.ts'
import type { Schedule } from '../../schema/clock.ts'
import type { Log } from '../../schema/contracts/log.ts'
import { MemoryFile } from '../../schema/journal/memory-file.ts'
import type { LocalStore, Store } from '../../schema/storage/store.ts'

const ofMemory = new WeakMap<object, MemoryFile>()
const byPath = new Map<string, MemoryFile>()

/** Opened again: what a start after a crash finds. */
export function journalOf(
  store: Store,
  schedule: Schedule,
  log: Log = () => undefined,
): CallJournal {
  const { sqlite } = store as Partial<LocalStore>
  const path = sqlite?.memory === false ? sqlite.name : undefined
  const file =
    (path === undefined ? ofMemory.get(sqlite ?? store) : byPath.get(path)) ?? new MemoryFile()
  if (path === undefined) ofMemory.set(sqlite ?? store, file)
  else byPath.set(path, file)
  return new CallJournal(file, { storage: store.storage, schedule, log })
}

/** A disk that can be full. */
export class Disk extends MemoryFile {
  isFull = false
  writes = 0

  /** The bytes that are reserved. */
  reservedBytes = 0

  override append(lines: Buffer, done: (error: unknown) => void): void {
    this.writes += 1
    if (this.isFull) done(new Error('ENOSPC'))
    else super.append(lines, done)
  }

  override appendReserved(lines: Buffer, done: (error: unknown) => void): void {
    if (lines.length > this.reservedBytes) return done(new Error('ENOSPC'))
    this.reservedBytes -= lines.length
    return super.append(lines, done)
  }
}
