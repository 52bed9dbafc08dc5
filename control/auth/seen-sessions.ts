/** Sessions of users as they see them: since when, from where, and by which program. */
import { sql } from 'kysely'
import { MINUTE_MS } from '../../schema/clock.ts'
import { recentlyUsed } from '../../schema/recently-used.ts'
import type { Store } from '../../schema/storage/store.ts'
import { all, execute, first, transaction } from '../../schema/sql/query.ts'
import { isUnstored } from '../../schema/storage/storage.ts'
import type { UserSessionTable } from '../../schema/tables/access.ts'
import type { Selectable } from 'kysely'

export type SeenSession = Selectable<UserSessionTable>

/** Where a session begins. */
export interface SessionOrigin {
  readonly address: string
  readonly userAgent: string | undefined
  /** The provider that has vouched for the user; absent: a password has. */
  readonly identityProviderId?: number
}

/** A further session of a user ends the oldest one. */
const MAX_SESSIONS = 100
const MAX_AGENT_LENGTH = 200
/** Sessions whose last use is remembered until the next flush. */
const MAX_NOTED = 20_000
/** The last use is stored once in this time. */
const NOTE_EVERY_MS = MINUTE_MS
/** Longest time that a session is remembered as ended: no session lasts longer. */
const ENDED_MS = 12 * 60 * MINUTE_MS

interface Use {
  readonly at: number
  readonly address: string
}

export class SeenSessions {
  readonly #store: Store
  #noted = new Map<string, Use>()
  /** When the last use of a session was noted. */
  readonly #notedAt = recentlyUsed<string, number>(MAX_NOTED)

  constructor(store: Store) {
    this.#store = store
  }

  async begin(
    session: Pick<SeenSession, 'jti' | 'user_id' | 'password_mark' | 'expires_at'>,
    { address, userAgent, identityProviderId }: SessionOrigin,
    now: number,
  ): Promise<void> {
    const { db } = this.#store
    const row = {
      ...session,
      begun_at: now,
      last_seen_at: now,
      address,
      user_agent: userAgent?.slice(0, MAX_AGENT_LENGTH) ?? null,
      identity_provider_id: identityProviderId ?? null,
    }
    await transaction(this.#store, async () => {
      await execute(this.#store, db.deleteFrom('user_session').where('expires_at', '<=', now))
      await execute(this.#store, db.insertInto('user_session').values(row))
      const oldest = db
        .selectFrom('user_session')
        .select('jti')
        .where('user_id', '=', session.user_id)
        .orderBy('begun_at', 'desc')
        .orderBy('jti')
        .offset(MAX_SESSIONS)
        .limit(MAX_SESSIONS)
      await this.#end(
        (await all(this.#store, oldest)).map(({ jti }) => jti),
        now,
      )
    })
  }

  /** A session goes on with a token that expires later. */
  async extend(jti: string, expiresAt: number): Promise<void> {
    const update = this.#store.db.updateTable('user_session').set({ expires_at: expiresAt })
    try {
      await execute(this.#store, update.where('jti', '=', jti))
    } catch (error) {
      // The session goes on while nothing can be stored.
      if (!isUnstored(error)) throw error
    }
  }

  /** Remembers that a session is used; `flush` stores it. */
  note(jti: string, address: string, now: number): void {
    if (now < (this.#notedAt.get(jti) ?? -Infinity) + NOTE_EVERY_MS) return
    this.#notedAt.set(jti, now)
    if (this.#noted.size < MAX_NOTED) this.#noted.set(jti, { at: now, address })
  }

  /** Called periodically. What cannot be stored is forgotten: the next use is noted again. */
  async flush(): Promise<void> {
    const noted = this.#noted
    if (noted.size === 0) return
    this.#noted = new Map()
    const { db } = this.#store
    try {
      await transaction(this.#store, async () => {
        for (const [jti, { at, address }] of noted) {
          const update = db.updateTable('user_session').set({ last_seen_at: at, address })
          const older = update.where('jti', '=', jti).where('last_seen_at', '<', at)
          await execute(this.#store, older)
        }
      })
    } catch (error) {
      if (!isUnstored(error)) throw error
    }
  }

  /** Newest first. `passwordMark`: sessions of an earlier password have ended. */
  list(userId: number, passwordMark: string, now: number): Promise<SeenSession[]> {
    const query = this.#store.db
      .selectFrom('user_session')
      .selectAll()
      .where('user_id', '=', userId)
      .where('password_mark', '=', passwordMark)
      .where('expires_at', '>', now)
    return all(this.#store, query.orderBy('begun_at', 'desc').orderBy('jti').limit(MAX_SESSIONS))
  }

  /** Ends one session of a user; false: the user has no such session. */
  end(userId: number, jti: string, now: number): Promise<boolean> {
    const query = this.#store.db
      .selectFrom('user_session')
      .select('jti')
      .where('user_id', '=', userId)
      .where('jti', '=', jti)
      .where('expires_at', '>', now)
    return transaction(this.#store, async () => {
      if ((await first(this.#store, query)) === undefined) return false
      await this.#end([jti], now)
      return true
    })
  }

  /** Ends the sessions of a user, but for `kept`. Resolves with their number. */
  endAll(userId: number, kept: string | undefined, now: number): Promise<number> {
    const query = this.#store.db
      .selectFrom('user_session')
      .select('jti')
      .where('user_id', '=', userId)
      .where('expires_at', '>', now)
      .$if(kept !== undefined, (rows) => rows.where('jti', '!=', kept ?? ''))
    return transaction(this.#store, async () => {
      const ids = (await all(this.#store, query)).map(({ jti }) => jti)
      await this.#end(ids, now)
      return ids.length
    })
  }

  async #end(ids: readonly string[], now: number): Promise<void> {
    if (ids.length === 0) return
    await deny(
      this.#store,
      ids.map((jti) => ({ jti, expires_at: now + ENDED_MS })),
    )
    const removal = this.#store.db.deleteFrom('user_session').where('jti', 'in', ids)
    await execute(this.#store, removal)
  }
}

async function deny(
  store: Store,
  ended: readonly { readonly jti: string; readonly expires_at: number }[],
): Promise<void> {
  const insert = store.db.insertInto('jwt_denylist').values(ended)
  await execute(
    store,
    insert.onConflict((conflict) => conflict.doNothing()),
  )
}

/** Ends the sessions for which a provider has vouched. */
export async function endSessionsOf(store: Store, providerId: number, now: number): Promise<void> {
  const { db } = store
  const sessions = db.selectFrom('user_session').where('identity_provider_id', '=', providerId)
  const ended = sessions.select((row) => [
    row.ref('jti').as('jti'),
    sql<number>`${now + ENDED_MS}`.as('expires_at'),
  ])
  const denial = db.insertInto('jwt_denylist').columns(['jti', 'expires_at']).expression(ended)
  await execute(
    store,
    denial.onConflict((conflict) => conflict.doNothing()),
  )
  const removal = db.deleteFrom('user_session').where('identity_provider_id', '=', providerId)
  await execute(store, removal)
}
