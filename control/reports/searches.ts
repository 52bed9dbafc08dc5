/**
 * Long searches in call records: one of a process works at a time, however many are asked for, so
 * that other questions to the thread that reads wait for one of their statements at most.
 */
import type { Store } from '../../schema/storage/store.ts'
import { ApiError } from '../http/api-error.ts'

/** Under way or waiting. */
const MAX_IN_ALL = 8
/** Searches at a time, of one tenant or of the platform. */
const MAX_OF_TENANT = 2
const MAX_OF_PLATFORM = 4

class Searches {
  readonly #open: (number | null)[] = []
  #last: Promise<unknown> = Promise.resolve()

  async run<T>(tenantId: number | null, work: () => Promise<T>): Promise<T> {
    const own = this.#open.filter((each) => each === tenantId).length
    const most = tenantId === null ? MAX_OF_PLATFORM : MAX_OF_TENANT
    if (own >= most || this.#open.length >= MAX_IN_ALL) throw tooManySearches()
    this.#open.push(tenantId)
    const found = this.#last.then(work)
    this.#last = found.catch(() => undefined)
    try {
      return await found
    } finally {
      this.#open.splice(this.#open.indexOf(tenantId), 1)
    }
  }
}

const searchesOf = new WeakMap<Store, Searches>()

/**
 * Runs `work` after the searches before it. Not inside another search.
 *
 * @throws {ApiError} 503: too many are waiting.
 */
export function inTurn<T>(
  { store, tenantId }: { readonly store: Store; readonly tenantId: number | null },
  work: () => Promise<T>,
): Promise<T> {
  const searches = searchesOf.get(store) ?? new Searches()
  searchesOf.set(store, searches)
  return searches.run(tenantId, work)
}

export const tooManySearches = (): ApiError =>
  new ApiError(
    503,
    'too_many_searches',
    'Too many searches are in progress: wait for the answer of one before you ask for the next',
    { headers: { 'Retry-After': '10' } },
  )
