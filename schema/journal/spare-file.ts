/**
 * The next file of a journal, made before it is needed, off the main thread: its name and its room
 * are on the disk when the first line comes, and no caller waits for them.
 */
import { close, constants, existsSync, open, rmSync, write } from 'node:fs'
import { open as openFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { promisify } from 'node:util'

/** Each write of a line is on the disk when it returns. */
const LINE_FLAGS = constants.O_CREAT | constants.O_RDWR | constants.O_DSYNC

/** An open file with zeros up to there. */
export interface OpenedFile {
  readonly file: number
  readonly room: number
}

const opening = promisify(open)
const closing = promisify(close)

/** Opens a file that lines are written to; its name is on the disk. */
export async function createFile(path: string, flags = LINE_FLAGS): Promise<number> {
  const file = await opening(path, flags, 0o600)
  try {
    const folder = await openFile(dirname(path), 'r')
    try {
      await folder.sync()
    } finally {
      await folder.close()
    }
    return file
  } catch (error) {
    await closing(file)
    throw error
  }
}

/** A disk may take a part at a time. */
export function writeAll(
  file: number,
  bytes: Buffer,
  position: number,
  done: (error: Error | undefined) => void,
): void {
  write(file, bytes, 0, bytes.length, position, (error, written) => {
    if (error !== null || written === 0) return done(error ?? new Error('no byte was written'))
    if (written === bytes.length) return done(undefined)
    return writeAll(file, bytes.subarray(written), position + written, done)
  })
}

const writing = (file: number, bytes: Buffer, position: number): Promise<void> =>
  new Promise((resolve, reject) =>
    writeAll(file, bytes, position, (error) => {
      if (error === undefined) resolve()
      else reject(error)
    }),
  )

/** One that stays has no lines; whoever no longer wants it must not fail with it. */
function remove(path: string): void {
  try {
    rmSync(path, { force: true })
  } catch {
    // Its folder may be out of reach: the next line that is written says so.
  }
}

export class SpareFile {
  #path: string | undefined
  #made: OpenedFile | undefined
  #making: Promise<void> = Promise.resolve()
  /** The disk has not taken it. */
  #refused: string | undefined

  /**
   * Makes one that has room for so many bytes, unless there is one. A full disk has none, and is
   * not asked again for the same one: what it has left is for others.
   */
  make(path: string, bytes: number, piece: Buffer): void {
    if (this.#path !== undefined || path === this.#refused) return
    this.#path = path
    this.#making = this.#make(path, bytes, piece).catch(() => this.#failed(path))
  }

  /** The path may be that of the file in use as soon as it is not wanted any more. */
  async #make(path: string, bytes: number, piece: Buffer): Promise<void> {
    const file = await createFile(path, LINE_FLAGS | constants.O_EXCL)
    let room = 0
    try {
      for (; room < bytes && this.#path === path; room += piece.length)
        await writing(file, piece, room)
    } catch (error) {
      await closing(file)
      if (this.#path === path) remove(path)
      throw error
    }
    if (this.#path === path) this.#made = { file, room }
    else await closing(file)
  }

  /** It is there with its room. */
  get isMade(): boolean {
    return this.#made !== undefined
  }

  #failed(path: string): void {
    if (this.#path !== path) return
    this.#path = undefined
    this.#refused = path
  }

  /** Undefined: it is not there any more, or not whole; then it will not be. */
  take(path: string): OpenedFile | undefined {
    const made = this.#path === path && existsSync(path) ? this.#made : undefined
    if (made === undefined) this.#drop()
    this.#path = undefined
    this.#made = undefined
    return made
  }

  /** Removes it, also one that is being made. */
  async close(): Promise<void> {
    const path = this.#path
    this.#drop()
    await this.#making
    if (path !== undefined) remove(path)
  }

  #drop(): void {
    if (this.#path !== undefined) remove(this.#path)
    if (this.#made !== undefined) close(this.#made.file)
    this.#path = undefined
    this.#made = undefined
  }
}
