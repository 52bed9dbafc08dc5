/**
 * Changes of an SQLite file: SQLite reports that another process, such as a command, has committed,
 * but not which rows have changed.
 */
import type { Cancel, Schedule } from '../clock.ts'
import type { Log } from '../contracts/log.ts'
import type { LocalStore } from '../storage/store.ts'
import type { FollowersDeps } from './follower-state.ts'
import { Followers } from './followers.ts'
import type { Changes } from './changes.ts'

const FILE_POLL_MS = 250

export class FileChanges extends Followers implements Changes {
  readonly #log: Log
  readonly #schedule: Schedule
  readonly #hasForeignWrites: () => boolean
  #cancel: Cancel = () => undefined
  #isFailing = false

  constructor(store: Pick<LocalStore, 'sqlite'>, deps: FollowersDeps) {
    super(deps)
    this.#log = deps.log
    this.#schedule = deps.schedule
    this.#hasForeignWrites = foreignWrites(store)
  }

  start(): Promise<void> {
    this.#pollLater()
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

  #pollLater(): void {
    this.#cancel = this.#schedule(() => {
      this.#pollLater()
      this.#poll()
    }, FILE_POLL_MS)
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
  const read = (): unknown => sqlite.pragma('data_version', { simple: true })
  let seen = read()
  return () => {
    const version = read()
    const isNew = version !== seen
    seen = version
    return isNew
  }
}
