/**
 * Changes of an SQLite file: SQLite reports that another process, such as a command, has committed,
 * but not which rows have changed.
 */
import type { Cancel, Every } from '../clock.ts'
import type { Log } from '../contracts/log.ts'
import type { LocalStore } from '../storage/store.ts'
import type { FollowersDeps } from './follower-state.ts'
import { Followers } from './followers.ts'
import type { Changes } from './changes.ts'

/** The first commit after a rest is in force within a second. */
const FILE_POLL_MS = 500

export interface FileChangesDeps extends FollowersDeps {
  readonly every: Every
}

export class FileChanges extends Followers implements Changes {
  readonly #log: Log
  readonly #every: Every
  readonly #hasForeignWrites: () => boolean
  #cancel: Cancel = () => undefined
  #isFailing = false

  constructor(store: Pick<LocalStore, 'sqlite'>, deps: FileChangesDeps) {
    super(deps)
    this.#log = deps.log
    this.#every = deps.every
    this.#hasForeignWrites = foreignWrites(store)
  }

  start(): Promise<void> {
    this.#cancel = this.#every(FILE_POLL_MS, () => this.#poll())
    return Promise.resolve()
  }

  override readForeign(): void {
    this.#poll()
  }

  override passOver(): void {
    this.#hasForeignWrites()
  }

  override stop(): Promise<void> {
    this.#cancel()
    return super.stop()
  }

  #poll(): void {
    try {
      if (this.#hasForeignWrites()) this.changedAll()
      this.#isFailing = false
    } catch (error) {
      if (!this.#isFailing)
        this.#log('error', 'changes of other processes cannot be read', { error })
      this.#isFailing = true
    }
  }
}

/** Returns a function that says whether another connection has committed since the last call. */
function foreignWrites({ sqlite }: Pick<LocalStore, 'sqlite'>): () => boolean {
  // Prepared once: it is asked again and again while nothing happens.
  const version = sqlite.prepare('PRAGMA data_version').pluck()
  const read = (): unknown => version.get()
  let seen = read()
  return () => {
    const latest = read()
    const isNew = latest !== seen
    seen = latest
    return isNew
  }
}
