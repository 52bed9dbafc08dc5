/**
 * One step of a job, each a short transaction that also moves its position: after a crash it goes
 * on where the last step ended, and no call and no wallet is changed twice.
 */
import { type Selectable, sql } from 'kysely'
import type { OcsPort } from '../../../schema/contracts/charging.ts'
import type { OutgoingEvent } from '../../../schema/contracts/engine.ts'
import type { Log } from '../../../schema/contracts/log.ts'
import type { Store } from '../../../schema/storage/store.ts'
import {
  all,
  execute,
  first,
  lockedTransaction,
  readApart,
  type Tables,
} from '../../../schema/sql/query.ts'
import type { ReratingTable } from '../../../schema/tables/reratings.ts'
import {
  type ChangedCall,
  forgetOldParts,
  keepPart,
  type LockedRecord,
  partOf,
  priceIn,
  recordStatements,
  type RecordStatements,
  setPrices,
} from './rerating-changes.ts'
import { findRerating, jobColumns, type ReratingClaim } from './rerating-store.ts'
import { jobOf } from './rerating-view.ts'
import { changedCalls, chargedMicros, isOther, nextCalls } from './rerated-calls.ts'

export type Rerating = Omit<Selectable<ReratingTable>, 'before_micros' | 'after_micros'>

export interface StepDeps {
  readonly store: Store
  readonly ocs: OcsPort
  /** Milliseconds UTC. */
  readonly now: () => number
  readonly log: Log
  readonly webhooks: { readonly write: (event: OutgoingEvent) => Promise<void> }
  /** The name of this process: others leave its jobs alone. */
  readonly process: string
}

/** Calls of one step: about 5 ms of the event loop. */
const CALLS = 100
/** Wallets of one step: calls of no other customer wait for a locked one. */
const WALLETS = 1
/** A process that has died leaves its job to others after so long. */
const CLAIM_MS = 30_000

export class ReratingSteps {
  readonly #deps: StepDeps
  readonly #records: RecordStatements
  readonly #addSums: ReturnType<typeof sumStatement>

  constructor(deps: StepDeps) {
    this.#deps = deps
    this.#records = recordStatements(deps.store)
    this.#addSums = sumStatement(deps.store)
  }

  /**
   * A new job of this process has it: another one may not have heard yet of the prices that were
   * corrected just before.
   */
  claim(): ReratingClaim {
    const { process, now } = this.#deps
    return { claimed_by: process, claimed_until: now() + CLAIM_MS }
  }

  /** Jobs that are not over, and that no other process works on. */
  async open(): Promise<readonly Rerating[]> {
    const { store } = this.#deps
    const query = store.db
      .selectFrom('rerating')
      .select(jobColumns)
      .where('state', 'not in', ['done', 'undone'])
      .where(this.#isFree)
      .orderBy('id')
    return all(store, query)
  }

  /** Resolves when it is stored, or when another process is at it. */
  step(job: Rerating): Promise<void> {
    switch (job.state) {
      case 'rating':
        return this.#rate(job)
      case 'undoing':
        return this.#restore(job)
      case 'posting':
        return this.#post(job)
      case 'returning':
        return this.#giveBack(job)
      case 'done':
      case 'undone':
        return Promise.resolve()
    }
  }

  /** A database of one process has no claims of others, but for those of a dead one. */
  get #isFree() {
    const { store, process, now } = this.#deps
    if (!store.statements.isShared) return sql<boolean>`TRUE`
    return sql<boolean>`(claimed_by = ${process} OR claimed_until <= ${now()})`
  }

  /** In the open transaction. False: another process is at it, or it has gone on. */
  async #claim({ id, state, position_at, position_id }: Rerating): Promise<boolean> {
    const query = this.#deps.store.db
      .updateTable('rerating')
      .set(this.claim())
      .where('id', '=', id)
      .where('state', '=', state)
      .where('position_at', '=', position_at)
      .where('position_id', '=', position_id)
      .where(this.#isFree)
    return (await execute(this.#deps.store, query)) === 1
  }

  async #rate(job: Rerating): Promise<void> {
    const { store, ocs } = this.#deps
    const after = { at: job.position_at, id: job.position_id }
    const page = await readApart(store, job.tenant_id, () => nextCalls(store, job, after, CALLS))
    const counts = { calls: 0, without_rate: 0, unknown_number: 0, other_currency: 0 }
    const sums = { before: 0n, after: 0n }
    const wanted = new Map<number, { readonly micros: number; readonly prefix: string }>()
    for (const { call, price } of changedCalls(page.calls, job, ocs, { counts, sums }))
      wanted.set(call.id, price)
    await lockedTransaction(store, async () => {
      if (!(await this.#claim(job))) return
      const changed = await this.#change(job, wanted)
      const { looked, upTo, isLast } = page
      const next = store.db.updateTable('rerating').set((row) => ({
        position_at: upTo.at,
        position_id: upTo.id,
        looked_at: row('looked_at', '+', looked),
        calls: row('calls', '+', counts.calls),
        changed: row('changed', '+', changed.length),
        without_rate: row('without_rate', '+', counts.without_rate),
        unknown_number: row('unknown_number', '+', counts.unknown_number),
        other_currency: row('other_currency', '+', counts.other_currency),
        parts: row('parts', '+', changed.length === 0 ? 0 : 1),
        before_micros: sql<bigint>`before_micros + ${sums.before}`,
        after_micros: sql<bigint>`after_micros + ${sums.after}`,
        ...(isLast && this.#afterRecords(job, { posting: 'posting', over: 'done' })),
      }))
      await execute(store, next.where('id', '=', job.id))
      if (!isLast) return
      await forgetOldParts(store, job.tenant_id)
      if (job.kind === 'bought') await this.#tellEnd(job)
    })
  }

  /** Only what is sold has money behind it. */
  #afterRecords<State extends Rerating['state']>(
    { kind }: Rerating,
    { posting, over }: { readonly posting: State; readonly over: State },
  ) {
    return kind === 'sold'
      ? { state: posting }
      : { state: over, ...(over === 'done' && { ended_at: this.#deps.now() }) }
  }

  /** In the open transaction. Records are read again, locked: those that are gone are left out. */
  async #change(
    job: Rerating,
    wanted: ReadonlyMap<number, { readonly micros: number; readonly prefix: string }>,
  ): Promise<readonly ChangedCall[]> {
    if (wanted.size === 0) return []
    const { store } = this.#deps
    const records = await this.#records.lock([...wanted.keys()].map((id) => ({ id })))
    const changes: { readonly record: LockedRecord; readonly call: ChangedCall }[] = []
    for (const record of records) {
      const price = wanted.get(record.id)
      if (price === undefined) continue
      const before = priceIn(record, job.kind)
      const { denial_code } = record
      const micros = chargedMicros({ denial_code, micros: before.micros }, price.micros)
      const after = { micros, prefix: price.prefix, currency: job.currency }
      if (!isOther(before, after)) continue
      const customerId = record.customer_id ?? 0
      changes.push({ record, call: { id: record.id, customerId, before, after } })
    }
    if (changes.length === 0) return []
    const calls = changes.map(({ call }) => call)
    const prices = changes.map(({ record, call }) => ({ record, price: call.after }))
    await setPrices(this.#records, job.kind, prices)
    await keepPart(store, { ratingId: job.id, part: job.parts }, calls)
    await this.#addSums(sumsOf(job.id, calls))
    return calls
  }

  /** Restores the newest part that is not restored yet. */
  async #restore(job: Rerating): Promise<void> {
    const { store } = this.#deps
    await lockedTransaction(store, async () => {
      if (!(await this.#claim(job))) return
      const part = job.position_id - 1
      const changed = part < 0 ? [] : ((await partOf(store, job.id, part)) ?? [])
      const records = await this.#records.lock(changed.map(({ id }) => ({ id })))
      const recordOf = new Map(records.map((record) => [record.id, record]))
      const restored: { readonly record: LockedRecord; readonly call: ChangedCall }[] = []
      const returned: ChangedCall[] = []
      for (const call of changed) {
        const record = recordOf.get(call.id)
        // The money for a record that is gone goes back, too.
        if (record === undefined) returned.push(call)
        else if (!isOther(priceIn(record, job.kind), call.after)) restored.push({ record, call })
      }
      const prices = restored.map(({ record, call }) => ({ record, price: call.before }))
      if (prices.length > 0) await setPrices(this.#records, job.kind, prices)
      returned.push(...restored.map(({ call }) => call))
      for (const { customerId, micros } of differencesOf(returned))
        await execute(
          store,
          store.db
            .updateTable('rerating_sum')
            .set({ returned_micros: sql<bigint>`returned_micros + ${micros}` })
            .where('rerating_id', '=', job.id)
            .where('customer_id', '=', customerId),
        )
      const next = store.db.updateTable('rerating').set((row) => ({
        position_id: Math.max(part, 0),
        restored: row('restored', '+', restored.length),
        kept: row('kept', '+', changed.length - returned.length),
        ...(part <= 0 && this.#afterRecords(job, { posting: 'returning', over: 'undone' })),
      }))
      await execute(store, next.where('id', '=', job.id))
      if (part <= 0 && job.kind === 'bought') await this.#tellEnd(job)
    })
  }

  /** One entry of the ledger for each customer and job. */
  async #post(job: Rerating): Promise<void> {
    const { store, log } = this.#deps
    await lockedTransaction(store, async () => {
      if (!(await this.#claim(job))) return
      const query = store.db
        .selectFrom('rerating_sum')
        .select(['customer_id', 'calls'])
        .select(sql<string>`CAST(before_micros - after_micros AS TEXT)`.as('due'))
        .where('rerating_id', '=', job.id)
        .where('posted_micros', 'is', null)
        .orderBy('customer_id')
        .limit(WALLETS)
      const rows = await all(store, query)
      for (const { customer_id: customerId, due, calls } of rows) {
        const noun = calls === 1 ? 'call' : 'calls'
        const note = `re-rating ${job.id}: ${calls} ${noun} by the prices of ${job.rate_plan}`
        const move = { customerId, micros: BigInt(due), ref: `rerating:${job.ref}:${customerId}` }
        const posted = await this.#move(job, { ...move, actor: job.started_by, note })
        if (posted === 0n && move.micros !== 0n)
          log('info', 'a re-rating has no wallet to correct', { rerating: job.id, customerId })
        await this.#setSum(job, customerId, { posted_micros: posted })
      }
      if (rows.length < WALLETS) await this.#end(job, { state: 'done', ended_at: this.#deps.now() })
    })
  }

  /** The opposite of what was posted, for the records that are restored. */
  async #giveBack(job: Rerating): Promise<void> {
    const { store } = this.#deps
    await lockedTransaction(store, async () => {
      if (!(await this.#claim(job))) return
      const query = store.db
        .selectFrom('rerating_sum')
        .select('customer_id')
        .select(
          sql<string>`CAST(CASE posted_micros WHEN 0 THEN 0 ELSE returned_micros END AS TEXT)`.as(
            'due',
          ),
        )
        .where('rerating_id', '=', job.id)
        .where('is_returned', '=', 0)
        .orderBy('customer_id')
        .limit(WALLETS)
      const rows = await all(store, query)
      for (const { customer_id: customerId, due } of rows) {
        const ref = `rerating:${job.ref}:${customerId}:undo`
        const note = `re-rating ${job.id} is undone`
        const actor = job.undone_by ?? job.started_by
        await this.#move(job, { customerId, micros: BigInt(due), ref, actor, note })
        await this.#setSum(job, customerId, { is_returned: 1 })
      }
      if (rows.length < WALLETS) await this.#end(job, { state: 'undone' })
    })
  }

  /** Resolves with what was posted: 0 where there is no wallet of this currency. */
  async #move(
    { currency }: Rerating,
    move: {
      readonly customerId: number
      readonly micros: bigint
      readonly ref: string
      readonly actor: string
      readonly note: string
    },
  ): Promise<bigint> {
    const { customerId, micros, ref, actor, note } = move
    const { store, ocs } = this.#deps
    const wallet = store.db.selectFrom('wallet').select('id').where('currency', '=', currency)
    const found = await first(store, wallet.where('customer_id', '=', customerId))
    if (micros === 0n || found === undefined) return 0n
    const amountMicros = Number(micros)
    const result = await ocs.move({
      customerId,
      kind: 'adjust',
      amountMicros,
      ref,
      actor,
      note,
      mayBeOwed: true,
    })
    return result.kind === 'moved' || result.kind === 'duplicate' ? micros : 0n
  }

  async #setSum(
    { id }: Rerating,
    customerId: number,
    values: { readonly posted_micros: bigint } | { readonly is_returned: 1 },
  ): Promise<void> {
    const { store } = this.#deps
    const query = store.db
      .updateTable('rerating_sum')
      .set(values)
      .where('rerating_id', '=', id)
      .where('customer_id', '=', customerId)
    await execute(store, query)
  }

  async #end(
    job: Rerating,
    values: { readonly state: 'done'; readonly ended_at: number } | { readonly state: 'undone' },
  ): Promise<void> {
    const { store } = this.#deps
    await execute(store, store.db.updateTable('rerating').set(values).where('id', '=', job.id))
    await this.#tellEnd(job)
  }

  /** In the transaction that ends the job: it is told once. */
  async #tellEnd({ id, tenant_id: tenantId }: Rerating): Promise<void> {
    const { store, webhooks } = this.#deps
    const data = jobOf(await findRerating(store, id, { tenantId: null }))
    await webhooks.write({ type: 'rerating.completed', tenantId, data })
  }
}

/** Sums by how much the calls of each customer became dearer. */
function differencesOf(calls: readonly ChangedCall[]) {
  const sums = new Map<number, bigint>()
  for (const { customerId, before, after } of calls)
    sums.set(customerId, (sums.get(customerId) ?? 0n) + BigInt(after.micros - before.micros))
  return [...sums].map(([customerId, micros]) => ({ customerId, micros }))
}

function sumsOf(ratingId: number, calls: readonly ChangedCall[]) {
  const sums = new Map<number, { calls: number; before: bigint; after: bigint }>()
  for (const { customerId, before, after } of calls) {
    const sum = sums.get(customerId) ?? { calls: 0, before: 0n, after: 0n }
    sums.set(customerId, sum)
    sum.calls += 1
    sum.before += BigInt(before.micros)
    sum.after += BigInt(after.micros)
  }
  return [...sums].map(([customerId, sum]) => ({
    rerating_id: ratingId,
    customer_id: customerId,
    calls: sum.calls,
    before_micros: String(sum.before),
    after_micros: String(sum.after),
  }))
}

const sumColumns = ['rerating_id', 'customer_id', 'calls', 'before_micros', 'after_micros']

const sumStatement = ({ statements }: Pick<Tables, 'statements'>) =>
  statements.prepareRows({
    table: 'rerating_sum',
    columns: sumColumns,
    sql: `INSERT INTO rerating_sum (${sumColumns.join()})
      SELECT ${sumColumns.join()} FROM given WHERE true
      ON CONFLICT (rerating_id, customer_id) DO UPDATE SET ${sumColumns
        .slice(2)
        .map((column) => `${column} = rerating_sum.${column} + excluded.${column}`)
        .join(', ')}`,
  })
