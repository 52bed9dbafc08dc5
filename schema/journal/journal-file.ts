/**
 * Lines that survive a crash, in numbered files next to the database. A line is durable when
 * `append` calls back without an error. Each append is one synchronous write (`O_DSYNC`), off the
 * main thread.
 */
import {
  close,
  closeSync,
  constants,
  existsSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  renameSync,
  rm,
  rmSync,
  write,
} from 'node:fs'
import { basename, dirname } from 'node:path'
import { crc32 } from 'node:zlib'
import { sync } from '../storage/sync.ts'
import type { Log } from '../contracts/log.ts'
import { JOURNAL_OPEN } from './call-journal.ts'
import type { LocalStore } from '../storage/store.ts'
import { execute, first, type Tables } from '../sql/query.ts'

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
  /** From 1. */
  readonly line: number
  readonly text: string
  /** A crash cut it off while it was written: no caller was informed. */
  readonly isTorn: boolean
}

/**
 * The bytes of a line with its checksum, so that a torn or damaged one is noticed. `text` has no
 * line break.
 */
export const checked = (text: string): Buffer => new LineBuffer(0).add(text)

/** Lines one behind the other, in memory that is used again. */
export class LineBuffer {
  #bytes: Buffer
  #length = 0

  constructor(size = FIRST_BYTES) {
    this.#bytes = Buffer.allocUnsafeSlow(size)
  }

  get length(): number {
    return this.#length
  }

  /** Until the next change. */
  get bytes(): Buffer {
    return this.#bytes.subarray(0, this.#length)
  }

  /**
   * Adds a line with its checksum, and returns its bytes. Several parts are written one by one:
   * joined they would be copied.
   */
  add(...parts: readonly string[]): Buffer {
    const start = this.#length
    let end = start + CHECKSUM_LENGTH
    for (const part of parts) {
      // A code unit takes three bytes at most.
      this.#makeRoom(end + 3 * part.length + 1)
      end += this.#bytes.write(part, end)
    }
    this.#bytes[end] = LINE_BREAK
    this.#length = end + 1
    const line = this.#bytes.subarray(start, this.#length)
    line.write(checksum(line.subarray(CHECKSUM_LENGTH, -1)), 'latin1')
    return line
  }

  append(lines: Buffer): void {
    this.#makeRoom(this.#length + lines.length)
    this.#length += lines.copy(this.#bytes, this.#length)
  }

  clear(): void {
    this.#length = 0
    if (this.#bytes.length > MOST_BYTES) this.#bytes = Buffer.allocUnsafeSlow(FIRST_BYTES)
  }

  #makeRoom(size: number): void {
    if (size <= this.#bytes.length) return
    const larger = Buffer.allocUnsafeSlow(2 * size)
    this.#bytes.copy(larger)
    this.#bytes = larger
  }
}

const FIRST_BYTES = 64 * 1024
/** More is given back when it is written. */
const MOST_BYTES = 1024 * 1024

const checksum = (text: Buffer): string => `${crc32(text).toString(16).padStart(8, '0')} `

/** With the space behind it. */
const CHECKSUM_LENGTH = 9

/** The text of a complete line, which is the first `length` bytes. */
export const textOf = (line: Buffer, length = line.length): string =>
  line.toString('utf8', CHECKSUM_LENGTH, length - 1)

/** Undefined: torn or damaged. */
function unchecked(line: Buffer): string | undefined {
  const text = line.subarray(CHECKSUM_LENGTH)
  const isWhole = line.toString('latin1', 0, CHECKSUM_LENGTH) === checksum(text)
  return isWhole ? text.toString() : undefined
}

const [LINE_BREAK, ZERO] = [10, 0]

function linesOf(file: string, bytes: Buffer): readonly (string | DamagedLine)[] {
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

const noBytes = Buffer.alloc(0)

/** Zeros are written ahead: a line that changed the size of the file would cost a second write. */
const ROOM_BYTES = 256 * 1024
const zeros = Buffer.alloc(ROOM_BYTES)

/** Only one process may have them: the one that serves the database. */
export class JournalFiles implements JournalFile {
  readonly #databasePath: string
  /** The text of the first line of each file. */
  readonly #head: string
  readonly #mark: Pick<JournalMark, 'set' | 'clear'> | undefined
  #number: number
  /** Open from its first write on. */
  #file: number | undefined
  #size = 0
  #room = 0
  /** Parts of lines may stand behind the last one: their write has failed. */
  #isTorn = false
  #isWriting = false
  #isClosed = false

  /** @param databaseId files of another database are renamed, not read. */
  constructor(databasePath: string, databaseId: string, mark?: Pick<JournalMark, 'set' | 'clear'>) {
    this.#databasePath = databasePath
    this.#head = headOf(databaseId)
    this.#mark = mark
    this.#number = Math.max(0, ...journalFiles(databasePath).map(numberOf)) + 1
  }

  get size(): number {
    return this.#size
  }

  read(): EarlierLines {
    const lines: (string | DamagedLine)[] = []
    const foreign: string[] = []
    for (const file of this.#files()) {
      const [head, ...rest] = linesOf(file, readFileSync(file))
      if (typeof head !== 'string' || head === this.#head)
        lines.push(...(typeof head === 'object' ? [head] : []), ...rest, ...endOf(file))
      else {
        foreign.push(`${file}.of-another-database`)
        renameSync(file, `${file}.of-another-database`)
      }
    }
    return { lines, foreign }
  }

  append(lines: Buffer, done: (error: unknown) => void, reservedBytes = 0): void {
    try {
      const file = (this.#file ??= this.#create())
      const head = this.#size === 0 ? checked(this.#head) : noBytes
      const bytes = head.length === 0 ? lines : Buffer.concat([head, lines])
      this.#isWriting = true
      this.#makeRoom(file, this.#size + bytes.length + reservedBytes, (error) => {
        if (error === undefined) this.#write(file, bytes, done)
        else this.#written(error, done)
      })
    } catch (error) {
      this.#written(error, done)
    }
  }

  appendReserved(lines: Buffer, done: (error: unknown) => void): void {
    const hasRoom = this.#size > 0 && this.#size + lines.length <= this.#room
    if (this.#file === undefined || this.#isTorn || !hasRoom)
      return done(new Error('the room that is reserved is used up'))
    this.#isWriting = true
    return this.#write(this.#file, lines, done)
  }

  /**
   * Writes zeros up to there, piece by piece. A disk that is full refuses them, and no line is
   * torn.
   */
  #makeRoom(file: number, upTo: number, done: (error: unknown) => void): void {
    if (upTo <= this.#room) return done(undefined)
    return writeAll(file, zeros, this.#room, (error) => {
      if (error !== undefined) return done(error)
      this.#room += zeros.length
      return this.#makeRoom(file, upTo, done)
    })
  }

  #write(file: number, bytes: Buffer, done: (error: unknown) => void): void {
    writeAll(file, bytes, this.#size, (error) => {
      this.#isTorn = error !== undefined
      if (error === undefined) {
        if (this.#size === 0) void this.#mark?.set(this.#number)
        this.#size += bytes.length
      }
      this.#written(error, done)
    })
  }

  #written(error: unknown, done: (error: unknown) => void): void {
    this.#isWriting = false
    if (this.#isClosed) this.#close()
    done(error)
  }

  #create(): number {
    const { O_CREAT, O_RDWR, O_DSYNC } = constants
    const file = openSync(this.#path, O_CREAT | O_RDWR | O_DSYNC, 0o600)
    sync(dirname(this.#path))
    return file
  }

  get #path(): string {
    return `${this.#databasePath}${SUFFIX}${this.#number}`
  }

  isGone(): boolean {
    return this.#file !== undefined && !existsSync(this.#path)
  }

  startNew(): void {
    this.#close()
    this.#number += 1
    this.#size = 0
    this.#room = 0
    this.#isTorn = false
  }

  async removeOlder(): Promise<void> {
    if (this.#size === 0 && !(await this.#isUnmarked())) return
    for (const file of this.#files())
      // Asynchronously: freeing the space of the file takes a moment.
      if (numberOf(file) < this.#number) rm(file, { force: true }, () => undefined)
  }

  async close(rest: 'remove' | 'keep' | 'mark'): Promise<void> {
    this.#isClosed = true
    // The number of a closed file may be that of another one when the write begins.
    if (!this.#isWriting) this.#close()
    if (rest === 'remove' && !(await this.#isUnmarked())) return
    for (const file of this.#files())
      if (rest === 'remove') rmSync(file, { force: true })
      // The name marks the file, because a full disk takes no line.
      else if (rest === 'mark' && !file.endsWith(STOPPED)) renameSync(file, file + STOPPED)
  }

  /** False: without its files the next start would miss them. */
  async #isUnmarked(): Promise<boolean> {
    try {
      await this.#mark?.clear()
      return true
    } catch {
      return false
    }
  }

  #close(): void {
    if (this.#file !== undefined) close(this.#file)
    this.#file = undefined
  }

  /** Oldest first. */
  #files(): readonly string[] {
    return journalFiles(this.#databasePath)
      .map((suffix) => this.#databasePath + suffix)
      .filter((file) => numberOf(file) <= this.#number)
  }
}

const SUFFIX = '.calls-'
/** The text of the first line of a file. */
const headOf = (databaseId: string): string => JSON.stringify({ database: databaseId })

/** False: it is another database's, empty or damaged. */
function isJournalOf(file: string, databaseId: string): boolean {
  const head = checked(headOf(databaseId))
  const start = Buffer.alloc(head.length)
  const opened = openSync(file, 'r')
  try {
    readSync(opened, start, 0, start.length, 0)
  } finally {
    closeSync(opened)
  }
  return start.equals(head)
}

/** Behind the name of a file whose process has stopped. */
const STOPPED = '.stopped'

const endOf = (file: string): readonly string[] =>
  file.endsWith(STOPPED) ? ['{"stopped":true}'] : []

/** Returns the suffixes of the names of a database's journal files, oldest first. */
export function journalFiles(databasePath: string): readonly string[] {
  const start = basename(databasePath)
  return readdirSync(dirname(databasePath))
    .filter((name) => name.startsWith(start))
    .map((name) => name.slice(start.length))
    .filter((rest) => /^\.calls-\d+(?:\.stopped)?$/.test(rest))
    .toSorted((a, b) => numberOf(a) - numberOf(b))
}

const numberOf = (file: string): number =>
  Number.parseInt(file.slice(file.lastIndexOf('-') + 1), 10)

/** A disk may take a part at a time. */
function writeAll(
  file: number,
  bytes: Buffer,
  position: number,
  done: (error: unknown) => void,
): void {
  write(file, bytes, 0, bytes.length, position, (error, written) => {
    if (error !== null || written === 0) return done(error ?? new Error('no byte was written'))
    if (written === bytes.length) return done(undefined)
    return writeAll(file, bytes.subarray(written), position + written, done)
  })
}

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

// ---- the mark in the database ------------------------------------------------------------

export interface JournalFilesId {
  /** The start of the names of the files. */
  readonly path: string
  readonly databaseId: string
}

/**
 * A mark in the database while there is a journal, so that a start after a crash notices missing
 * files.
 */
export class JournalMark {
  readonly #store: Tables
  readonly #name: string

  /** @param node absent: the database is a file, and has one process. */
  constructor(store: Tables, node?: string) {
    this.#store = store
    this.#name = node === undefined ? JOURNAL_OPEN : `${JOURNAL_OPEN} ${node}`
  }

  /**
   * The file with this number has lines on the disk. Without an answer of the database there is no
   * mark.
   */
  async set(number: number): Promise<void> {
    const value = String(number)
    const query = this.#store.db
      .insertInto('setting')
      .values({ name: this.#name, value })
      .onConflict((conflict) => conflict.column('name').doUpdateSet({ value }))
    try {
      await execute(this.#store, query)
    } catch {
      // Calls go on: the journal is there without it.
    }
  }

  /** Before the files are removed. */
  async clear(): Promise<void> {
    await execute(this.#store, this.#store.db.deleteFrom('setting').where('name', '=', this.#name))
  }

  async isLost(place: JournalFilesId, log: Log): Promise<boolean> {
    const loss = await this.loss(place)
    if (loss !== undefined) log('error', `journal: ${loss}`)
    return loss !== undefined
  }

  /**
   * Describes why the journal of the last run is lost. Undefined: it is there, or there was none.
   */
  async loss({ path, databaseId }: JournalFilesId): Promise<string | undefined> {
    const query = this.#store.db
      .selectFrom('setting')
      .select('value')
      .where('name', '=', this.#name)
    const row = await first(this.#store, query)
    if (row === undefined) return undefined
    // A later one may not have been marked yet.
    const files = journalFiles(path).filter((file) => numberOf(file) >= Number(row.value))
    if (files.some((file) => isJournalOf(path + file, databaseId))) return undefined
    const [file] = files
    const loss =
      file === undefined
        ? `${path}.calls-${row.value} is missing`
        : `${path}${file} is empty or overwritten`
    return `${loss}: calls that were open when the last run ended may have no record and no charge; compare the records of that time with those of your carriers`
  }
}

/** The id of the database; copies of the file have the same. */
export const databaseId = ({ sqlite }: Pick<LocalStore, 'sqlite'>): string =>
  String(sqlite.prepare("SELECT value FROM setting WHERE name = 'database_id'").pluck().get())

/** The same for a database of either kind. */
export async function databaseIdOf(store: Tables): Promise<string> {
  const query = store.db.selectFrom('setting').select('value').where('name', '=', 'database_id')
  return (await first(store, query))?.value ?? ''
}
