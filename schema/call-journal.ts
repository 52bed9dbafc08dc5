/** The journal of answered calls that have not ended, so that a crash loses none of them. */
import { billedSeconds, type CallRecord } from './call-record.ts'
import { compile, type Param } from './compiled.ts'
import type { Store } from './open.ts'

/** The fields of a call record that are known at the answer. */
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

/** The price at the start of a call: later changes of the rate do not affect the call. */
export interface Tariff {
  readonly prefix: string
  readonly currency: string
  readonly connectFeeMicros: number
  readonly firstIncrementSeconds: number
  readonly firstRatePerMinuteMicros: number
  readonly incrementSeconds: number
  readonly ratePerMinuteMicros: number
  /** Decimals to which a price is rounded up, 0 to 6. */
  readonly decimals: number
}

export interface JournalEntry {
  readonly call: OpenCall
  readonly tariff: Tariff | null
  /** From the answer to the last heartbeat, in steady time of the process that wrote both. */
  readonly talkedMs: number
}

/** How long an answered call waits for its entry; then it is rejected. */
export const JOURNAL_WAIT_MS = 2_000

export interface CallJournal {
  /** Safe to repeat. `answeredMs` is steady time, like the heartbeats (schema/clock.ts). */
  open(call: OpenCall, tariff: Tariff | null, answeredMs: number): void
  alive(callUuids: readonly string[], nowMs: number): void
  close(callUuid: string): void
  /** Calls that the last run left open, oldest first. */
  entries(): JournalEntry[]
}

/** Only statements: the caller opens the transaction. */
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

/**
 * Builds the record of a call that a crash interrupted: it ended at its last heartbeat and lasted at least
 * a second.
 */
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
