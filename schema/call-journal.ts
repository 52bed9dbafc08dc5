/** Answered calls that have not ended, kept so that a crash loses none of them. */
import { billedSeconds, type CallRecord } from './call-record.ts'
import { compile, type Param } from './compiled.ts'
import type { Store } from './open.ts'

/** Everything of a call's record that is known once it is answered. */
export type OpenCall = Omit<
  CallRecord,
  | 'answeredAt'
  | 'endedAt'
  | 'billsec'
  | 'disposition'
  | 'sipCode'
  | 'hangupCause'
  | 'hangupBy'
  | 'isRecovered'
> & { readonly answeredAt: number }

/** A price as it was when a call started: later changes of the rate do not touch the call. */
export interface Tariff {
  readonly prefix: string
  readonly currency: string
  readonly connectFeeMicros: number
  readonly firstIncrementSeconds: number
  readonly firstRatePerMinuteMicros: number
  readonly incrementSeconds: number
  readonly ratePerMinuteMicros: number
  /** A price is rounded up to this many decimals, 0 to 6. */
  readonly decimals: number
}

export interface JournalEntry {
  readonly call: OpenCall
  readonly tariff: Tariff | null
  /** From the answer to the last sign of life, by the steady clock of the process that wrote both. */
  readonly talkedMs: number
}

/** A call that is answered waits so long for its entry; then it is refused. */
export const JOURNAL_WAIT_MS = 2_000

export interface CallJournal {
  /** Safe to repeat. `answeredMs` by the steady clock, as for signs of life (schema/clock.ts). */
  open(call: OpenCall, tariff: Tariff | null, answeredMs: number): void
  alive(callUuids: readonly string[], nowMs: number): void
  close(callUuid: string): void
  /** What the last run left open, oldest first. */
  entries(): JournalEntry[]
}

/** Statements only: the caller opens the transaction. */
export function callJournal(store: Store): CallJournal {
  const open = compile(
    store,
    (db, param: Param<{ uuid: string; call: string; tariff: string | null; at: number }>) =>
      db
        .insertInto('call_journal')
        .values({
          call_uuid: param('uuid'),
          call: param('call'),
          tariff: param('tariff'),
          answered_at: param('at'),
          alive_at: param('at'),
        })
        .onConflict((conflict) => conflict.column('call_uuid').doNothing()),
  )
  const alive = compile(store, (db, param: Param<{ uuid: string; now: number }>) =>
    db
      .updateTable('call_journal')
      .set({ alive_at: param('now') })
      .where('call_uuid', '=', param('uuid'))
      .where('alive_at', '<', param('now')),
  )
  const close = compile(store, (db, param: Param<{ uuid: string }>) =>
    db.deleteFrom('call_journal').where('call_uuid', '=', param('uuid')),
  )
  const entries = compile(store, (db) =>
    db
      .selectFrom('call_journal')
      .select(['call', 'tariff', 'answered_at', 'alive_at'])
      .orderBy('answered_at')
      .orderBy('call_uuid'),
  )
  return {
    open: (call, tariff, at) => {
      open.run({
        uuid: call.callUuid,
        call: JSON.stringify(call),
        tariff: tariff === null ? null : JSON.stringify(tariff),
        at,
      })
    },
    alive: (callUuids, now) => {
      for (const uuid of callUuids) alive.run({ uuid, now })
    },
    close: (uuid) => {
      close.run({ uuid })
    },
    // Only `open` above writes these texts.
    entries: () =>
      entries.all({}).map((row) => ({
        call: JSON.parse(row.call) as OpenCall,
        tariff: row.tariff === null ? null : (JSON.parse(row.tariff) as Tariff),
        talkedMs: Math.max(0, row.alive_at - row.answered_at),
      })),
  }
}

/** The record of a call that a crash cut off: it ended at its last sign of life, and lasted a second at least. */
export function recoveredRecord({ call, talkedMs }: JournalEntry): CallRecord {
  return {
    ...call,
    endedAt: call.answeredAt + talkedMs,
    billsec: billedSeconds(talkedMs),
    disposition: 'ANSWERED',
    sipCode: 200,
    hangupCause: 'PROCESS_RESTART',
    hangupBy: 'system',
    isRecovered: true,
  }
}
