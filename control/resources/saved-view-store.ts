/** Views that users keep by a name. Each belongs to one user, and nobody else finds it. */
import type { Store } from '../../schema/storage/store.ts'
import { all, execute, first, transaction } from '../../schema/sql/query.ts'

/** The screens of the console of which views are kept. */
export const viewedScreens = ['calls'] as const

export interface ViewName {
  readonly screen: (typeof viewedScreens)[number]
  readonly name: string
}

export interface SavedView extends ViewName {
  /** Query of the address, without `?`. */
  readonly query: string
}

/** The most views that one user keeps. */
export const MAX_VIEWS = 50

const shown = ['screen', 'name', 'query'] as const

export class SavedViewStore {
  readonly #store: Store
  readonly #now: () => number

  constructor(store: Store, now: () => number) {
    this.#store = store
    this.#now = now
  }

  /** By their names. */
  list(userId: number): Promise<SavedView[]> {
    return all(this.#store, this.#of(userId).orderBy('screen').orderBy('name').limit(MAX_VIEWS))
  }

  /** Keeps it, in place of one of the same name. `full`: there are as many as may be. */
  save(
    userId: number,
    view: SavedView,
  ): Promise<{ readonly before: SavedView | undefined } | 'full'> {
    const { screen, name, query } = view
    return transaction(this.#store, async () => {
      const before = await first(this.#store, this.#one(userId, view))
      const kept = await all(this.#store, this.#of(userId).limit(MAX_VIEWS))
      if (before === undefined && kept.length >= MAX_VIEWS) return 'full'
      const row = { user_id: userId, screen, name, query, updated_at: this.#now() }
      const { query: written, updated_at } = row
      const insert = this.#store.db
        .insertInto('saved_view')
        .values(row)
        .onConflict((conflict) =>
          conflict
            .columns(['user_id', 'screen', 'name'])
            .doUpdateSet({ query: written, updated_at }),
        )
      await execute(this.#store, insert)
      return { before }
    })
  }

  /** Undefined: there is none of this name. */
  remove(userId: number, view: ViewName): Promise<SavedView | undefined> {
    return transaction(this.#store, async () => {
      const removed = await first(this.#store, this.#one(userId, view))
      const removal = this.#store.db
        .deleteFrom('saved_view')
        .where('user_id', '=', userId)
        .where('screen', '=', view.screen)
        .where('name', '=', view.name)
      await execute(this.#store, removal)
      return removed
    })
  }

  #of(userId: number) {
    return this.#store.db.selectFrom('saved_view').select(shown).where('user_id', '=', userId)
  }

  #one(userId: number, { screen, name }: ViewName) {
    return this.#of(userId).where('screen', '=', screen).where('name', '=', name)
  }
}
