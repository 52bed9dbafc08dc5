/**
 * Sessions of the protocols of 2025 (Streamable HTTP, Session Management). A session is only what
 * its client has subscribed to: each request is answered for itself, on any instance, whether it
 * names a session or not.
 */
import type { Store } from '../../../schema/storage/store.ts'
import { all, execute, first } from '../../../schema/sql/query.ts'
import { isUnstored } from '../../../schema/storage/storage.ts'
import type { Principal } from '../../auth/principal.ts'
import { newUuid, type Platform } from '../../http/platform.ts'

/** A session without a request and without a stream ends after this time. */
const IDLE_MS = 30 * 60_000
/** At the limit, a session that was idle for this time is replaced. */
const REPLACED_AFTER_MS = 5 * 60_000
/** A use is written once in this time. */
const WRITTEN_EVERY_MS = 60_000

const MAX_SESSIONS = 1_024
const MAX_OF_TENANT = 256
const MAX_OF_CREDENTIAL = 16

/** A session is bound to its credential, and to the tenant in which that acts. */
type Owner = Pick<Principal, 'actor' | 'tenantId'>

interface Subscription {
  readonly uri: string
  /** The last version that the client was notified of. */
  readonly seen: string
}

export class McpSessions {
  readonly #store: Store
  readonly #now: () => number
  readonly #randomBytes: Platform['randomBytes']

  constructor({ store, now, randomBytes }: Pick<Platform, 'store' | 'now' | 'randomBytes'>) {
    this.#store = store
    this.#now = now
    this.#randomBytes = randomBytes
  }

  /**
   * Undefined: the limit is reached, or the database cannot be written. The client then works
   * without a session.
   */
  async open({ actor, tenantId }: Owner): Promise<string | undefined> {
    const session_id = newUuid(this.#randomBytes)
    try {
      await this.#forgetIdle()
      if (!(await this.#hasRoom({ actor, tenantId }))) return undefined
      const row = { session_id, actor, tenant_id: tenantId, reader: null, used_at: this.#now() }
      await execute(this.#store, this.#store.db.insertInto('mcp_session').values(row))
      return session_id
    } catch (error) {
      if (!isUnstored(error)) throw error
      return undefined
    }
  }

  /** Whether the session is open and of this owner. Notes its use. */
  async use(id: string, { actor, tenantId }: Owner): Promise<boolean> {
    const row = await this.#find(id)
    if (row === undefined || row.actor !== actor || row.tenant_id !== tenantId) return false
    await this.#note(id, row.used_at)
    return true
  }

  async end(id: string): Promise<void> {
    const { db } = this.#store
    await execute(this.#store, db.deleteFrom('mcp_session').where('session_id', '=', id))
  }

  /**
   * The stream of this name takes the place of any other one of the session, on whichever instance
   * that is.
   */
  async read(id: string, reader: string): Promise<void> {
    const update = this.#store.db.updateTable('mcp_session').set({ reader })
    await execute(this.#store, update.where('session_id', '=', id))
  }

  /** Undefined: the session has ended, or another stream reads it. */
  async readBy(id: string, reader: string): Promise<readonly Subscription[] | undefined> {
    const row = await this.#find(id)
    if (row?.reader !== reader) return undefined
    await this.#note(id, row.used_at)
    const { db } = this.#store
    const subscriptions = db.selectFrom('mcp_subscription').select(['uri', 'seen'])
    return all(this.#store, subscriptions.where('session_id', '=', id))
  }

  async subscribe(session_id: string, { uri, seen }: Subscription): Promise<void> {
    const insert = this.#store.db.insertInto('mcp_subscription').values({ session_id, uri, seen })
    await execute(
      this.#store,
      insert.onConflict((row) => row.columns(['session_id', 'uri']).doNothing()),
    )
  }

  async noteSeen(session_id: string, { uri, seen }: Subscription): Promise<void> {
    const update = this.#store.db.updateTable('mcp_subscription').set({ seen })
    await execute(this.#store, update.where('session_id', '=', session_id).where('uri', '=', uri))
  }

  async unsubscribe(session_id: string, uri: string): Promise<void> {
    const rows = this.#store.db.deleteFrom('mcp_subscription').where('uri', '=', uri)
    await execute(this.#store, rows.where('session_id', '=', session_id))
  }

  #find(id: string) {
    const sessions = this.#store.db.selectFrom('mcp_session')
    const found = sessions.select(['actor', 'tenant_id', 'reader', 'used_at'])
    return first(
      this.#store,
      found.where('session_id', '=', id).where('used_at', '>', this.#now() - IDLE_MS),
    )
  }

  /** The session goes on where this cannot be written. */
  async #note(id: string, usedAt: number): Promise<void> {
    if (this.#now() - usedAt < WRITTEN_EVERY_MS) return
    const update = this.#store.db.updateTable('mcp_session').set({ used_at: this.#now() })
    try {
      await execute(this.#store, update.where('session_id', '=', id))
    } catch (error) {
      if (!isUnstored(error)) throw error
    }
  }

  async #forgetIdle(): Promise<void> {
    const rows = this.#store.db.deleteFrom('mcp_session')
    await execute(this.#store, rows.where('used_at', '<=', this.#now() - IDLE_MS))
  }

  async #hasRoom({ actor, tenantId }: Owner): Promise<boolean> {
    const sessions = this.#store.db.selectFrom('mcp_session').select(['session_id', 'used_at'])
    const ofActor = sessions.where('actor', '=', actor)
    const ofTenant = sessions.where('tenant_id', '=', tenantId)
    const groups = [
      { rows: ofActor, max: MAX_OF_CREDENTIAL },
      ...(tenantId === null ? [] : [{ rows: ofTenant, max: MAX_OF_TENANT }]),
      { rows: sessions, max: MAX_SESSIONS },
    ]
    for (const { rows, max } of groups) {
      const oldest = await all(this.#store, rows.orderBy('used_at').limit(max))
      const [replaced] = oldest
      if (replaced === undefined || oldest.length < max) continue
      if (this.#now() - replaced.used_at < REPLACED_AFTER_MS) return false
      await this.end(replaced.session_id)
    }
    return true
  }
}
