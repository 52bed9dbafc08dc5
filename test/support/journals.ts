/** The journal of calls in memory: it survives an OCS, as the file survives its process. */
import { CallJournal } from '../../schema/journal/journal.ts'
import type { Schedule } from '../../schema/clock.ts'
import type { Log } from '../../schema/contracts/log.ts'
import { MemoryFile } from '../../schema/journal-file.ts'
import type { LocalStore } from '../../schema/open.ts'

const ofMemory = new WeakMap<object, MemoryFile>()
const byPath = new Map<string, MemoryFile>()

/** Opened again: what a start after a crash finds. */
export function journalOf(
  { sqlite, storage }: LocalStore,
  schedule: Schedule,
  log: Log = () => undefined,
): CallJournal {
  const known = sqlite.memory ? ofMemory.get(sqlite) : byPath.get(sqlite.name)
  const file = known ?? new MemoryFile()
  if (sqlite.memory) ofMemory.set(sqlite, file)
  else byPath.set(sqlite.name, file)
  return new CallJournal(file, { storage, schedule, log })
}

/** A disk that can be full. */
export class Disk extends MemoryFile {
  isFull = false
  writes = 0

  override append(lines: readonly Buffer[], done: (error: unknown) => void): void {
    this.writes += 1
    if (this.isFull) done(new Error('ENOSPC'))
    else super.append(lines, done)
  }
}
