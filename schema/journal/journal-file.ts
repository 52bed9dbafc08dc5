/** The files of a journal: their names, and the form of their lines. */
import { crc32 } from 'node:zlib'
import { readdirSync } from 'node:fs'
import { basename, dirname } from 'node:path'

export interface JournalFile {
  /** Returns the lines of earlier runs, oldest first. */
  read(): EarlierLines
  /** Bytes in the file that is written to. */
  readonly size: number
  /**
   * One call at a time, also with `appendReserved`; the bytes of the lines do not change until
   * `done`. After an error the caller appends the same lines again, possibly with more after them.
   * So much room stays behind them on the disk.
   */
  append(lines: Buffer, done: (error: unknown) => void, reservedBytes?: number): void
  /** The same for lines that have their room already: a full disk takes them. */
  appendReserved(lines: Buffer, done: (error: unknown) => void): void
  /** The current file was removed or moved. */
  isGone(): boolean
  /** Makes the next file, with so much room, before it is needed. */
  prepareNew(bytes: number): void
  /** Later lines go to a new file. */
  startNew(): void
  removeOlder(): void | Promise<void>
  /**
   * `mark`: the next start reads the files, and after their lines one that says that the process
   * has stopped.
   */
  close(rest: 'remove' | 'keep' | 'mark'): void | Promise<void>
}

export interface EarlierLines {
  readonly lines: readonly (string | DamagedLine)[]
  /** Files of another database, under the names they have now. */
  readonly foreign: readonly string[]
}

export interface DamagedLine {
  readonly file: string
  /** Number of the line, from 1. */
  readonly line: number
  readonly text: string
  /** A crash cut it off while it was written: no caller was informed. */
  readonly isTorn: boolean
}

export const checksum = (text: Buffer): string => `${crc32(text).toString(16).padStart(8, '0')} `

/** Length of the checksum with the space behind it. */
export const CHECKSUM_LENGTH = 9

/** Undefined: torn or damaged. */
function unchecked(line: Buffer): string | undefined {
  const text = line.subarray(CHECKSUM_LENGTH)
  const isWhole = line.toString('latin1', 0, CHECKSUM_LENGTH) === checksum(text)
  return isWhole ? text.toString() : undefined
}

export const LINE_BREAK = 10
const ZERO = 0

export function linesOf(file: string, bytes: Buffer): readonly (string | DamagedLine)[] {
  const lines: (string | DamagedLine)[] = []
  for (let [start, end, line] = [0, 0, 1]; start < bytes.length; start = end + 1, line += 1) {
    end = bytes.indexOf(LINE_BREAK, start)
    const isCut = end < 0
    if (isCut) end = bytes.length
    // The space after the last line, and parts of the last write that a power cut lost, are zeros.
    while (bytes[start] === ZERO) start += 1
    if (isCut && start === end) break
    const found = bytes.subarray(start, end)
    const text = unchecked(found)
    const isTorn = isCut || found.includes(ZERO)
    lines.push(text ?? { file, line, text: found.toString(), isTorn })
  }
  // A write that a crash tore is the last one of its file.
  const last = lines.findLastIndex((text) => typeof text === 'string')
  return lines.map((found, index) =>
    typeof found === 'object' && index < last ? { ...found, isTorn: false } : found,
  )
}

/** The text of the first line of a file. */
export const headOf = (databaseId: string): string => JSON.stringify({ database: databaseId })

export const numberOf = (file: string): number =>
  Number.parseInt(file.slice(file.lastIndexOf('-') + 1), 10)

/** Returns the suffixes of the names of a database's journal files, oldest first. */
export function journalFiles(databasePath: string): readonly string[] {
  const start = basename(databasePath)
  return readdirSync(dirname(databasePath))
    .filter((name) => name.startsWith(start))
    .map((name) => name.slice(start.length))
    .filter((rest) => /^\.calls-\d+(?:\.stopped)?$/.test(rest))
    .toSorted((a, b) => numberOf(a) - numberOf(b))
}
