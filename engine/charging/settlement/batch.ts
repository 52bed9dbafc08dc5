/**
 * Settles a batch of ended calls inside the transaction of its queue: records, debits, reports and
 * events. Safe to repeat, also when the answer to a COMMIT is lost: a record has a unique call
 * uuid, a debit a unique reference, and a call that has a record is not charged again. It changes
 * no memory.
 */
import type { CallRecord } from '../../../schema/contracts/call-record.ts'
import { toColumns } from '../../../schema/records/stored-record.ts'
import type { ReportAnswer } from '../../../schema/contracts/charging.ts'
import type { EventSink, OutgoingEvent } from '../../../schema/contracts/engine.ts'
import type { Store } from '../../../schema/storage/store.ts'
import type { Row } from '../../../schema/sql/statements.ts'
import type { LockableRows } from '../../../schema/storage/write-queue.ts'
import { type AccountingEvents, isDepletion } from '../accounting-events.ts'
import type { Charge } from './charge.ts'
import { startOfDay } from '../customers/customer.ts'
import type { SpentShare } from '../../shares/node-shares.ts'
import type { ShareOwner } from '../../shares/share-rows.ts'
import type { DuplicatePosting, Posting } from '../ledger/posting.ts'
import {
  type AcceptedReport,
  answerAgain,
  answerRecorded,
  firstAnswer,
  reportRow,
} from './node-reports.ts'
import {
  type ReportRow,
  type DebitRow,
  type WalletRow,
  settlementStatements,
} from './statements.ts'

/** An ended call, and what comes of it. */
export interface EndedCall {
  readonly record: CallRecord
  readonly charge: Charge
  /** Present: a node has reported it, and gets the answer of the first report again. */
  readonly report?: NodeReport
  /** Present: the body of its report to an external OCS, which waits in the outbox. */
  readonly outgoing?: string
}

export interface NodeReport {
  /** What the node sent; stored when it conflicts. */
  readonly body: string
  /** Milliseconds UTC. */
  readonly at: number
}

/** What the commit has made of it. */
export interface StoredCall {
  /** Absent: nothing was debited. */
  readonly posting?: Posting | undefined
  /** Of a node's report. */
  readonly answer?: ReportAnswer | undefined
}

export interface BatchDeps {
  readonly store: Store
  /** Milliseconds by the steady clock. */
  readonly now: () => number
  /** Milliseconds UTC: for stamps. */
  readonly wallNow: () => number
  readonly events: AccountingEvents
  /** Absent: no event is written. */
  readonly sink?: EventSink | undefined
  /**
   * Calls are paid from what this process holds of wallets. Absent: no other process draws from
   * them.
   */
  readonly owner?: ShareOwner | undefined
  /**
   * What a commit has taken of the shares of this process, and the wallets that have paid more than
   * was held for it.
   */
  readonly onSettled?: (spent: readonly SpentShare[], beyond: readonly string[]) => void
}

/** A call of the batch, and what becomes of it. */
interface BatchCall {
  readonly call: EndedCall
  readonly callUuid: string
  posting?: Posting | undefined
  answer?: ReportAnswer | undefined
}

/** A wallet that is locked, as the calls of the batch change it. */
interface Wallet {
  readonly id: number
  balanceMicros: bigint
  isDepleted: boolean
  costMicros: number
  /** Of the cost, what was held for it. */
  heldMicros: number
}

export class BatchWriter {
  readonly #deps: BatchDeps
  readonly #statements: ReturnType<typeof settlementStatements>

  constructor(deps: BatchDeps) {
    this.#deps = deps
    this.#statements = settlementStatements(deps.store)
  }

  /** The wallets that calls change. Undefined: no other process locks them for long. */
  rowsOf<W>(
    callOf: (write: W) => EndedCall,
    onChange: LockableRows<W>['onChange'],
  ): LockableRows<W> | undefined {
    if (!this.#deps.store.statements.isShared) return undefined
    return {
      of: (write) => walletOf(callOf(write)),
      locked: async (ids) => {
        const rows = await this.#statements.lockedWallets(ids)
        return new Set(rows.map(({ id }) => id))
      },
      onChange,
    }
  }

  async stored(callUuids: readonly string[]): Promise<ReadonlySet<string>> {
    const rows = await this.#statements.records(callUuids.map(toUuidRow))
    return new Set(rows.map((row) => row.call_uuid))
  }

  /** Each call uuid is among `calls` once. Resolves with what is to be called after the commit. */
  async write(calls: readonly EndedCall[]): Promise<() => readonly StoredCall[]> {
    const all: readonly BatchCall[] = calls.map((call) => ({
      call,
      callUuid: call.record.callUuid,
    }))
    const events: OutgoingEvent[] = []
    await this.#answerAccepted(all)
    const charged = await this.#insertRecords(all.filter(({ answer }) => answer === undefined))
    for (const { call } of charged) {
      const event = this.#deps.events.ended(call.record, call.charge)
      if (event !== undefined) events.push(event)
    }
    await this.#statements.insertOutgoing(this.#outgoingOf(charged))
    const wallets = await this.#lockWallets(calls)
    const late = await this.#reportedAgain(
      all.filter((one) => one.call.report && !charged.includes(one)),
    )
    const spent = await this.#charge([...charged, ...late], wallets, events)
    await this.#insertReports(all, wallets)
    if (events.length > 0) await this.#deps.sink?.writeAll(events)
    const beyond = [...wallets.values()].filter((wallet) => wallet.costMicros > wallet.heldMicros)
    return () => {
      this.#deps.onSettled?.(
        spent,
        beyond.map(({ id }) => String(id)),
      )
      return all
    }
  }

  /** Answers reports that repeat an accepted one. */
  async #answerAccepted(calls: readonly BatchCall[]): Promise<void> {
    const reported = calls.filter(({ call }) => call.report !== undefined)
    const rows = await this.#statements.acceptedReports(reported.map(uuidRowOf))
    const acceptedOf = new Map(rows.map((row) => [row.call_uuid, row]))
    for (const one of reported) {
      const row = acceptedOf.get(one.callUuid)
      if (row !== undefined) one.answer = answerAgain(one.call.record, toAccepted(row))
    }
  }

  /**
   * Returns the calls that had no record: a debit of one cannot come from another process from then
   * on. In the order of their uuids: two processes that store the same calls do not wait for each
   * other.
   */
  async #insertRecords(calls: readonly BatchCall[]): Promise<readonly BatchCall[]> {
    const rows = calls.map(({ call: { record, charge } }) => {
      const currency = charge.tariff?.currency ?? record.currency
      return toColumns(record, { costMicros: charge.costMicros, currency })
    })
    const sorted = rows.toSorted((a, b) => (a.call_uuid < b.call_uuid ? -1 : 1))
    const inserted = await this.#statements.insertRecords(sorted)
    const isNew = new Set(inserted.map((row) => row.call_uuid))
    return calls.filter(({ callUuid }) => isNew.has(callUuid))
  }

  #outgoingOf(calls: readonly BatchCall[]): readonly Row[] {
    const at = this.#deps.now()
    return calls.flatMap(({ callUuid, call: { outgoing: body } }) =>
      body === undefined ? [] : [{ call_uuid: callUuid, body, attempts: 0, next_attempt_at: at }],
    )
  }

  /**
   * All that a call may have been paid from: what a lost answer has changed is seen again. By their
   * ids, in this order.
   */
  async #lockWallets(calls: readonly EndedCall[]): Promise<ReadonlyMap<number, Wallet>> {
    const ids = new Set<number>()
    for (const call of calls) {
      const walletId = walletOf(call)
      if (walletId !== undefined) ids.add(walletId)
    }
    const rows = await this.#statements.lockWallets([...ids].map((id) => ({ id })))
    return new Map(rows.map((row) => [row.id, toWallet(row)]))
  }

  /**
   * Answers reports of calls that have a record. Returns those that are not charged yet. After the
   * lock: what another process has charged is seen.
   */
  async #reportedAgain(again: readonly BatchCall[]): Promise<readonly BatchCall[]> {
    const reported = again.filter(({ answer }) => answer === undefined)
    if (reported.length === 0) return []
    await this.#answerAccepted(reported)
    const debits = await this.#debitsOf(reported)
    const records = await this.#statements.records(reported.map(uuidRowOf))
    const recordOf = new Map(records.map((row) => [row.call_uuid, row]))
    for (const one of reported) {
      const stored = recordOf.get(one.callUuid)
      if (stored === undefined) continue
      const debit = debits.get(one.callUuid)
      one.answer ??= answerRecorded(one.call.record, stored, debit)
    }
    return reported.filter(({ answer }) => answer === undefined)
  }

  async #debitsOf(calls: readonly BatchCall[]): Promise<ReadonlyMap<string, DuplicatePosting>> {
    const rows = await this.#statements.debits(calls.map(({ callUuid }) => ({ ref: callUuid })))
    return new Map(rows.map((row) => [row.ref, toDuplicate(row)]))
  }

  async #charge(
    calls: readonly BatchCall[],
    wallets: ReadonlyMap<number, Wallet>,
    events: OutgoingEvent[],
  ): Promise<readonly SpentShare[]> {
    if (wallets.size === 0) return []
    const at = this.#deps.wallNow()
    // A call without a record may have a debit: retention deletes records.
    const debits = await this.#debitsOf(calls.filter(({ call }) => call.charge.costMicros > 0))
    for (const one of calls) {
      const wallet = wallets.get(one.call.charge.payer?.terms.walletId ?? 0)
      if (wallet === undefined) continue
      one.posting = debits.get(one.callUuid) ?? this.#debit(one, wallet, events)
    }
    await this.#insertEntries(calls, at)
    const changed = [...wallets.values()]
    const spent = await this.#takeFromShares(changed)
    await this.#statements.changeWallets(changed.map((wallet) => this.#rowOf(wallet, at)))
    return spent
  }

  /** Changes the wallet of the batch, not the stored one. */
  #debit(
    { call: { charge } }: BatchCall,
    wallet: Wallet,
    events: OutgoingEvent[],
  ): Posting | undefined {
    const { payer, costMicros, isOutOfFunds } = charge
    if (payer === undefined) return undefined
    const { terms } = payer
    const beforeMicros = wallet.balanceMicros
    wallet.balanceMicros -= BigInt(costMicros)
    wallet.costMicros += costMicros
    const { balanceMicros } = wallet
    const low = this.#deps.events.lowBalance(terms, beforeMicros, balanceMicros)
    if (low !== undefined) events.push(low)
    if (!wallet.isDepleted && (isOutOfFunds || isDepletion(terms, beforeMicros, balanceMicros))) {
      wallet.isDepleted = true
      const depleted = this.#deps.events.depleted(terms, balanceMicros)
      if (depleted !== undefined) events.push(depleted)
    }
    return costMicros === 0 ? undefined : { kind: 'posted', balanceMicros, entryId: 0 }
  }

  async #insertEntries(calls: readonly BatchCall[], at: number): Promise<void> {
    const rows = calls.flatMap(({ call: { charge }, callUuid, posting }) =>
      posting?.kind === 'posted'
        ? [
            {
              wallet_id: charge.payer?.terms.walletId ?? null,
              kind: 'debit',
              amount_micros: -charge.costMicros,
              balance_after_micros: String(posting.balanceMicros),
              ref: callUuid,
              actor: 'ocs',
              note: null,
              created_at: at,
            },
          ]
        : [],
    )
    const entered = await this.#statements.insertEntries(rows)
    const idOf = new Map(entered.map(({ ref, id }) => [ref, id]))
    for (const one of calls) {
      const { posting, callUuid } = one
      if (posting?.kind === 'posted') one.posting = { ...posting, entryId: idOf.get(callUuid) ?? 0 }
    }
  }

  /**
   * What calls have cost is taken from the share that it was promised from; what that does not
   * have, from the wallet alone. The next process of this node may have taken the share over.
   * Returns what was spent of each share.
   */
  async #takeFromShares(wallets: readonly Wallet[]): Promise<readonly SpentShare[]> {
    const { owner } = this.#deps
    if (owner === undefined) return []
    const { shares, changeShares } = this.#statements
    const held = await shares(wallets.map(({ id }) => ({ resource: String(id), node: owner.name })))
    const spent = wallets.flatMap((wallet) => {
      const resource = String(wallet.id)
      const ofWallet = held.filter((share) => share.resource === resource)
      const share = ofWallet.find(({ process }) => process === owner.process) ?? ofWallet[0]
      if (share === undefined) return []
      wallet.heldMicros = Math.min(share.amount, wallet.costMicros)
      const left = { amount: share.amount - wallet.heldMicros, version: share.version + 1 }
      return [{ ...share, ...left, spent: wallet.heldMicros }]
    })
    await changeShares(
      spent.map(({ resource, process, amount, version }) => ({
        resource,
        node: owner.name,
        process,
        amount,
        version,
      })),
    )
    return spent
  }

  #rowOf({ id, balanceMicros, isDepleted, costMicros }: Wallet, at: number): Row {
    return {
      id,
      balance_micros: String(balanceMicros),
      is_depleted: isDepleted ? 1 : 0,
      spent_micros: costMicros,
      spent_on: startOfDay(this.#deps.now()),
      updated_at: at,
    }
  }

  async #insertReports(
    calls: readonly BatchCall[],
    wallets: ReadonlyMap<number, Wallet>,
  ): Promise<void> {
    const rows: Row[] = []
    for (const one of calls) {
      const { record, report } = one.call
      if (report === undefined) continue
      const { answer: earlier } = one
      const answer = earlier ?? newAnswer(one, wallets)
      one.answer = answer
      if (earlier !== undefined && earlier.kind !== 'conflict') continue
      const row = reportRow(record, answer, report)
      const balance = row.balance_after_micros?.toString() ?? null
      rows.push({ ...row, balance_after_micros: balance })
    }
    await this.#statements.insertReports(rows)
  }
}

/** The wallet that the call may have been paid from; undefined: none. */
function walletOf({ charge, report }: EndedCall): number | undefined {
  const isPaid = charge.costMicros > 0 || charge.isOutOfFunds || report !== undefined
  return (isPaid ? charge.payer?.terms.walletId : undefined) ?? undefined
}

const toUuidRow = (callUuid: string) => ({ call_uuid: callUuid })
const uuidRowOf = ({ callUuid }: BatchCall) => toUuidRow(callUuid)

function newAnswer(
  { call: { record, charge }, posting }: BatchCall,
  wallets: ReadonlyMap<number, Wallet>,
): ReportAnswer {
  if (posting?.kind === 'duplicate') {
    const answer = answerRecorded(record, record, posting)
    if (answer !== undefined) return answer
  }
  const wallet = wallets.get(charge.payer?.terms.walletId ?? 0)
  const balanceMicros = posting?.kind === 'posted' ? posting.balanceMicros : wallet?.balanceMicros
  return firstAnswer(charge, balanceMicros ?? null)
}

const toDuplicate = ({
  wallet_id: walletId,
  amount_micros,
  balance,
}: DebitRow): DuplicatePosting => ({
  kind: 'duplicate',
  walletId,
  amountMicros: amount_micros,
  balanceMicros: BigInt(balance),
})

const toAccepted = (row: ReportRow): AcceptedReport => ({
  billsec: row.billsec,
  costMicros: row.cost_micros,
  balanceAfterMicros: row.balance_after === null ? null : BigInt(row.balance_after),
  currency: row.currency,
})

const toWallet = ({ id, balance, is_depleted: isDepleted }: WalletRow): Wallet => ({
  id,
  balanceMicros: BigInt(balance),
  isDepleted: isDepleted === 1,
  costMicros: 0,
  heldMicros: 0,
})
