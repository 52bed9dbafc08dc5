/** Heartbeats on their way into the journal: the newest stands for those that wait with it. */
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

  /** These calls live. While the disk takes nothing, one beat waits, not one for every five seconds. */
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
