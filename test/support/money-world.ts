/**
 * Money is neither made nor lost, whatever happens in whatever order: calls that start, go on, end,
 * are reported twice, top-ups, and crashes that forget everything but the database and the journal.
 * After a crash answered calls are resumed or abandoned.
 */
import fc from 'fast-check'
import Sqlite from 'better-sqlite3'
import { expect } from 'vitest'
import type { Tariff } from '../../schema/contracts/charging.ts'
import { storeOn } from '../../schema/sqlite/open.ts'
import type { Store } from '../../schema/storage/store.ts'
import { costMicros } from '../../engine/charging/pricing/price.ts'
import {
  addCustomer,
  addPlan,
  type Books,
  endedCall,
  freshStore,
  goldenRate,
  ocsOn,
  openCall,
  plainRate,
  question,
  start,
  topUp,
} from './books.ts'
import { journalOf } from './journals.ts'
import { ManualTime } from './manual-time.ts'
import { isOnPostgres } from './on-sqlite.ts'
import { readRows, readValue } from './stored.ts'
import { openTestStore, type TestStore } from './test-store.ts'

const creditMicros = 100_000
const callers = ['+15550001', '+15550002'] as const

async function fill(store: Store): Promise<void> {
  const planId = await addPlan(store, [goldenRate, plainRate])
  for (const name of callers)
    await addCustomer(store, { name, rate_plan_id: planId, credit_limit_micros: creditMicros })
}

let image: Buffer | undefined

async function imageOfFilled(): Promise<Buffer> {
  const store = freshStore()
  await fill(store)
  const bytes = store.sqlite.serialize()
  store.close()
  return bytes
}

/** A file is copied: that takes a tenth of the time. */
async function filledStore(): Promise<TestStore> {
  if (isOnPostgres) {
    const store = await openTestStore(start)
    await fill(store)
    return store
  }
  const store = storeOn(new Sqlite((image ??= await imageOfFilled())))
  return { ...store, settled: () => Promise.resolve(), close: async () => store.close() }
}

interface LiveCall {
  readonly uuid: string
  readonly caller: string
  readonly callee: string
  grantedSeconds: number
  answeredAt: number | null
}

const actions = [
  'authorize',
  'authorize',
  'extend',
  'extend',
  'answer',
  'alive',
  'report',
  'report',
  'reportOverHttp',
  'topUp',
  'deduct',
  'wait',
  'crash',
] as const

type Step = readonly [(typeof actions)[number], number, number]

export const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.tuple(fc.constantFrom(...actions), fc.nat(1_000), fc.nat(1_000)),
  { minLength: 5, maxLength: 60 },
)

/** One process after the other on the same database, driven by random steps. */
class MoneyWorld {
  readonly store: TestStore
  readonly reported = new Map<string, number>()
  readonly durable = new Set<string>()
  /** Ends that no crash can lose, and how often each was told to be. */
  readonly safe = new Map<string, number>()
  /** No crash can lose them. */
  readonly answered = new Set<string>()
  /** By caller: what calls held that had given it back when a crash took back their end (D541). */
  readonly #heldAgain = new Map<string, number>()
  #books: Books
  #calls: LiveCall[] = []
  #count = 0

  private constructor(store: TestStore, books: Books) {
    this.store = store
    this.#books = books
  }

  static async open(): Promise<MoneyWorld> {
    const store = await filledStore()
    return new MoneyWorld(store, await ocsOn(store))
  }

  async take([action, one, two]: Step): Promise<void> {
    const { ocs, pass } = this.#books
    const call = this.#calls[one % Math.max(1, this.#calls.length)]
    if (action === 'authorize') await this.#authorize(one, two)
    if (action === 'topUp') await topUp(ocs, 1 + (one % 2), 1 + two * 500)
    if (action === 'deduct')
      await ocs.move({
        customerId: 1 + (one % 2),
        kind: 'adjust',
        amountMicros: -(1 + two * 200),
        ref: `deduct-${this.#next()}`,
        actor: 'test',
        note: null,
      })
    if (action === 'wait') await pass(two % 30)
    if (action === 'crash') await this.crash((index) => (one >> (index % 8)) % 2 === 0)
    if (call !== undefined) await this.#live(action, call, two)
  }

  async #authorize(one: number, two: number): Promise<void> {
    const caller = callers[one % 2] ?? callers[0]
    const callee = two % 2 === 0 ? '4930' : '1555'
    const uuid = `call-${this.#next()}`
    const verdict = await this.#books.ocs.authorize(question(uuid, callee, caller))
    if (verdict.kind !== 'granted') return
    const { grantedSeconds } = verdict
    const call = { uuid, caller, callee, grantedSeconds, answeredAt: null }
    this.#calls.push(call)
    const { answeredAt: _, ...begun } = this.#openCall(call, this.#books.time.now())
    if (two % 3 > 0) this.#books.ocs.begun(begun)
  }

  #openCall({ uuid, caller: callerNumber, callee: calledNumber }: LiveCall, answeredAt: number) {
    const customerId = callerNumber === callers[1] ? 2 : 1
    return openCall(uuid, answeredAt, { callerNumber, calledNumber, customerId })
  }

  async #live(action: Step[0], call: LiveCall, two: number): Promise<void> {
    const { ocs, time } = this.#books
    const used = two % (call.grantedSeconds + 1)
    if (action === 'extend') {
      const answer = await ocs.extend(call.uuid, used)
      if (answer.kind === 'granted') call.grantedSeconds = answer.grantedSeconds
      if (call.answeredAt !== null) ocs.changed(call.uuid, JSON.stringify(call))
    }
    if (action === 'answer' && call.answeredAt === null && !this.reported.has(call.uuid)) {
      call.answeredAt = time.now()
      void ocs
        .answered(this.#openCall(call, call.answeredAt), JSON.stringify(call))
        .then(() => this.answered.add(call.uuid))
    }
    if (action === 'alive' && call.answeredAt !== null)
      ocs.alive([call.uuid], call.answeredAt + used * 1_000)
    if (action === 'report' || action === 'reportOverHttp') this.#report(action, call, used)
  }

  /** A repeated report tells the same: the first one decides. */
  #report(action: 'report' | 'reportOverHttp', call: LiveCall, used: number): void {
    const isFirst = !this.reported.has(call.uuid)
    const billsec = this.reported.get(call.uuid) ?? used
    this.reported.set(call.uuid, billsec)
    const { caller: callerNumber, callee: calledNumber } = call
    const record = endedCall(call.uuid, billsec, { callerNumber, calledNumber })
    const { ocs } = this.#books
    const isSafe = () => void this.safe.set(call.uuid, (this.safe.get(call.uuid) ?? 0) + 1)
    const stored =
      action === 'report'
        ? ocs.report(record, isFirst ? isSafe : undefined)
        : ocs.reportFromNode(record, '{}')
    void stored.then(() => this.durable.add(call.uuid))
  }

  /** Everything in memory is gone, with what had not been written. */
  async crash(isResumed: (index: number) => boolean): Promise<void> {
    await this.store.settled()
    this.#books = await ocsOn(this.store, new ManualTime(this.#books.time.now() + 1))
    const { ocs } = this.#books
    const { saved } = await ocs.start()
    for (const { uuid, caller, callee, grantedSeconds } of this.#calls)
      if (this.reported.has(uuid) && !this.#isKept(uuid))
        this.#heldAgain.set(
          caller,
          (this.#heldAgain.get(caller) ?? 0) + priceOf(callee, grantedSeconds),
        )
    this.#calls = []
    for (const [index, { callUuid, state }] of saved.entries())
      if (!isResumed(index)) ocs.abandon(callUuid)
      else if (ocs.resume(callUuid)) this.#calls.push(JSON.parse(state) as LiveCall)
    for (const uuid of this.reported.keys()) if (!this.#isKept(uuid)) this.reported.delete(uuid)
  }

  /** Whether no crash can lose the end of a call. */
  #isKept(uuid: string): boolean {
    return this.durable.has(uuid) || this.safe.has(uuid)
  }

  async settle(): Promise<void> {
    const { ocs, pass } = this.#books
    const stopped = ocs.stop()
    // The journal forgets what is stored a moment later.
    await pass(20)
    await stopped
    await pass(20)
  }

  #next(): number {
    this.#count += 1
    return this.#count
  }

  checkPromises(): void {
    for (const customerId of [1, 2]) {
      const balance = this.#books.ocs.balanceOf(customerId)
      expect(balance?.reservedMicros).toBeGreaterThanOrEqual(0n)
      const heldAgain = this.#heldAgain.get(callers[customerId - 1] ?? '') ?? 0
      expect(balance?.availableMicros).toBeGreaterThanOrEqual(BigInt(-heldAgain))
      const live = this.#calls.filter(
        ({ uuid, caller }) => !this.reported.has(uuid) && caller === callers[customerId - 1],
      )
      expect(balance?.openCalls).toBe(live.length)
      const held = live.map(({ callee, grantedSeconds }) => priceOf(callee, grantedSeconds))
      const ending = [...this.reported].filter(([uuid]) => !this.durable.has(uuid))
      const heldMicros = BigInt(held.reduce((sum, micros) => sum + micros, 0))
      expect(balance?.reservedMicros).toBeGreaterThanOrEqual(heldMicros)
      // A call that is abandoned holds its cost until it is stored.
      const areStored = this.#books.ocs.stats().waitingWrites === 0
      if (ending.length === 0 && areStored) expect(balance?.reservedMicros).toBe(heldMicros)
    }
  }

  /** Every record costs its price, and exactly that was debited, once. */
  async checkRecords(): Promise<void> {
    expect(await this.#books.ocs.check()).toEqual([])
    const rows = await readRows<{
      readonly call_uuid: string
      readonly number: string
      readonly billsec: number
      readonly cost: number
      readonly debit: number
    }>(
      this.store,
      `SELECT call_uuid, destination_number AS number, billsec, cost_micros AS cost,
                (SELECT coalesce(-sum(amount_micros), 0) FROM ledger_entry
                  WHERE kind = 'debit' AND ref = cdr.call_uuid) AS debit FROM cdr`,
    )
    for (const row of rows) {
      expect(row.cost).toBe(priceOf(row.number, row.billsec))
      expect(row.debit).toBe(row.cost)
    }
    const stored = new Map(rows.map((row) => [row.call_uuid, row.billsec]))
    const open = journalOf(this.store, this.#books.time.schedule)
      .left()
      .map(({ callUuid }) => callUuid)
    expect(open.filter((uuid) => stored.has(uuid))).toEqual([])
    for (const uuid of this.durable) expect(stored.get(uuid)).toBe(this.reported.get(uuid))
    for (const [uuid, times] of this.safe) {
      expect(stored.get(uuid)).toBe(this.reported.get(uuid))
      expect(times).toBe(1)
    }
    for (const uuid of this.answered) expect(stored.has(uuid)).toBe(true)
    expect(
      await readValue(this.store, "SELECT count(*) FROM ledger_entry WHERE kind = 'debit'"),
    ).toBe(rows.filter(({ cost }) => cost > 0).length)
  }
}

const golden: Tariff = {
  prefix: '49',
  currency: 'USD',
  connectFeeMicros: 400_000,
  firstIncrementSeconds: 60,
  firstRatePerMinuteMicros: 200_000,
  incrementSeconds: 1,
  ratePerMinuteMicros: 100_000,
  decimals: 4,
}

const plain: Tariff = {
  ...golden,
  prefix: '1',
  connectFeeMicros: 0,
  firstIncrementSeconds: 1,
  firstRatePerMinuteMicros: 60_000,
  ratePerMinuteMicros: 60_000,
}

const priceOf = (number: string, seconds: number): number =>
  costMicros(number.startsWith('49') ? golden : plain, seconds)

/** Takes the steps in a fresh world and checks the books after each of them and at the end. */
export async function conserved(taken: readonly Step[]): Promise<void> {
  const world = await MoneyWorld.open()
  for (const step of taken) {
    await world.take(step)
    world.checkPromises()
  }
  await world.crash(() => false)
  await world.settle()
  await world.checkRecords()
  await world.store.close()
}
