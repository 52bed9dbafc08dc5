/** The statements that settle many calls at once in PostgreSQL, inside the transaction of the caller. */
import { toColumns } from '../../../schema/call-record.ts'
import type { ReportAnswer } from '../../../schema/contracts/charging.ts'
import type { OutgoingEvent } from '../../../schema/contracts/webhook-events.ts'
import { type JsonRow, jsonRows } from '../../../schema/sql/postgres-statements.ts'
import type { EndedCall, StoredCall } from '../call-store.ts'
import { startOfDay } from '../customers/customer.ts'
import type { SpentShare } from '../../shares/node-shares.ts'
import type { DuplicatePosting, Posting } from '../ledger/posting.ts'
import { isDepletion } from '../accounting-events.ts'
import { answerAgain, answerRecorded, firstAnswer, reportRow } from './node-reports.ts'
import type { ServerCallsDeps } from './store-deps.ts'
import { type Accepted, type Recorded, serverStatements } from './server-statements.ts'

export interface Settled {
  /** In the order of the calls. */
  readonly stored: readonly StoredCall[]
  readonly spent: readonly SpentShare[]
  /** Wallets that have paid more than was held for it. */
  readonly beyond: readonly string[]
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

interface Begun {
  readonly charged: readonly Charged[]
  /** Locked. */
  readonly wallets: ReadonlyMap<number, Wallet>
  /** Of calls that had no record and were debited: such as one whose record retention has deleted. */
  readonly debits: ReadonlyMap<string, DuplicatePosting>
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
    const begun = await this.#begin(calls, stored, events)
    const { wallets } = begun
    const spent = await this.#charge(begun, stored, events)
    await this.#keepReports(calls, stored, wallets)
    if (events.length > 0) await this.#deps.sink?.writeAll(events)
    const spentOf = new Map(spent.map((share) => [share.resource, share.spent]))
    const beyond = [...wallets.values()].flatMap(({ id, costMicros }) => {
      const resource = String(id)
      return costMicros > (spentOf.get(resource) ?? 0) ? resource : []
    })
    return { stored, spent, beyond }
  }

  /** Stores the records and locks the wallets. Returns these, and the calls that are to be charged. */
  async #begin(
    calls: readonly EndedCall[],
    stored: StoredCall[],
    events: OutgoingEvent[],
  ): Promise<Begun> {
    const wallets = new Map<number, Wallet>()
    const debits = new Map<string, DuplicatePosting>()
    if (calls.length === 0) return { charged: [], wallets, debits }
    const all = calls.map((call, index) => ({ call, index }))
    const accepted = await this.#accepted(calls)
    const fresh = all.filter(({ call }) => !accepted.has(call.record.callUuid))
    const known = new Set(accepted.keys())
    const values = [jsonRows(fresh.map(rowOf)), JSON.stringify(walletsOf(calls))]
    for (const row of await this.#statements.begin.all(values)) {
      const { ref, wallet_id: id, balance } = row
      if (id === null) known.add(ref ?? '')
      else if (ref === null) wallets.set(id, toWallet(id, row))
      else debits.set(ref, toDuplicate({ wallet_id: id, amount: row.amount ?? '0', balance }))
    }
    const isNew = ({ call }: Charged): boolean => !known.has(call.record.callUuid)
    const charged = all.filter(isNew)
    for (const { call } of charged) {
      const event = this.#deps.events.ended(call.record, call.charge)
      if (event !== undefined) events.push(event)
    }
    await this.#send(charged)
    // After the lock: what another process has charged is seen.
    const again = all.filter((one) => one.call.report && !isNew(one))
    const late = await this.#reportedAgain(again, stored)
    return { charged: [...charged, ...late], wallets, debits }
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

  async #charge(
    { charged, wallets, debits }: Begun,
    stored: StoredCall[],
    events: OutgoingEvent[],
  ): Promise<readonly SpentShare[]> {
    if (wallets.size === 0) return []
    const at = this.#deps.wallNow()
    const entries: JsonRow[] = []
    for (const { call, index } of charged) {
      const posting = this.#debit(call, wallets, debits, events)
      stored[index] = { ...stored[index], posting }
      if (posting?.kind === 'posted') entries.push(entryOf(call, posting, at))
    }
    const made = await this.#statements.charge.get([
      jsonRows(entries),
      this.#deps.owner.name,
      jsonRows([...wallets.values()].map(costOf)),
      at,
      startOfDay(this.#deps.now()),
      this.#deps.owner.process,
    ])
    // In the form that the statement gives it.
    const idOf = new Map(JSON.parse(made?.entries ?? '[]') as (readonly [string, number])[])
    for (const { call, index } of charged) {
      const posting = stored[index]?.posting
      const entryId = idOf.get(call.record.callUuid)
      if (posting?.kind === 'posted' && entryId !== undefined)
        stored[index] = { ...stored[index], posting: { ...posting, entryId } }
    }
    return JSON.parse(made?.spent ?? '[]') as SpentShare[]
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
    const rows: JsonRow[] = []
    for (const [index, { record, charge, report }] of calls.entries()) {
      if (report === undefined) continue
      const { answer: earlier, posting } = stored[index] ?? {}
      const answer = earlier ?? newAnswer(record, charge, posting, wallets)
      stored[index] = { ...stored[index], answer }
      if (earlier === undefined || earlier.kind === 'conflict')
        rows.push(textsOf(reportRow(record, answer, report)))
    }
    if (rows.length > 0) await this.#statements.keep.run([jsonRows(rows)])
  }
}

const textsOf = (report: ReturnType<typeof reportRow>): JsonRow => ({
  ...report,
  balance_after_micros: report.balance_after_micros?.toString() ?? null,
})

const rowOf = ({ call: { record, charge } }: Charged): JsonRow => {
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
      billsec: accepted.billsec,
      costMicros: accepted.cost_micros,
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
  kind: 'duplicate',
  walletId: row.wallet_id,
  amountMicros: Number(row.amount),
  balanceMicros: BigInt(row.balance ?? 0),
})

function entryOf(
  { record, charge }: EndedCall,
  { balanceMicros }: Extract<Posting, { readonly kind: 'posted' }>,
  at: number,
): JsonRow {
  return {
    wallet_id: charge.payer?.terms.walletId ?? null,
    kind: 'debit',
    amount_micros: -charge.costMicros,
    balance_after_micros: String(balanceMicros),
    ref: record.callUuid,
    actor: 'ocs',
    note: null,
    created_at: at,
  }
}

/** All wallets that a call of the batch may have been paid from: what a lost answer has changed is seen again. */
function walletsOf(calls: readonly EndedCall[]): readonly number[] {
  const ids = new Set<number>()
  for (const { charge, report } of calls) {
    const walletId = charge.payer?.terms.walletId ?? null
    const isPaid = charge.costMicros > 0 || charge.isOutOfFunds || report !== undefined
    if (isPaid && walletId !== null) ids.add(walletId)
  }
  return [...ids]
}

const toWallet = (
  id: number,
  row: { readonly balance: string | null; readonly is_depleted: 0 | 1 | null },
): Wallet => ({
  id,
  balanceMicros: BigInt(row.balance ?? 0),
  costMicros: 0n,
  isDepleted: row.is_depleted === 1,
})

const costOf = ({ id, balanceMicros, isDepleted, costMicros }: Wallet): JsonRow => ({
  id,
  balance: String(balanceMicros),
  cost: String(costMicros),
  depleted: isDepleted ? 1 : 0,
})
