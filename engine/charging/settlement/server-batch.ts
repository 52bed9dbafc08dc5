/** The statements that settle many calls at once in PostgreSQL, inside the transaction of the caller. */
import { toColumns } from '../../../schema/call-record.ts'
import type { ReportAnswer } from '../../../schema/contracts/ocs.ts'
import type { OutgoingEvent } from '../../../schema/contracts/webhook-events.ts'
import { jsonRows } from '../../../schema/sql/json-rows.ts'
import type { EndedCall, StoredCall } from '../call-store.ts'
import { startOfDay } from '../customers/customer.ts'
import type { StoredLease } from '../leases/lease-rows.ts'
import type { DuplicatePosting, Posting } from '../ledger/posting.ts'
import { isDepletion } from '../accounting-events.ts'
import { answerAgain, answerRecorded, firstAnswer, reportRow } from './node-reports.ts'
import type { ServerCallsDeps } from './store-deps.ts'
import { type Accepted, type Recorded, serverStatements } from './server-statements.ts'

export interface Settled {
  /** In the order of the calls. */
  readonly stored: readonly StoredCall[]
  readonly leases: readonly StoredLease[]
  /** Wallets that have paid more than was leased for it. */
  readonly beyond: readonly number[]
}

/** A wallet that is locked, as the calls of the batch change it. */
interface Wallet {
  readonly id: number
  balanceMicros: bigint
  isDepleted: boolean
  costMicros: bigint
}

/** What is known of a call that is to be charged. */
interface Charged {
  readonly index: number
  readonly call: EndedCall
}

export class ServerBatch {
  readonly #deps: ServerCallsDeps
  readonly #statements: ReturnType<typeof serverStatements>

  constructor(deps: ServerCallsDeps) {
    this.#deps = deps
    this.#statements = serverStatements(deps.store)
  }

  async stored(callUuids: readonly string[]): Promise<ReadonlySet<string>> {
    const rows = await this.#statements.find.all([JSON.stringify(callUuids)])
    return new Set(rows.map((row) => row.call_uuid))
  }

  /** Each call uuid is among `calls` once. It changes no memory. */
  async write(calls: readonly EndedCall[], announced: readonly OutgoingEvent[]): Promise<Settled> {
    const events = [...announced]
    const stored: StoredCall[] = calls.map(() => ({}))
    const charged = await this.#insert(calls, stored, events)
    const wallets = await this.#lock(calls)
    const leases = await this.#charge(charged, wallets, stored, events)
    await this.#keepReports(calls, stored, wallets)
    if (events.length > 0) await this.#deps.sink?.writeAll(events)
    const takenFrom = new Map(leases.map(({ walletId, takenMicros }) => [walletId, takenMicros]))
    const beyond = [...wallets.values()].filter(
      ({ id, costMicros }) => costMicros > (takenFrom.get(id) ?? 0n),
    )
    return { stored, leases, beyond: beyond.map(({ id }) => id) }
  }

  /** Stores the records. Returns the calls that are to be charged. */
  async #insert(
    calls: readonly EndedCall[],
    stored: StoredCall[],
    events: OutgoingEvent[],
  ): Promise<readonly Charged[]> {
    if (calls.length === 0) return []
    const all = calls.map((call, index) => ({ call, index }))
    const accepted = await this.#accepted(calls)
    const fresh = all.filter(({ call }) => !accepted.has(call.record.callUuid))
    const isNew = new Set(
      (await this.#statements.insert.all([jsonRows(fresh.map(rowOf))])).map((row) => row.call_uuid),
    )
    const charged = fresh.filter(({ call }) => isNew.has(call.record.callUuid))
    for (const { call } of charged) {
      const event = this.#deps.events.ended(call.record, call.charge)
      if (event !== undefined) events.push(event)
    }
    await this.#send(charged)
    const again = all.filter(({ call }) => call.report && !isNew.has(call.record.callUuid))
    return [...charged, ...(await this.#reportedAgain(again, stored))]
  }

  async #accepted(calls: readonly EndedCall[]): Promise<ReadonlyMap<string, Accepted>> {
    const uuids = calls.flatMap(({ record, report }) => (report ? [record.callUuid] : []))
    if (uuids.length === 0) return new Map()
    const rows = await this.#statements.accepted.all([JSON.stringify(uuids)])
    return new Map(rows.map((row) => [row.call_uuid, row]))
  }

  /** Answers reports of calls that have a record, or a report. Returns those that are not charged yet. */
  async #reportedAgain(
    again: readonly Charged[],
    stored: StoredCall[],
  ): Promise<readonly Charged[]> {
    if (again.length === 0) return []
    const uuids = JSON.stringify(again.map(({ call }) => call.record.callUuid))
    // Looked at again: what another process has committed meanwhile.
    const accepted = await this.#accepted(again.map(({ call }) => call))
    const recorded = new Map(
      (await this.#statements.recorded.all([uuids])).map((row) => [row.call_uuid, row]),
    )
    return again.filter(({ call: { record }, index }) => {
      const answer = answerTo(record, accepted.get(record.callUuid), recorded.get(record.callUuid))
      if (answer !== undefined) stored[index] = { answer }
      return answer === undefined
    })
  }

  async #send(calls: readonly Charged[]): Promise<void> {
    const rows = calls.flatMap(({ call: { record, outgoing } }) =>
      outgoing === undefined ? [] : [{ call_uuid: record.callUuid, body: outgoing }],
    )
    if (rows.length > 0) await this.#statements.send.run([jsonRows(rows), this.#deps.now()])
  }

  /** All wallets that a call of the batch may have been paid from: what a lost answer has changed is seen again. */
  async #lock(calls: readonly EndedCall[]): Promise<ReadonlyMap<number, Wallet>> {
    const paid = calls.filter(
      ({ charge, report }) => charge.costMicros > 0 || charge.isOutOfFunds || report !== undefined,
    )
    const ids = new Set(paid.flatMap(({ charge }) => charge.payer?.terms.walletId ?? []))
    if (ids.size === 0) return new Map()
    const rows = await this.#statements.lock.all([JSON.stringify([...ids])])
    return new Map(
      rows.map(({ id, balance, is_depleted: isDepleted }) => [
        id,
        { id, balanceMicros: BigInt(balance), isDepleted: isDepleted === 1, costMicros: 0n },
      ]),
    )
  }

  async #charge(
    charged: readonly Charged[],
    wallets: ReadonlyMap<number, Wallet>,
    stored: StoredCall[],
    events: OutgoingEvent[],
  ): Promise<readonly TakenLease[]> {
    if (wallets.size === 0) return []
    const refs = charged.map(({ call }) => call.record.callUuid)
    const walletIds = JSON.stringify([...wallets.keys()])
    const rows = await this.#statements.known.all([
      ...[JSON.stringify(refs), walletIds, this.#deps.node],
    ])
    const debits = new Map(
      rows.flatMap((row) => (row.ref === null ? [] : [[row.ref, toDuplicate(row)] as const])),
    )
    const at = this.#deps.wallNow()
    const entries: object[] = []
    for (const { call, index } of charged) {
      const posting = this.#debit(call, wallets, debits, events)
      stored[index] = { ...stored[index], posting }
      if (posting?.kind === 'posted') entries.push(entryOf(call, posting, at))
    }
    const leases = rows.flatMap((row) => (row.ref === null ? [takenFrom(row, wallets)] : []))
    const changed = [...wallets.values()].map((wallet) => ({
      ...{ id: wallet.id, balance: wallet.balanceMicros, depleted: wallet.isDepleted ? 1 : 0 },
      cost: wallet.costMicros,
      taken: leases.find((lease) => lease.walletId === wallet.id)?.takenMicros ?? 0n,
    }))
    const ids = await this.#statements.charge.all([
      ...[jsonRows(entries), jsonRows(leases.map(leaseRow)), this.#deps.node],
      ...[jsonRows(changed), at, startOfDay(this.#deps.now())],
    ])
    const idOf = new Map(ids.map(({ id, ref }) => [ref, id]))
    for (const { call, index } of charged) {
      const posting = stored[index]?.posting
      const entryId = idOf.get(call.record.callUuid)
      if (posting?.kind === 'posted' && entryId !== undefined)
        stored[index] = { ...stored[index], posting: { ...posting, entryId } }
    }
    return leases
  }

  /** Changes the wallet of the batch, not the stored one. */
  #debit(
    { record, charge }: EndedCall,
    wallets: ReadonlyMap<number, Wallet>,
    debits: ReadonlyMap<string, DuplicatePosting>,
    events: OutgoingEvent[],
  ): Posting | undefined {
    const { payer, costMicros, isOutOfFunds } = charge
    const wallet = wallets.get(payer?.terms.walletId ?? 0)
    if (payer === undefined || wallet === undefined) return undefined
    const earlier = costMicros === 0 ? undefined : debits.get(record.callUuid)
    if (earlier !== undefined) return earlier
    const { terms } = payer
    const beforeMicros = wallet.balanceMicros
    wallet.balanceMicros -= BigInt(costMicros)
    wallet.costMicros += BigInt(costMicros)
    const { balanceMicros } = wallet
    const low = this.#deps.events.lowBalance(terms, beforeMicros, balanceMicros)
    if (low !== undefined) events.push(low)
    const isOver = isOutOfFunds || isDepletion(terms, beforeMicros, balanceMicros)
    if (isOver && !wallet.isDepleted) {
      wallet.isDepleted = true
      const depleted = this.#deps.events.depleted(terms, balanceMicros)
      if (depleted !== undefined) events.push(depleted)
    }
    return costMicros === 0 ? undefined : { kind: 'posted', balanceMicros, entryId: 0 }
  }

  async #keepReports(
    calls: readonly EndedCall[],
    stored: StoredCall[],
    wallets: ReadonlyMap<number, Wallet>,
  ): Promise<void> {
    const rows: object[] = []
    for (const [index, { record, charge, report }] of calls.entries()) {
      if (report === undefined) continue
      const { answer: earlier, posting } = stored[index] ?? {}
      const answer = earlier ?? newAnswer(record, charge, posting, wallets)
      stored[index] = { ...stored[index], answer }
      if (earlier === undefined || earlier.kind === 'conflict')
        rows.push(reportRow(record, answer, report))
    }
    if (rows.length > 0) await this.#statements.keep.run([jsonRows(rows)])
  }
}

const rowOf = ({ call: { record, charge } }: Charged): object => {
  const currency = charge.tariff?.currency ?? record.currency
  return toColumns(record, { costMicros: charge.costMicros, currency })
}

/** Undefined: it has a record of the engine, and may not be charged yet. */
function answerTo(
  record: EndedCall['record'],
  accepted: Accepted | undefined,
  recorded: Recorded | undefined,
): ReportAnswer | undefined {
  if (accepted !== undefined)
    return answerAgain(record, {
      ...{ billsec: accepted.billsec, costMicros: accepted.cost_micros },
      balanceAfterMicros: accepted.balance_after === null ? null : BigInt(accepted.balance_after),
      currency: accepted.currency,
    })
  if (recorded === undefined) return undefined
  const { debit_micros: debit, debit_balance: balance, debit_wallet: walletId } = recorded
  const earlier =
    debit === null || balance === null || walletId === null
      ? undefined
      : toDuplicate({ amount: debit, balance, wallet_id: walletId })
  return answerRecorded(record, recorded, earlier)
}

function newAnswer(
  record: EndedCall['record'],
  charge: EndedCall['charge'],
  posting: Posting | undefined,
  wallets: ReadonlyMap<number, Wallet>,
): ReportAnswer {
  if (posting?.kind === 'duplicate') {
    const { billsec } = record
    const answer = answerRecorded(record, { billsec, currency: record.currency }, posting)
    if (answer !== undefined) return answer
  }
  const wallet = wallets.get(charge.payer?.terms.walletId ?? 0)
  const balanceMicros = posting?.kind === 'posted' ? posting.balanceMicros : wallet?.balanceMicros
  return firstAnswer(charge, balanceMicros ?? null)
}

const toDuplicate = (row: {
  readonly wallet_id: number
  readonly amount: string
  readonly balance: string | null
}): DuplicatePosting => ({
  ...{ kind: 'duplicate', walletId: row.wallet_id, amountMicros: Number(row.amount) },
  balanceMicros: BigInt(row.balance ?? 0),
})

function entryOf(
  { record, charge }: EndedCall,
  { balanceMicros }: Extract<Posting, { readonly kind: 'posted' }>,
  at: number,
): object {
  return {
    wallet_id: charge.payer?.terms.walletId,
    ...{ kind: 'debit', amount_micros: -charge.costMicros, balance_after_micros: balanceMicros },
    ...{ ref: record.callUuid, actor: 'ocs', note: null, created_at: at },
  }
}

interface TakenLease extends StoredLease {
  readonly takenMicros: bigint
}

/** What calls have cost is taken from the lease that it was promised from; what it does not have, from the wallet alone. */
function takenFrom(
  row: { readonly wallet_id: number; readonly amount: string; readonly version: number },
  wallets: ReadonlyMap<number, Wallet>,
): TakenLease {
  const amountMicros = BigInt(row.amount)
  const costMicros = wallets.get(row.wallet_id)?.costMicros ?? 0n
  const takenMicros = costMicros < amountMicros ? costMicros : amountMicros
  return {
    walletId: row.wallet_id,
    amountMicros: amountMicros - takenMicros,
    version: row.version + 1,
    takenMicros,
  }
}

const leaseRow = ({ walletId, amountMicros, version }: TakenLease): object => ({
  ...{ wallet_id: walletId, amount: amountMicros, version },
})
