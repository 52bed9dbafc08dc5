/** Calls that must not be lost, for either OCS: the journal until they are stored, then records, written in groups. */
import {
  type CallJournal,
  type EndTerms,
  JOURNAL_WAIT_MS,
  type JournalEntry,
  type OpenCall,
  type Tariff,
} from '../../schema/call-journal.ts'
import { type CallCost, type CallRecord, insertCallRecord } from '../../schema/call-record.ts'
import { compile, type Param } from '../../schema/compiled.ts'
import type { GroupCommit } from '../../schema/group-commit.ts'
import { JournalRows } from '../../schema/journal-rows.ts'
import type { Store } from '../../schema/open.ts'

/** New calls are refused while more writes than this wait for the database. */
const maxWaitingWrites = 10_000
/** The journal has what waits, so that it is written in few, large groups. */
const RECORD_WAIT_MS = 100

export class CallRecords {
  readonly #group: GroupCommit
  readonly #insert: ReturnType<typeof insertCallRecord>
  readonly #journal: CallJournal
  readonly #rows: JournalRows
  readonly #isStored: (callUuid: string) => boolean

  constructor(store: Store, group: GroupCommit, journal: CallJournal) {
    this.#group = group
    this.#insert = insertCallRecord(store)
    this.#journal = journal
    this.#rows = new JournalRows(store)
    const find = compile(store, (db, param: Param<{ callUuid: string }>) =>
      db.selectFrom('cdr').select('id').where('call_uuid', '=', param('callUuid')),
    )
    this.#isStored = (callUuid) => find.get({ callUuid }) !== undefined
  }

  get isOverloaded(): boolean {
    return this.#group.waiting > maxWaitingWrites
  }

  /** The calls that the last run left open. */
  leftOpen(): readonly JournalEntry[] {
    const left = this.#journal.left().filter((entry) => {
      const { callUuid } = entry.kind === 'cut' ? entry.call : entry.record
      const isStored = this.#isStored(callUuid)
      if (isStored) this.#journal.gone(callUuid)
      return !isStored
    })
    return [...this.#rows.entries(), ...left]
  }

  /**
   * Stores an answered call, and then what `event` writes. Once this resolves with true, no crash can lose
   * the call; false: it is not stored.
   */
  async answered(
    call: OpenCall,
    tariff: Tariff | null,
    nowMs: number,
    event?: () => void,
  ): Promise<boolean> {
    const isWritten = await this.#journal.answered(call, tariff, nowMs)
    if (!isWritten || event === undefined) return isWritten
    const isStored = await this.#group.written(event, JOURNAL_WAIT_MS)
    if (!isStored) this.#journal.gone(call.callUuid)
    return isStored
  }

  alive(callUuids: readonly string[], nowMs: number): void {
    this.#journal.alive(callUuids, nowMs)
  }

  /** Stores a record, inside the open transaction. False: the call has one. */
  insert(record: CallRecord, cost: CallCost): boolean {
    this.#rows.remove(record.callUuid)
    return this.#insert(record, cost)
  }

  /**
   * Queues `run`, the statements of an ended call; `committed` follows their commit at once. Rejects only when
   * the database can never store this record. With `terms` the journal has the end meanwhile, so that the
   * statements may wait.
   */
  queue<T, R>(
    record: CallRecord,
    terms: EndTerms | undefined,
    run: () => T,
    committed: (result: T) => R,
    refused?: () => void,
  ): Promise<R> {
    if (terms !== undefined) this.#journal.ended(record, terms)
    return new Promise((resolve, reject) => {
      this.#group.add({
        ...(terms !== undefined && { waitMs: RECORD_WAIT_MS }),
        content: record,
        run,
        done: (result) => {
          this.#journal.gone(record.callUuid)
          resolve(committed(result))
        },
        refused: (error) => {
          refused?.()
          reject(error instanceof Error ? error : new Error(String(error)))
        },
      })
    })
  }
}
