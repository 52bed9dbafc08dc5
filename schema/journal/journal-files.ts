/**
 * Lines that survive a crash, in numbered files next to the database. A line is durable when
 * `append` calls back without an error. Each append is one synchronous write (`O_DSYNC`), off the
 * main thread.
 */
import { close, existsSync, readFileSync, renameSync, rm, rmSync } from 'node:fs'
import { checked } from './line-buffer.ts'
import type { JournalMark } from './journal-mark.ts'
import { createFile, SpareFile, writeAll } from './spare-file.ts'
import {
  type JournalFile,
  type EarlierLines,
  type DamagedLine,
  linesOf,
  headOf,
  numberOf,
  journalFiles,
} from './journal-file.ts'

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
  readonly #spare = new SpareFile()

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
    this.#isWriting = true
    const head = this.#size === 0 ? checked(this.#head) : noBytes
    const bytes = head.length === 0 ? lines : Buffer.concat([head, lines])
    const write = (file: number): void =>
      this.#makeRoom(file, this.#size + bytes.length + reservedBytes, (error) => {
        if (error === undefined) this.#write(file, bytes, done)
        else this.#written(error, done)
      })
    if (this.#file !== undefined) return write(this.#file)
    return void this.#create(write, (error) => this.#written(error, done))
  }

  async #create(write: (file: number) => void, failed: (error: unknown) => void): Promise<void> {
    let file: number
    try {
      file = await createFile(this.#path)
    } catch (error) {
      return failed(error)
    }
    this.#file = file
    return write(file)
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

  get #path(): string {
    return this.#pathOf(this.#number)
  }

  #pathOf(number: number): string {
    return `${this.#databasePath}${SUFFIX}${number}`
  }

  isGone(): boolean {
    return this.#file !== undefined && !existsSync(this.#path)
  }

  prepareNew(bytes: number): void {
    if (!this.#isClosed) this.#spare.make(this.#pathOf(this.#number + 1), bytes, zeros)
  }

  /** The next file is there with its room. */
  get isPrepared(): boolean {
    return this.#spare.isMade
  }

  startNew(): void {
    this.#close()
    this.#number += 1
    const spare = this.#spare.take(this.#path)
    if (spare === undefined) this.#passOver()
    this.#file = spare?.file
    this.#size = 0
    this.#room = spare?.room ?? 0
    this.#isTorn = false
  }

  /** Zeros may be on their way to a file that was given up and could not be removed. */
  #passOver(): void {
    while (existsSync(this.#path)) this.#number += 1
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
    await this.#spare.close()
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

/** The end of the name of a file whose process has stopped. */
const STOPPED = '.stopped'

const endOf = (file: string): readonly string[] =>
  file.endsWith(STOPPED) ? ['{"stopped":true}'] : []
