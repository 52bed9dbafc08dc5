/** Writes heartbeats to the journal: the newest one replaces those that wait. */
import type { CallJournal } from '../call-journal.ts'
import type { GroupCommit } from '../group-commit.ts'

export class SignOfLife {
  readonly #group: GroupCommit
  readonly #journal: CallJournal
  #newest: { readonly callUuids: readonly string[]; readonly now: number } | undefined

  constructor(group: GroupCommit, journal: CallJournal) {
    this.#group = group
    this.#journal = journal
  }

  /**
   * Records that these calls are alive. While the disk fails, one heartbeat waits, not one per five
   * seconds.
   */
  tell(callUuids: readonly string[], now: number): void {
    const isWaiting = this.#newest !== undefined
    this.#newest = { callUuids, now }
    if (isWaiting) return
    const forget = (): void => {
      this.#newest = undefined
    }
    this.#group.add({
      run: () => {
        if (this.#newest) this.#journal.alive(this.#newest.callUuids, this.#newest.now)
      },
      done: forget,
      refused: forget,
    })
  }
}
