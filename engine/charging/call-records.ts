/** Calls in the database, for either OCS: a journal of live calls and records of ended ones, written in groups. */
import {
  callJournal,
  JOURNAL_WAIT_MS,
  type JournalEntry,
  type OpenCall,
  type Tariff,
} from '../../schema/call-journal.ts'
import { type CallCost, type CallRecord, insertCallRecord } from '../../schema/call-record.ts'
import type { GroupCommit } from '../../schema/group-commit.ts'
import type { Store } from '../../schema/open.ts'
import { SignOfLife } from '../../schema/storage/sign-of-life.ts'

/** New calls are refused while more writes than this wait for the database. */
const maxWaitingWrites = 10_000

export class CallRecords {
  readonly #group: GroupCommit
  readonly #insert: ReturnType<typeof insertCallRecord>
  readonly #journal: ReturnType<typeof callJournal>
  readonly #signOfLife: SignOfLife

  constructor(store: Store, group: GroupCommit) {
    this.#group = group
    this.#insert = insertCallRecord(store)
    this.#journal = callJournal(store)
    this.#signOfLife = new SignOfLife(group, this.#journal)
  }

  get isOverloaded(): boolean {
    return this.#group.waiting > maxWaitingWrites
  }

  /** The calls that the last run left open. */
  leftOpen(): readonly JournalEntry[] {
    return this.#journal.entries()
  }

  /**
   * Stores an answered call; `more` runs in the same transaction. Once this resolves with true, no crash can
   * lose the call; false: it is not stored.
   */
  answered(
    call: OpenCall,
    tariff: Tariff | null,
    nowMs: number,
    more?: () => void,
  ): Promise<boolean> {
    return this.#group.written(() => {
      this.#journal.open(call, tariff, nowMs)
      more?.()
    }, JOURNAL_WAIT_MS)
  }

  alive(callUuids: readonly string[], nowMs: number): void {
    this.#signOfLife.tell(callUuids, nowMs)
  }

  /** Stores a record and closes its journal entry, inside the open transaction. False: the call has a record. */
  insert(record: CallRecord, cost: CallCost): boolean {
    this.#journal.close(record.callUuid)
    return this.#insert(record, cost)
  }

  /**
   * Queues `run`, the statements of an ended call; `committed` follows their commit at once. Rejects only when
   * the database can never store this record.
   */
  queue<T, R>(
    record: CallRecord,
    run: () => T,
    committed: (result: T) => R,
    refused?: () => void,
  ): Promise<R> {
    return new Promise((resolve, reject) => {
      this.#group.add({
        content: record,
        run,
        done: (result) => resolve(committed(result)),
        refused: (error) => {
          refused?.()
          reject(error instanceof Error ? error : new Error(String(error)))
        },
      })
    })
  }
}
