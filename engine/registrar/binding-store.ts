/**
 * Bindings in the database. A REGISTER is answered after its group is committed, so that a restart
 * loses no confirmed binding. Instances that share a database notify each other of extensions whose
 * bindings have changed.
 */
import { type Selectable, sql } from 'kysely'
import type { Schedule } from '../../schema/clock.ts'
import {
  all,
  inSlices,
  type Param,
  prepare,
  type Prepared,
  SLICE,
  slicesOf,
} from '../../schema/sql/query.ts'
import type { Store } from '../../schema/storage/store.ts'
import { QueueFull, runEach, WriteQueue } from '../../schema/storage/write-queue.ts'
import { type Binding, bindingLimits } from './bindings.ts'
import type { BindingTable } from '../../schema/tables/tenants.ts'

export interface BindingStoreDeps {
  readonly store: Store
  /** Name of this instance. */
  readonly instance: string
  readonly schedule: Schedule
  readonly onFailure: (error: unknown, waiting: number) => void
  /** Whether phones that are lost are kept for `LostRegistrations`; absent: they are not. */
  readonly keepsLost?: (() => boolean) | undefined
}

/** The changes of a REGISTER. */
export interface BindingChange {
  readonly extensionId: number
  readonly saved: readonly Binding[]
  /** Stored already; only number and times have changed. */
  readonly refreshed: readonly Binding[]
  /** Contact URIs. */
  readonly removed: readonly string[]
}

/**
 * `gone`: its extension is. `late`: the database has not taken it in time, and it is not stored.
 */
export type WriteResult = 'stored' | 'gone' | 'late'

export interface StoredBinding {
  readonly domain: string
  readonly extension: string
  readonly extensionId: number
  readonly tenantId: number
  readonly secret: string
  readonly binding: Binding
}

/** More waiting writes than this, and REGISTERs are refused: the disk does not keep up. */
const MAX_WAITING = 5_000
/** A phone gives up after 32 s (RFC 3261 §17.1.2); it shall hear before that to come again. */
const WRITE_MS = 10_000

/** Closed connections of so long are removed together. */
const CLOSED_WAIT_MS = 20
const CLOSED_RETRY_MS = 1_000

/** The channel of notices `<node> <id of an extension>`; a name of an instance has no blank. */
export const BINDING_CHANNEL = 'tollgate_bindings'

interface Values {
  extensionId: number
  contact: string
  instance: string | null
  regId: number | null
  q: number
  callId: string
  cseq: number
  path: string
  userAgent: string
  protocol: string
  address: string
  port: number
  node: string
  registeredAt: number
  expiresAt: number
}

type Closed = Pick<
  Values,
  'extensionId' | 'contact' | 'node' | 'protocol' | 'address' | 'port' | 'registeredAt'
>

type Refresh = Pick<Values, 'extensionId' | 'contact' | 'cseq' | 'registeredAt' | 'expiresAt'>

export class BindingStore {
  readonly #deps: BindingStoreDeps
  readonly #queue: WriteQueue
  readonly #save: Prepared<Values, unknown>
  readonly #refresh: Prepared<Refresh, unknown>
  readonly #remove: Prepared<{ extensionId: number; contact: string }, unknown>
  readonly #removeAll: Prepared<{ extensionId: number }, unknown>
  readonly #removeOfInstance: Prepared<{ extensionId: number; node: string }, unknown>
  readonly #removeExpired: Prepared<{ now: number }, unknown>
  readonly #removeClosed: Prepared<Closed, unknown>
  readonly #noteExpired: Prepared<{ now: number }, unknown>
  readonly #noteClosed: Prepared<Closed & { now: number }, unknown>
  /** Bindings whose connections are closed, until their removal is queued. */
  #closed: (Closed & { readonly now: number })[] = []
  #cancelRemoval = (): void => undefined
  /** Writes that wait, by extension. */
  readonly #waiting = new Map<number, number>()

  constructor(deps: BindingStoreDeps) {
    const { store, schedule, onFailure } = deps
    this.#deps = deps
    this.#queue = new WriteQueue({
      store,
      schedule,
      maxWaiting: MAX_WAITING,
      run: runEach,
      onFailure,
    })
    this.#save = prepareSave(store)
    this.#refresh = prepareRefresh(store)
    this.#remove = prepare(store, (db, param) =>
      db
        .deleteFrom('binding')
        .where('extension_id', '=', param('extensionId'))
        .where('contact', '=', param('contact')),
    )
    this.#removeAll = prepare(store, (db, param) =>
      db.deleteFrom('binding').where('extension_id', '=', param('extensionId')),
    )
    this.#removeOfInstance = prepare(store, (db, param) =>
      db
        .deleteFrom('binding')
        .where('extension_id', '=', param('extensionId'))
        .where('node', '=', param('node')),
    )
    this.#removeExpired = prepare(store, (db, param) => {
      const expired = db.deleteFrom('binding').where('expires_at', '<=', param('now'))
      return store.statements.isShared ? expired.where('expires_at', '<=', serverNow) : expired
    })
    this.#noteExpired = prepareNoteExpired(store)
    this.#noteClosed = prepareNoteClosed(store)
    this.#removeClosed = prepare(store, (db, param: Param<Closed>) =>
      db
        .deleteFrom('binding')
        .where('extension_id', '=', param('extensionId'))
        .where('contact', '=', param('contact'))
        .where('node', '=', param('node'))
        .where('source_protocol', '=', param('protocol'))
        .where('source_address', '=', param('address'))
        .where('source_port', '=', param('port'))
        // Its phone may have the same port again.
        .where('registered_at', '<=', param('registeredAt')),
    )
  }

  /**
   * Removes a binding whose connection is closed, unless its phone has registered again since, here
   * or at another instance. A server of many phones may close all of their connections at once:
   * those of a moment are one write.
   */
  removeClosed(
    extensionId: number,
    { contact, holder, source, registeredAt }: Binding,
    now: number,
  ): void {
    this.#begins(extensionId)
    this.#closed.push({ extensionId, contact, node: holder, ...source, registeredAt, now })
    if (this.#closed.length === 1) this.#removeSoon(CLOSED_WAIT_MS)
  }

  #removeSoon(delayMs: number): void {
    this.#cancelRemoval = this.#deps.schedule(() => this.#removeWaiting(), delayMs)
  }

  #removeWaiting(): void {
    this.#cancelRemoval()
    const closed = this.#closed
    if (closed.length === 0) return
    this.#closed = []
    const over = (): void => {
      for (const { extensionId } of closed) this.#over(extensionId)
    }
    const run = async (): Promise<void> => {
      const keepsLost = this.#deps.keepsLost?.() === true
      for (const each of closed) {
        if (keepsLost) await this.#noteClosed.run(each)
        await this.#removeClosed.run(each)
      }
      for (const extensionId of new Set(closed.map((each) => each.extensionId)))
        await this.#notifyOthers(extensionId)
    }
    const refused = (): void => {
      this.#closed = [...closed, ...this.#closed]
      this.#removeSoon(CLOSED_RETRY_MS)
    }
    this.#queue.add({ run, done: over, refused })
  }

  /**
   * Every binding of some extensions that still exist, unless it has expired. The clock may have
   * been set back since it was written: none lives longer than from now on.
   */
  async loadOf(extensionIds: readonly number[], now: number): Promise<readonly StoredBinding[]> {
    const found: StoredBinding[] = []
    for await (const ids of inSlices(extensionIds)) {
      const query = this.#query(now).where('extension_id', 'in', ids)
      found.push(...(await all(this.#deps.store, query)).map((row) => storedOf(row, now)))
    }
    return found
  }

  /** Ids of all extensions that have bindings in ascending order, a slice after the other. */
  async *extensionIds(): AsyncGenerator<readonly number[]> {
    // Not distinct: that reads the whole table where a server has no statistics yet.
    const query = this.#deps.store.db
      .selectFrom('binding')
      .select('extension_id as id')
      .orderBy('extension_id')
      .limit(SLICE)
    const after = (id: number) => all(this.#deps.store, query.where('extension_id', '>', id))
    for await (const rows of slicesOf(after)) yield [...new Set(rows.map(({ id }) => id))]
  }

  /**
   * As `loadOf`, of all extensions from `first` to `last`. Ranges need no statistics to be read by
   * their indexes.
   */
  async loadBetween(first: number, last: number, now: number): Promise<StoredBinding[]> {
    const query = this.#query(now)
      .where('extension_id', '>=', first)
      .where('extension_id', '<=', last)
      .where('extension.id', '>=', first)
      .where('extension.id', '<=', last)
    return (await all(this.#deps.store, query)).map((row) => storedOf(row, now))
  }

  #query(now: number) {
    return this.#deps.store.db
      .selectFrom('binding')
      .innerJoin('extension', 'extension.id', 'binding.extension_id')
      .selectAll('binding')
      .select(['domain', 'extension', 'tenant_id', 'ha1_sha256'])
      .where('expires_at', '>', now)
      .orderBy('binding.id')
  }

  /** Resolves when the change is durable, or will not be. */
  write(change: BindingChange): Promise<WriteResult> {
    return this.#written(change.extensionId, () => this.#write(change), 'withdraw')
  }

  async #write({ extensionId, saved, refreshed, removed }: BindingChange): Promise<void> {
    for (const contact of removed) await this.#remove.run({ extensionId, contact })
    for (const binding of saved) await this.#save.run(valuesOf(extensionId, binding))
    let isChange = saved.length + removed.length > 0
    for (const binding of refreshed)
      if (!(await this.#saveRefresh(extensionId, binding))) isChange = true
    if (isChange) await this.#notifyOthers(extensionId)
  }

  /** False: it was not there any more, and is stored anew. */
  async #saveRefresh(extensionId: number, binding: Binding): Promise<boolean> {
    const { contact, cseq, registeredAt, expiresAt } = binding
    const values = { extensionId, contact, cseq, registeredAt, expiresAt }
    if ((await this.#refresh.run(values)) > 0) return true
    await this.#save.run(valuesOf(extensionId, binding))
    return false
  }

  /** Removes all bindings, or those of one instance, also when the write is late. */
  removeAll(extensionId: number, instance?: string): Promise<WriteResult> {
    const remove = async (): Promise<void> => {
      if (instance === undefined) await this.#removeAll.run({ extensionId })
      else await this.#removeOfInstance.run({ extensionId, node: instance })
      await this.#notifyOthers(extensionId)
    }
    return this.#written(extensionId, remove, 'keep')
  }

  /** Removes one binding, of any instance, also when the write is late. */
  remove(extensionId: number, contact: string): Promise<WriteResult> {
    const remove = async (): Promise<void> => {
      await this.#remove.run({ extensionId, contact })
      await this.#notifyOthers(extensionId)
    }
    return this.#written(extensionId, remove, 'keep')
  }

  removeExpired(now: number): void {
    this.#queue.add({
      run: async () => {
        if (this.#deps.keepsLost?.() === true) await this.#noteExpired.run({ now })
        await this.#removeExpired.run({ now })
      },
    })
  }

  async #notifyOthers(extensionId: number): Promise<void> {
    const { store, instance } = this.#deps
    await store.statements.notify(BINDING_CHANNEL, `${instance} ${extensionId}`)
  }

  #written(
    extensionId: number,
    run: () => Promise<void>,
    whenLate: 'withdraw' | 'keep',
  ): Promise<WriteResult> {
    this.#begins(extensionId)
    let resolve: (written: WriteResult) => void = () => undefined
    const promise = new Promise<WriteResult>((settled) => {
      resolve = settled
    })
    let isOver = false
    const settle = (written: WriteResult): void => {
      cancel()
      resolve(written)
      if (!isOver) this.#over(extensionId)
      isOver = true
    }
    let withdraw = (): void => undefined
    const cancel = this.#deps.schedule(() => {
      resolve('late')
      if (whenLate === 'keep') return
      withdraw()
      settle('late')
    }, WRITE_MS)
    withdraw = this.#queue.add({
      run,
      done: () => settle('stored'),
      refused: (error) => settle(error instanceof QueueFull ? 'late' : 'gone'),
    })
    return promise
  }

  #begins(extensionId: number): void {
    this.#waiting.set(extensionId, (this.#waiting.get(extensionId) ?? 0) + 1)
  }

  #over(extensionId: number): void {
    const count = (this.#waiting.get(extensionId) ?? 1) - 1
    if (count > 0) this.#waiting.set(extensionId, count)
    else this.#waiting.delete(extensionId)
  }

  /** A write of this extension is not stored yet. */
  isWriting(extensionId: number): boolean {
    return this.#waiting.has(extensionId)
  }

  get isOverloaded(): boolean {
    return this.#queue.waiting >= MAX_WAITING || this.#deps.store.storage.problem !== undefined
  }

  /** Writes what waits now, unless the database has refused it lately and is being given time. */
  flushUnlessFailing(): void {
    if (this.#queue.stats().failures === 0) void this.#queue.flush()
  }

  /** Writes what waits. Resolves with false when the database did not take it. */
  flush(): Promise<boolean> {
    this.#removeWaiting()
    return this.#queue.flush()
  }
}

/**
 * The clock of an instance may be ahead of the others: what they hold is there for as long as the
 * server says.
 */
const serverNow = sql<number>`extract(epoch FROM clock_timestamp()) * 1000`

const lostColumns = [
  'tenant_id',
  'extension_id',
  'domain',
  'extension',
  'contact',
  'reason',
  'at',
] as const

const lostBindings = (db: Store['db']) =>
  db
    .selectFrom('binding')
    .innerJoin('extension', 'extension.id', 'binding.extension_id')
    .select(['extension.tenant_id', 'binding.extension_id', 'extension.domain'])
    .select(['extension.extension', 'binding.contact'])

/** Keeps what is removed next, so that webhooks are told of it. */
const prepareNoteExpired = (store: Store) =>
  prepare(store, (db, param: Param<{ now: number }>) => {
    const expired = lostBindings(db)
      .select([sql.lit('expired').as('reason'), 'binding.expires_at'])
      .where('binding.expires_at', '<=', param('now'))
    const shown = store.statements.isShared
      ? expired.where('binding.expires_at', '<=', serverNow)
      : expired
    return db.insertInto('lost_registration').columns(lostColumns).expression(shown)
  })

const prepareNoteClosed = (store: Store) =>
  prepare(store, (db, param: Param<Closed & { now: number }>) =>
    db
      .insertInto('lost_registration')
      .columns(lostColumns)
      .expression(
        lostBindings(db)
          .select([
            sql.lit('connection_closed').as('reason'),
            sql<number>`CAST(${param('now')} AS bigint)`.as('lost_at'),
          ])
          .where('extension_id', '=', param('extensionId'))
          .where('contact', '=', param('contact'))
          .where('node', '=', param('node'))
          .where('source_protocol', '=', param('protocol'))
          .where('source_address', '=', param('address'))
          .where('source_port', '=', param('port'))
          .where('registered_at', '<=', param('registeredAt')),
      ),
  )

const prepareRefresh = (store: Store) =>
  prepare(store, (db, param: Param<Refresh>) =>
    db
      .updateTable('binding')
      .set({
        cseq: param('cseq'),
        registered_at: param('registeredAt'),
        expires_at: param('expiresAt'),
      })
      .where('extension_id', '=', param('extensionId'))
      .where('contact', '=', param('contact')),
  )

const prepareSave = (store: Store) =>
  prepare(store, (db, param: Param<Values>) =>
    db
      .insertInto('binding')
      .values({
        extension_id: param('extensionId'),
        contact: param('contact'),
        instance: param('instance'),
        reg_id: param('regId'),
        q: param('q'),
        call_id: param('callId'),
        cseq: param('cseq'),
        path: param('path'),
        user_agent: param('userAgent'),
        source_protocol: param('protocol'),
        source_address: param('address'),
        source_port: param('port'),
        node: param('node'),
        registered_at: param('registeredAt'),
        expires_at: param('expiresAt'),
      })
      .onConflict((conflict) =>
        conflict.columns(['extension_id', 'contact']).doUpdateSet((row) => ({
          instance: row.ref('excluded.instance'),
          reg_id: row.ref('excluded.reg_id'),
          q: row.ref('excluded.q'),
          call_id: row.ref('excluded.call_id'),
          cseq: row.ref('excluded.cseq'),
          path: row.ref('excluded.path'),
          user_agent: row.ref('excluded.user_agent'),
          source_protocol: row.ref('excluded.source_protocol'),
          source_address: row.ref('excluded.source_address'),
          source_port: row.ref('excluded.source_port'),
          node: row.ref('excluded.node'),
          registered_at: row.ref('excluded.registered_at'),
          expires_at: row.ref('excluded.expires_at'),
        })),
      ),
  )

function valuesOf(extensionId: number, binding: Binding): Values {
  const { contact, instance, regId, q, callId, cseq, userAgent, source, holder } = binding
  const { registeredAt, expiresAt } = binding
  return {
    extensionId,
    contact,
    instance,
    regId,
    q,
    callId,
    cseq,
    userAgent,
    node: holder,
    path: JSON.stringify(binding.path),
    registeredAt,
    expiresAt,
    ...source,
  }
}

const storedOf = (
  row: Selectable<BindingTable> & {
    readonly domain: string
    readonly extension: string
    readonly tenant_id: number
    readonly ha1_sha256: string
  },
  now: number,
): StoredBinding => ({
  domain: row.domain,
  extension: row.extension,
  extensionId: row.extension_id,
  tenantId: row.tenant_id,
  secret: row.ha1_sha256,
  binding: {
    contact: row.contact,
    instance: row.instance,
    regId: row.reg_id,
    q: row.q,
    callId: row.call_id,
    cseq: row.cseq,
    path: JSON.parse(row.path) as string[],
    userAgent: row.user_agent,
    source: {
      protocol: row.source_protocol,
      address: row.source_address,
      port: row.source_port,
    },
    holder: row.node,
    registeredAt: row.registered_at,
    expiresAt: Math.min(row.expires_at, now + bindingLimits.maxSeconds * 1_000),
  },
})
