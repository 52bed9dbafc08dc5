/**
 * Bindings in the database. A REGISTER is answered after its group is committed, so that a restart
 * loses none that a phone has been told of.
 */
import type { Schedule } from '../../schema/clock.ts'
import { compile, type Statement } from '../../schema/sql/compiled.ts'
import { GroupCommit } from '../../schema/group-commit.ts'
import type { LocalStore } from '../../schema/open.ts'
import { all } from '../../schema/sql/sync-query.ts'
import { type Binding, bindingLimits } from './bindings.ts'

export interface BindingStoreDeps {
  readonly store: LocalStore
  readonly schedule: Schedule
  readonly onFailure: (error: unknown, waiting: number) => void
}

/** What a REGISTER changed. */
export interface BindingChange {
  readonly extensionId: number
  readonly saved: readonly Binding[]
  /** Stored already; only number and times have changed. */
  readonly refreshed: readonly Binding[]
  /** Contact URIs. */
  readonly removed: readonly string[]
}

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
  registeredAt: number
  expiresAt: number
}

type Refresh = Pick<Values, 'extensionId' | 'contact' | 'cseq' | 'registeredAt' | 'expiresAt'>

export class BindingStore {
  readonly #store: LocalStore
  readonly #group: GroupCommit
  readonly #save: Statement<Values, unknown>
  readonly #refresh: Statement<Refresh, unknown>
  readonly #remove: Statement<{ extensionId: number; contact: string }, unknown>
  readonly #removeAll: Statement<{ extensionId: number }, unknown>
  readonly #removeExpired: Statement<{ now: number }, unknown>

  constructor({ store, schedule, onFailure }: BindingStoreDeps) {
    this.#store = store
    this.#group = new GroupCommit({ store, schedule, onFailure })
    this.#save = compileSave(store)
    this.#refresh = compileRefresh(store)
    this.#remove = compile(store, (db, param) =>
      db
        .deleteFrom('binding')
        .where('extension_id', '=', param('extensionId'))
        .where('contact', '=', param('contact')),
    )
    this.#removeAll = compile(store, (db, param) =>
      db.deleteFrom('binding').where('extension_id', '=', param('extensionId')),
    )
    this.#removeExpired = compile(store, (db, param) =>
      db.deleteFrom('binding').where('expires_at', '<=', param('now')),
    )
  }

  /**
   * Every binding of an extension that still exists and has not expired. The clock may have been set back
   * since it was written: none lives longer than from now on.
   */
  load(now: number): readonly StoredBinding[] {
    const query = this.#store.db
      .selectFrom('binding')
      .innerJoin('extension', 'extension.id', 'binding.extension_id')
      .selectAll('binding')
      .select(['domain', 'extension', 'tenant_id', 'ha1_sha256'])
      .where('expires_at', '>', now)
      .orderBy('binding.id')
    return all(this.#store, query).map((row) => ({
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
        registeredAt: row.registered_at,
        expiresAt: Math.min(row.expires_at, now + bindingLimits.maxSeconds * 1_000),
      },
    }))
  }

  /** Resolves when the change is durable: false when its extension is gone. */
  write({ extensionId, saved, refreshed, removed }: BindingChange): Promise<boolean> {
    return new Promise((resolve) => {
      this.#group.add({
        run: () => {
          for (const contact of removed) this.#remove.run({ extensionId, contact })
          for (const binding of saved) this.#save.run(valuesOf(extensionId, binding))
          for (const binding of refreshed) this.#saveRefresh(extensionId, binding)
        },
        done: () => resolve(true),
        refused: () => resolve(false),
      })
    })
  }

  #saveRefresh(extensionId: number, binding: Binding): void {
    const { contact, cseq, registeredAt, expiresAt } = binding
    const { changes } = this.#refresh.run({ extensionId, contact, cseq, registeredAt, expiresAt })
    if (changes === 0) this.#save.run(valuesOf(extensionId, binding))
  }

  removeAll(extensionId: number): void {
    this.#group.add({ run: () => this.#removeAll.run({ extensionId }) })
  }

  removeExpired(now: number): void {
    this.#group.add({ run: () => this.#removeExpired.run({ now }) })
  }

  get isOverloaded(): boolean {
    return this.#group.waiting > MAX_WAITING || this.#store.storage.problem !== undefined
  }

  /** Writes what waits now, unless the database has refused it lately and is being given time. */
  flushUnlessFailing(): void {
    if (this.#group.stats().failures === 0) this.#group.flush()
  }

  /** Writes what waits. False: the database did not take it. */
  flush(): boolean {
    return this.#group.flush()
  }
}

function compileRefresh(store: LocalStore): Statement<Refresh, unknown> {
  return compile(store, (db, param) =>
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
}

function compileSave(store: LocalStore): Statement<Values, unknown> {
  return compile(store, (db, param) =>
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
          registered_at: row.ref('excluded.registered_at'),
          expires_at: row.ref('excluded.expires_at'),
        })),
      ),
  )
}

function valuesOf(extensionId: number, binding: Binding): Values {
  const { contact, instance, regId, q, callId, cseq, userAgent, source } = binding
  const { registeredAt, expiresAt } = binding
  return {
    ...{ extensionId, contact, instance, regId, q, callId, cseq, userAgent },
    ...{ path: JSON.stringify(binding.path), registeredAt, expiresAt, ...source },
  }
}
