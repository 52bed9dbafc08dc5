/**
 * Money is neither made nor lost by several processes that spend from the same wallets: random
 * calls, moves and crashes, in real time on one PostgreSQL.
 */
import { describe, expect, test } from 'vitest'
import { endedCall, openCall, plainRate, question } from '../../support/books.ts'
import { hasPostgres } from '../../support/postgres.ts'
import { seededRandom } from '../../support/seeded-random.ts'
import { type ChargingInstance, SharedWallets } from '../../support/shared-wallets.ts'
import { turnOfEventLoop } from '../../support/waiting.ts'

const names = ['a', 'b', 'c'] as const
const callers = ['+15550001', '+15550002', '+15550003'] as const
/** The first one is always about empty, the last one never. */
const topUps = [40_000, 400_000, 20_000_000] as const
const creditMicros = 30_000
const STEPS = 250
/** So often others ask a process that has started again, until it goes on with its calls. */
const ASKED = 3

interface Live {
  readonly uuid: string
  readonly caller: number
  readonly instance: string
  granted: number
  isAnswered: boolean
}

class World {
  readonly shared: SharedWallets
  readonly #random: () => number
  readonly #instances = new Map<string, ChargingInstance>()
  readonly #live = new Map<string, Live>()
  /** Calls that were told to be no more lost, and how long they talked. */
  readonly safe = new Map<string, { readonly billsec: number; readonly caller: number }>()
  granted = 0
  #count = 0
  customers: number[] = []

  constructor(shared: SharedWallets, random: () => number) {
    this.shared = shared
    this.#random = random
  }

  async open(): Promise<void> {
    const planId = await this.shared.addPlan([plainRate])
    for (const name of callers)
      this.customers.push(
        await this.shared.addCustomer({
          name,
          rate_plan_id: planId,
          credit_limit_micros: creditMicros,
        }),
      )
    for (const name of names) this.#instances.set(name, await this.shared.instance(name))
    const [first] = this.#instances.values()
    for (const [index, amount] of topUps.entries()) await this.#move(first, index, amount)
  }

  #below(count: number): number {
    return Math.floor(this.#random() * count)
  }

  async #move(
    instance: ChargingInstance | undefined,
    index: number,
    amountMicros: number,
  ): Promise<void> {
    this.#count += 1
    const kind = amountMicros > 0 ? 'topup' : 'adjust'
    await instance?.ocs.move({
      customerId: this.customers[index] ?? 0,
      kind,
      amountMicros,
      ref: `move-${this.#count}`,
      actor: 'test',
      note: null,
    })
  }

  #instance(): ChargingInstance | undefined {
    return this.#instances.get(names[this.#below(names.length)] ?? 'a')
  }

  /** Steps overlap, as calls do. */
  async step(): Promise<void> {
    const kind = this.#random()
    const instance = this.#instance()
    const caller = this.#below(callers.length)
    if (kind < 0.45) return this.#authorize(instance, caller)
    if (kind < 0.6) return this.#extend()
    if (kind < 0.85) return this.#end()
    if (kind < 0.9) return this.#move(instance, caller, 1 + this.#below(60_000))
    if (kind < 0.95) return this.#move(instance, caller, -1 - this.#below(50_000))
  }

  async #authorize(instance: ChargingInstance | undefined, caller: number): Promise<void> {
    if (instance === undefined) return
    this.#count += 1
    const uuid = `call-${this.#count}`
    const number = callers[caller] ?? ''
    const verdict = await instance.ocs.authorize(question(uuid, '1555', number))
    if (verdict.kind !== 'granted') return
    this.granted += 1
    const call = { uuid, caller, instance: instance.name, granted: verdict.grantedSeconds }
    const live: Live = { ...call, isAnswered: false }
    this.#live.set(uuid, live)
    const more = { callerNumber: number, calledNumber: '1555', customerId: this.customers[caller] }
    const answered = await instance.ocs.answered(openCall(uuid, Date.now(), more as object), '{}')
    live.isAnswered = answered
  }

  #some(): Live | undefined {
    const live = [...this.#live.values()].filter(({ isAnswered }) => isAnswered)
    return live[this.#below(live.length)]
  }

  async #extend(): Promise<void> {
    const call = this.#some()
    if (call === undefined) return
    const { ocs } = this.#instances.get(call.instance) ?? {}
    const answer = await ocs?.extend(call.uuid, call.granted)
    if (answer?.kind === 'granted') call.granted = answer.grantedSeconds
    ocs?.changed(call.uuid, '{}')
  }

  async #end(): Promise<void> {
    const call = this.#some()
    if (call === undefined) return
    this.#live.delete(call.uuid)
    // Cutting a call takes a moment.
    const billsec = this.#below(call.granted + 3)
    const more = {
      callerNumber: callers[call.caller] ?? '',
      calledNumber: '1555',
      customerId: this.customers[call.caller] ?? null,
    }
    const record = endedCall(call.uuid, billsec, more)
    await new Promise<void>((resolve) => {
      const safe = (): void => {
        this.safe.set(call.uuid, { billsec, caller: call.caller })
        resolve()
      }
      void this.#instances.get(call.instance)?.ocs.report(record, safe)
    })
  }

  /**
   * `kill -9`: its journal and its shares are there for the next process of this name, and others
   * ask for money meanwhile.
   */
  async crash(name: string): Promise<void> {
    const instance = this.#instances.get(name)
    await instance?.kill()
    const asking = [...this.#instances.values()].filter((other) => other !== instance)
    let asksUntil = Infinity
    const asked = asking.map(async (other) => {
      for (let asks = 0; asks < asksUntil; asks += 1) {
        await this.#authorize(other, this.#below(2))
        // A refusal may come within the turn: the loop would never end.
        await turnOfEventLoop()
        if (asksUntil === Infinity) asks = 0
      }
    })
    const next = await this.shared.instance(name)
    this.#instances.set(name, next)
    const { saved } = await next.ocs.start()
    asksUntil = ASKED
    await Promise.all(asked)
    const resumed = new Set(saved.map(({ callUuid }) => callUuid))
    for (const call of [...this.#live.values()]) {
      if (call.instance !== name) continue
      if (!resumed.has(call.uuid) || !next.ocs.resume(call.uuid)) this.#live.delete(call.uuid)
      // The journal may have had no time for the last grant.
      const known = await next.ocs.extend(call.uuid, 0)
      call.granted = known.kind === 'granted' ? known.grantedSeconds : 0
    }
    for (const uuid of resumed) if (!this.#live.has(uuid)) next.ocs.abandon(uuid)
  }

  async checkWallets(): Promise<void> {
    for (const wallet of await this.shared.wallets()) {
      expect(wallet.ledgerMicros).toBe(wallet.balanceMicros)
      expect(wallet.balanceMicros + wallet.creditMicros - wallet.heldMicros).toBeGreaterThanOrEqual(
        0n,
      )
    }
  }

  /** Nothing is under way: what live calls may cost is there. */
  async checkHeld(): Promise<void> {
    for (const [caller, wallet] of (await this.shared.wallets()).entries()) {
      const calls = [...this.#live.values()].filter((call) => call.caller === caller)
      const heldMicros = calls.reduce((sum, { granted }) => sum + granted * 1_000, 0)
      expect(wallet.balanceMicros + wallet.creditMicros).toBeGreaterThanOrEqual(BigInt(heldMicros))
    }
  }

  /** All end, and everything is stored. */
  async finish(): Promise<void> {
    while (this.#live.size > 0) {
      const before = this.#live.size
      await this.#end()
      if (this.#live.size === before) break
    }
    for (const instance of this.#instances.values()) await instance.stop()
  }

  logs(): readonly string[] {
    return [...this.#instances.values()].flatMap(({ log }) => log)
  }
}

describe.runIf(hasPostgres)('several processes on one database', () => {
  test.each([1, 2, 3])(
    'Σ ledger is the balance, and no share is more than the money (seed %i)',
    async (seed) => {
      const random = seededRandom(seed)
      const shared = await SharedWallets.open(random)
      const world = new World(shared, random)
      try {
        await world.open()
        const running: Promise<void>[] = []
        for (let step = 0; step < STEPS; step += 1) {
          running.push(world.step())
          if (random() < 0.3) await world.checkWallets()
          if (random() < 0.015) {
            await Promise.all(running.splice(0))
            await world.crash(names[Math.floor(random() * names.length)] ?? 'a')
            await world.checkHeld()
          }
        }
        await Promise.all(running)
        await world.finish()
        await world.checkWallets()
        for (const { heldMicros, balanceMicros, creditMicros } of await shared.wallets()) {
          expect(heldMicros).toBe(0n)
          expect(balanceMicros + creditMicros).toBeGreaterThanOrEqual(0n)
        }
        const stored = new Map((await shared.records()).map((row) => [row.call_uuid, row]))
        for (const [uuid, { billsec, caller }] of world.safe) {
          expect([uuid, stored.get(uuid)?.billsec]).toEqual([uuid, billsec])
          // Wherever the money lies: what a call cost is what its wallet had.
          if (caller === 2)
            expect([uuid, stored.get(uuid)?.cost_micros]).toEqual([uuid, billsec * 1_000])
        }
        expect(world.granted).toBeGreaterThan(20)
        expect(world.logs()).toEqual([])
      } finally {
        await shared.close()
      }
    },
  )
})
