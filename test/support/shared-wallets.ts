/**
 * Several OCS, each as a process of its own, on one PostgreSQL: what they tell each other may be
 * late or lost.
 */
import { setTimeout as later } from 'node:timers/promises'
import type { Insertable } from 'kysely'
import { onTestFinished } from 'vitest'
import type { CustomerTable } from '../../schema/tables/tenants.ts'
import { MemoryFile } from '../../schema/journal/memory-file.ts'
import { CallJournal } from '../../schema/journal/call-journal.ts'
import type { Store } from '../../schema/storage/store.ts'
import { openStore } from '../../schema/postgres/open.ts'
import { all } from '../../schema/sql/query.ts'
import { Ocs } from '../../engine/charging/ocs.ts'
import type { InstanceIdentity } from '../../schema/contracts/instances.ts'
import {
  limitShares,
  InstanceShares,
  type ShareMembers,
} from '../../engine/shares/instance-shares.ts'
import type { EventSink } from '../../schema/contracts/engine.ts'
import type { CallRecord } from '../../schema/contracts/call-record.ts'
import {
  addCustomer,
  addPlan,
  endedCall,
  openCall,
  plainRate,
  question,
  start,
  topUp,
} from './books.ts'
import { freshDatabase } from './postgres.ts'
import { type PostgresProxy, postgresProxy } from './postgres-proxy.ts'
import { EndingTimers } from './ending-timers.ts'
import { noSecrets } from './sharing-nodes.ts'
import { Rounds } from '../../schema/rounds.ts'

type Handler = (payload: string) => void

/** LISTEN and NOTIFY between processes of the test: late, and sometimes lost. */
export class Notices {
  lossRate = 0.05
  readonly #handlers = new Map<string, Set<Handler>>()
  readonly #random: () => number

  constructor(random: () => number) {
    this.#random = random
  }

  on(channel: string, handler: Handler): () => void {
    const handlers = this.#handlers.get(channel) ?? new Set()
    this.#handlers.set(channel, handlers.add(handler))
    return () => void handlers.delete(handler)
  }

  notify(channel: string, payload: string): void {
    if (this.#random() < this.lossRate) return
    void this.#deliver(channel, payload, Math.floor(this.#random() * 5))
  }

  async #deliver(channel: string, payload: string, delayMs: number): Promise<void> {
    await later(delayMs)
    for (const handler of this.#handlers.get(channel) ?? []) handler(payload)
  }
}

export interface ChargingInstance {
  readonly name: string
  readonly ocs: Ocs
  readonly limits: InstanceShares
  /** The name of this process, which no other one has had. */
  readonly process: string
  readonly store: Store
  readonly log: string[]
  /** Others may take it for dead. */
  isAlive: boolean
  /** Ends its timers, as a process that is killed: nothing of it is written any more. */
  kill(): Promise<void>
  /** As `kill`, after what waits is written and what it held is given back. */
  stop(): Promise<void>
}

export class SharedWallets {
  readonly url: string
  readonly store: Store
  readonly #drop: () => Promise<void>
  readonly #close: () => Promise<void>
  readonly #notices: Notices
  readonly #instances = new Map<string, ChargingInstance>()
  readonly #journals = new Map<string, MemoryFile>()
  /** Instances that are taken for dead. */
  gone: readonly InstanceIdentity[] = []
  #epoch = 0
  #processes = 0

  private constructor(
    url: string,
    store: Store & { close(): Promise<void> },
    drop: () => Promise<void>,
    random: () => number,
  ) {
    this.url = url
    this.store = store
    this.#drop = drop
    this.#close = () => store.close()
    this.#notices = new Notices(random)
  }

  static async open(random: () => number): Promise<SharedWallets> {
    const { url, drop } = await freshDatabase()
    const store = await openStore(url, { ...noSecrets, now: start, connections: 3 })
    return new SharedWallets(url, store, drop, random)
  }

  addPlan(rates: Parameters<typeof addPlan>[1]): Promise<number> {
    return addPlan(this.store, rates)
  }

  addCustomer(customer: Parameters<typeof addCustomer>[1]): Promise<number> {
    return addCustomer(this.store, customer)
  }

  /** A process; one of the same name takes over the journal of the one before. */
  async instance(
    name: string,
    more: { url?: string; events?: EventSink; failMode?: 'closed' | 'open' } = {},
  ): Promise<ChargingInstance> {
    const { url = this.url, events, failMode = 'closed' } = more
    const store = await openStore(url, { ...noSecrets, now: start, connections: 5 })
    const timers = new EndingTimers()
    const { schedule } = timers
    const file = this.#journals.get(name) ?? new MemoryFile()
    this.#journals.set(name, file)
    this.#processes += 1
    const log: string[] = []
    const told = (level: string, message: string, fields?: object): void =>
      void log.push(`${level} ${message} ${JSON.stringify(fields, errorsAsText)}`)
    const shared = { schedule, log: told }
    const journal = new CallJournal(file, { ...shared, storage: store.storage })
    this.#epoch += 1
    const identity = { name, epoch: this.#epoch }
    await this.#register(identity)
    const instance = { isAlive: true }
    const members: ShareMembers = {
      name,
      process: `${this.#processes}`,
      canHold: () => instance.isAlive,
      size: () => Math.max(1, this.#instances.size),
      notices: this.#notices,
      gone: () => this.gone,
    }
    const limits = new InstanceShares(limitShares, { ...shared, store, members, now: Date.now })
    const ocs = await Ocs.open({
      ...shared,
      every: new Rounds({ schedule, steadyNow: Date.now }).every,
      store,
      journal,
      members,
      shares: limits,
      now: Date.now,
      wallNow: Date.now,
      unknownCaller: 'deny',
      failMode,
      ...(events && { events }),
    })
    const end = async () => {
      timers.end()
      this.#instances.delete(name)
      await store.close()
    }
    const made: ChargingInstance = Object.assign(instance, {
      name,
      process: members.process,
      ocs,
      limits,
      store,
      log,
      kill: end,
      stop: async () => {
        await ocs.stop()
        await limits.stop()
        await journal.close(true)
        await end()
      },
    })
    this.#instances.set(name, made)
    return made
  }

  #register({ name, epoch }: InstanceIdentity): Promise<unknown> {
    const now = 'floor(extract(epoch FROM clock_timestamp()) * 1000)'
    return this.store.statements
      .prepare(
        `INSERT INTO node (name, epoch, install_id, address, sip_uri, version, state, live_calls, started_at, heartbeat_at)
         VALUES ($1, $2, '', '', '', '', 'serving', 0, ${now}, ${now})
         ON CONFLICT (name) DO UPDATE SET epoch = $2, state = 'serving', heartbeat_at = ${now}`,
      )
      .run([name, epoch])
  }

  /** Others have fenced this instance, and are told that nothing goes on which it has granted. */
  async lose(name: string): Promise<void> {
    const lost = this.store.statements.prepare<InstanceIdentity>(
      `UPDATE node SET epoch = epoch + 1, state = 'stopped', heartbeat_at = 0 WHERE name = $1
       RETURNING name, epoch`,
    )
    this.gone = await lost.all([name])
  }

  async close(): Promise<void> {
    for (const instance of [...this.#instances.values()]) await instance.stop()
    await this.#close()
    await this.#drop()
  }

  // ---- what is stored --------------------------------------------------------------------------

  /** The shares of one wallet, by process; those that hold nothing are left out. */
  async shares(): Promise<Readonly<Record<string, number>>> {
    const rows = await this.store.statements
      .prepare<{ process: string; amount: number }>(
        "SELECT process, amount FROM share WHERE kind = 'wallet' AND amount > 0",
      )
      .all([])
    return Object.fromEntries(rows.map(({ process, amount }) => [process, amount]))
  }

  async wallets() {
    const rows = await this.store.statements
      .prepare<Record<'balance' | 'held' | 'ledger' | 'credit', string> & { id: number }>(
        `SELECT wallet.id, balance_micros::text AS balance, credit_limit_micros::text AS credit,
           (SELECT coalesce(sum(amount), 0)::text FROM share
            WHERE kind = 'wallet' AND resource = wallet.id::text) AS held,
           (SELECT coalesce(sum(amount_micros), 0)::text FROM ledger_entry WHERE wallet_id = wallet.id) AS ledger
         FROM wallet JOIN customer ON customer.id = customer_id ORDER BY wallet.id`,
      )
      .all([])
    return rows.map(({ id, balance, held, ledger, credit }) => ({
      id,
      balanceMicros: BigInt(balance),
      heldMicros: BigInt(held),
      ledgerMicros: BigInt(ledger),
      creditMicros: BigInt(credit),
    }))
  }

  records(): Promise<{ call_uuid: string; billsec: number; cost_micros: number | null }[]> {
    const rows = this.store.db.selectFrom('cdr').select(['call_uuid', 'billsec', 'cost_micros'])
    return all(this.store, rows.orderBy('call_uuid'))
  }
}

/**
 * Processes that spend from the wallet of one customer, whose calls to 1555 cost 0.001 a second.
 * Everything ends with the test.
 */
export async function sharedWallet(terms: Partial<Insertable<CustomerTable>> = {}) {
  const shared = await SharedWallets.open(() => 0.5)
  const proxies: PostgresProxy[] = []
  onTestFinished(async () => {
    for (const proxy of proxies) proxy.mend()
    await shared.close()
    for (const proxy of proxies) proxy.close()
  })
  const planId = await shared.addPlan([
    plainRate,
    { ...plainRate, prefix: '1900', is_blocked: 1 as const },
  ])
  const customerId = await shared.addCustomer({
    name: '+15550001',
    rate_plan_id: planId,
    ...terms,
  })
  const of = { customerId, calledNumber: '1555' }
  return {
    shared,
    customerId,
    topUp: ({ ocs }: ChargingInstance, micros: number) => topUp(ocs, customerId, micros),
    /**
     * The connections of the instance are there: a busy machine may take longer for them than a
     * call waits.
     */
    async instance(
      name: string,
      options: Parameters<SharedWallets['instance']>[1] = {},
    ): Promise<ChargingInstance> {
      const instance = await shared.instance(name, options)
      const connect = () => instance.store.statements.prepare('SELECT pg_sleep(0.02)').all([])
      await Promise.all([connect(), connect(), connect(), connect()])
      return instance
    },
    async proxy(): Promise<PostgresProxy> {
      const proxy = await postgresProxy(shared.url)
      proxies.push(proxy)
      return proxy
    },
    authorize: ({ ocs }: ChargingInstance, uuid: string) => ocs.authorize(question(uuid, '1555')),
    answer: ({ ocs }: ChargingInstance, uuid: string) =>
      ocs.answered(openCall(uuid, Date.now(), of), '{}'),
    call: (uuid: string, billsec: number, more: Partial<CallRecord> = {}) =>
      endedCall(uuid, billsec, { ...of, ...more }),
    move: ({ ocs }: ChargingInstance, amountMicros: number, ref: string) =>
      ocs.move({ customerId, kind: 'adjust', amountMicros, ref, actor: 'test', note: null }),
    wallet: async () => (await shared.wallets())[0],
    costs: async () => (await shared.records()).map((record) => record.cost_micros),
  }
}

const errorsAsText = (_: string, value: unknown): unknown =>
  value instanceof Error ? value.message : typeof value === 'bigint' ? String(value) : value
