/**
 * Shares of the one process of an SQLite database: nobody else has any, and the use outlives a
 * restart.
 */
import type { Store } from '../../schema/storage/store.ts'
import { execute } from '../../schema/sql/query.ts'
import type { ShareTable } from '../../schema/tables/installation.ts'
import type { ShareAnswer, ShareRequest, ShareStore } from './share-rows.ts'

export class LocalRows implements ShareStore {
  readonly #store: Store
  readonly #kind: ShareTable['kind']

  constructor(store: Store, kind: ShareTable['kind']) {
    this.#store = store
    this.#kind = kind
  }

  async take(requests: readonly ShareRequest[]): Promise<readonly ShareAnswer[]> {
    const answers: ShareAnswer[] = []
    for (const { resource, limit, used, base, extra, version: before } of requests) {
      const amount = Math.max(used, Math.min(limit, base + extra))
      const version = before + 1
      const row = { kind: this.#kind, resource, node: '', process: '', amount, request: 0, version }
      const key = ['kind', 'resource', 'node', 'process'] as const
      const insert = this.#store.db
        .insertInto('share')
        .values(row)
        .onConflict((conflict) => conflict.columns(key).doUpdateSet({ amount, version }))
      await execute(this.#store, insert)
      answers.push({ resource, amount, version, elsewhere: 0, isOfDay: false })
    }
    return answers
  }

  async forgetUnused(): Promise<void> {
    const { db } = this.#store
    const unused = db.deleteFrom('share').where('kind', '=', this.#kind).where('amount', '=', 0)
    await execute(this.#store, unused)
  }

  spend(): Promise<undefined> {
    return Promise.resolve(undefined)
  }

  isServerThere(): Promise<boolean> {
    return Promise.resolve(true)
  }

  locked(): Promise<ReadonlySet<string>> {
    return Promise.resolve(new Set())
  }

  freeOthersOfInstance(): Promise<void> {
    return Promise.resolve()
  }

  sweep(): Promise<void> {
    return Promise.resolve()
  }

  release(): Promise<void> {
    return Promise.resolve()
  }
}
