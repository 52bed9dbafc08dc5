/** Commits of other processes, such as a command, to an SQLite file. It does not tell what they have changed. */
import type { Cancel } from '../clock.ts'
import type { LocalStore } from '../open.ts'
import type { Changes, Follower } from './changes.ts'
import { Followers, type FollowersDeps } from './followers.ts'

const LOOK_MS = 250

export class FileChanges implements Changes {
  readonly #deps: FollowersDeps
  readonly #followers: Followers
  readonly #hasForeignWrites: () => boolean
  #cancel: Cancel = () => undefined
  #isFailing = false

  constructor(store: Pick<LocalStore, 'sqlite'>, deps: FollowersDeps) {
    this.#deps = deps
    this.#followers = new Followers(deps)
    this.#hasForeignWrites = foreignWrites(store)
  }

  follow(follower: Follower): Cancel {
    return this.#followers.follow(follower)
  }

  start(): Promise<void> {
    this.#lookLater()
    return Promise.resolve()
  }

  stop(): Promise<void> {
    this.#cancel()
    this.#followers.stop()
    return Promise.resolve()
  }

  #lookLater(): void {
    this.#cancel = this.#deps.schedule(() => {
      this.#lookLater()
      this.#look()
    }, LOOK_MS)
  }

  #look(): void {
    try {
      if (this.#hasForeignWrites()) this.#followers.changedAll()
      this.#isFailing = false
    } catch (error) {
      if (!this.#isFailing)
        this.#deps.log('error', 'what another process has changed cannot be read', { error })
      this.#isFailing = true
    }
  }
}

/** Returns a function that tells whether another connection has committed since it was last asked. */
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
