/**
 * Notices that a file has changed, by looking at it twice a second: notices of the system do not
 * come from network disks, nor from a folder that is mounted into a container.
 */
import { realpath, stat } from 'node:fs/promises'
import type { Cancel, Schedule } from '../../schema/clock.ts'

const LOOK_EVERY_MS = 500

/** Equal while a file is the same. */
export type ReadState = (file: string) => Promise<string>

export const fileState: ReadState = async (file) => {
  try {
    // A file that is mounted into a container may change its place alone.
    const [path, { mtimeMs, size, ino }] = await Promise.all([realpath(file), stat(file)])
    return `${path} ${mtimeMs} ${size} ${ino}`
  } catch {
    return 'not there'
  }
}

export class WatchedFiles {
  readonly #read: ReadState
  readonly #schedule: Schedule
  readonly #onChange: () => void
  /** States as they were loaded. */
  #loaded = new Map<string, string>()
  /** States that differed at the last look. A file that is being written differs at the next. */
  #changing = ''
  #cancel: Cancel | undefined
  #isStopped = false

  constructor(deps: {
    readonly readState: ReadState
    readonly schedule: Schedule
    readonly onChange: () => void
  }) {
    this.#read = deps.readState
    this.#schedule = deps.schedule
    this.#onChange = deps.onChange
  }

  /** To be called before files are loaded: what changes from then on is a change. */
  async mark(files: readonly string[]): Promise<void> {
    const known = [...new Set([...files, ...this.#loaded.keys()])]
    this.#loaded = await this.#statesOf(known)
    this.#changing = ''
  }

  /** To be called with the files that were loaded; looks at them from now on. */
  async watch(files: readonly string[]): Promise<void> {
    const fresh = await this.#statesOf(files.filter((file) => !this.#loaded.has(file)))
    const marked = [...this.#loaded].filter(([file]) => files.includes(file))
    this.#loaded = new Map([...marked, ...fresh])
    this.#cancel ??= this.#lookLater()
  }

  async add(files: readonly string[]): Promise<void> {
    for (const [file, state] of await this.#statesOf(files))
      if (!this.#loaded.has(file)) this.#loaded.set(file, state)
  }

  stop(): void {
    this.#isStopped = true
    this.#cancel?.()
  }

  #lookLater(): Cancel {
    return this.#schedule(() => void this.#look(), LOOK_EVERY_MS)
  }

  async #look(): Promise<void> {
    const loaded = this.#loaded
    const states = await this.#statesOf([...loaded.keys()])
    if (this.#isStopped) return
    this.#cancel = this.#lookLater()
    if (loaded !== this.#loaded) return
    const changed = [...states].filter(([file, state]) => loaded.get(file) !== state)
    const changing = JSON.stringify(changed)
    const isStable = changing === this.#changing
    this.#changing = changed.length === 0 ? '' : changing
    if (changed.length === 0 || !isStable) return
    for (const [file, state] of changed) loaded.set(file, state)
    this.#changing = ''
    this.#onChange()
  }

  async #statesOf(files: readonly string[]): Promise<Map<string, string>> {
    const states = await Promise.all(
      files.map(async (file) => [file, await this.#read(file)] as const),
    )
    return new Map(states)
  }
}
