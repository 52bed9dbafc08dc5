import { type JournalFile, type EarlierLines, linesOf } from './journal-file.ts'

/** The journal of a database in memory. */
export class MemoryFile implements JournalFile {
  #older: Buffer[] = []
  readonly #lines: Buffer[] = []
  size = 0

  read(): EarlierLines {
    const lines = linesOf('memory', Buffer.concat([...this.#older, ...this.#lines]))
    return { lines, foreign: [] }
  }

  append(lines: Buffer, done: (error: unknown) => void): void {
    this.size += lines.length
    this.#lines.push(Buffer.from(lines))
    done(undefined)
  }

  appendReserved(lines: Buffer, done: (error: unknown) => void): void {
    this.append(lines, done)
  }

  isGone(): boolean {
    return false
  }

  prepareNew(): void {
    // It needs no room.
  }

  startNew(): void {
    this.#older.push(...this.#lines.splice(0))
    this.size = 0
  }

  removeOlder(): void {
    this.#older = []
  }

  close(): void {
    // Lines that are not stored end with the database.
  }
}
