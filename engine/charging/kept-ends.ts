/**
 * Ends of calls that the journal keeps although the database has them: another server may take over
 * without the last commits. The calls that it lacks are stored again.
 */
import type { JournalEntry } from '../../schema/journal/journal-entries.ts'
import type { Cancel, Schedule } from '../../schema/clock.ts'
import type { CallJournal } from '../../schema/journal/call-journal.ts'
import { OneAtATime } from '../../schema/one-at-a-time.ts'

/** How often stored calls are forgotten. */
const FORGET_MS = 1_000
/** A search for lost calls that failed is repeated after this time. */
const SEARCH_AGAIN_MS = 1_000
/** So many lost calls are stored before others are. */
const AT_ONCE = 1_000

/** How long the journal has stored calls, for a server that takes over without them. */
export interface EndRetention {
  readonly keepMs: number
  /** Milliseconds by the steady clock. */
  readonly now: () => number
  readonly schedule: Schedule
  /** Steady time of the server's last answer. */
  readonly lastAnswerAt: () => number
  /** Calls `check` when another server may answer than before. */
  readonly onGap: (check: () => void) => Cancel
}

/** Handles calls that the server does not have any more. */
export interface LostCalls {
  /** Called before any of them is stored again. Empty: none is lost. */
  readonly found: (lost: readonly JournalEntry[]) => void
  /** Never rejects. */
  readonly store: (entry: JournalEntry) => Promise<void>
}

interface KeptEndsDeps {
  readonly journal: CallJournal
  /** Absent: the journal forgets a call once it is stored. */
  readonly retention: EndRetention | undefined
  /** Returns which of these calls have a record. */
  readonly recorded: (callUuids: readonly string[]) => Promise<ReadonlySet<string>>
}

export class KeptEnds {
  readonly #journal: CallJournal
  readonly #recorded: KeptEndsDeps['recorded']
  /** Undefined: none is kept. */
  readonly #retention: EndRetention | undefined
  /** Steady time at which each was stored; oldest first. */
  readonly #storedAt = new Map<string, number>()
  readonly #search = new OneAtATime(() => this.#findLost())
  #lost: LostCalls | undefined
  /** The server that answers now may lack calls. */
  #isUnsure = false
  #cancelForget: Cancel | undefined
  #cancelGap: Cancel = () => undefined
  #cancelSearch: Cancel = () => undefined

  constructor({ journal, retention, recorded }: KeptEndsDeps) {
    this.#journal = journal
    this.#recorded = recorded
    this.#retention = retention !== undefined && retention.keepMs > 0 ? retention : undefined
  }

  get areKept(): boolean {
    return this.#retention !== undefined
  }

  /** The database has the record of this call. */
  stored(callUuid: string): void {
    if (this.#retention === undefined || !this.#journal.keepEnd(callUuid))
      return this.#journal.gone(callUuid)
    this.#storedAt.delete(callUuid)
    this.#storedAt.set(callUuid, this.#retention.now())
    this.#forgetLater(this.#retention)
  }

  /** From now on calls that a server has lost are stored again. */
  watch(lost: LostCalls): void {
    this.#lost = lost
    this.#cancelGap =
      this.#retention?.onGap(() => {
        this.#isUnsure = true
        void this.#search.request()
      }) ?? this.#cancelGap
  }

  /** Forgets none from then on: the next start does. */
  stop(): void {
    this.#cancelGap()
    this.#cancelSearch()
    this.#cancelForget?.()
  }

  /** Never rejects. */
  async #findLost(): Promise<void> {
    const { schedule } = this.#retention ?? {}
    this.#cancelSearch()
    try {
      const uuids = [...this.#storedAt.keys()]
      const recorded = await this.#recorded(uuids)
      const missing = uuids.filter(
        (callUuid) => !recorded.has(callUuid) && this.#storedAt.has(callUuid),
      )
      const lost = missing.flatMap((callUuid) => this.#journal.entryOf(callUuid) ?? [])
      this.#lost?.found(lost)
      for (let at = 0; at < lost.length; at += AT_ONCE)
        await Promise.all(lost.slice(at, at + AT_ONCE).map((entry) => this.#storeAgain(entry)))
      this.#isUnsure = false
    } catch {
      this.#cancelSearch =
        schedule?.(() => void this.#search.request(), SEARCH_AGAIN_MS) ?? this.#cancelSearch
    }
  }

  async #storeAgain(entry: JournalEntry): Promise<void> {
    this.#storedAt.delete(entry.callUuid)
    await this.#lost?.store(entry)
  }

  #forgetLater(retention: EndRetention): void {
    this.#cancelForget ??= retention.schedule(() => {
      this.#cancelForget = undefined
      this.#forgetOld(retention)
      if (this.#storedAt.size > 0) this.#forgetLater(retention)
    }, FORGET_MS)
  }

  /** Counts from the server's last answer: while it does not answer, none is forgotten. */
  #forgetOld({ keepMs, lastAnswerAt }: EndRetention): void {
    if (this.#isUnsure) return
    const until = lastAnswerAt() - keepMs
    for (const [callUuid, storedAt] of this.#storedAt) {
      if (storedAt > until) return
      this.#storedAt.delete(callUuid)
      this.#journal.gone(callUuid)
    }
  }
}
