/** A database on a server that several processes share: each `open` is one of them. */
import { onTestFinished } from 'vitest'
import { type Store, openDatabase } from '../../schema/open.ts'
import { migrate } from '../../schema/migrate.ts'
import { openStore, type ServerStore } from '../../schema/postgres/open.ts'
import type { Row, RowsText } from '../../schema/sql/statements.ts'
import { turnOfEventLoop } from './waiting.ts'
import { freshDatabase, hasPostgres } from './postgres.ts'

const secretKey = Buffer.alloc(32, 7).toString('base64')

export async function sharedDatabase(): Promise<{
  readonly url: string
  readonly open: () => Promise<ServerStore>
}> {
  const { url, drop } = await freshDatabase()
  onTestFinished(drop)
  return {
    url,
    async open() {
      const store = await openStore(url, { now: 0, connections: 4, secretKey, keyFile: '/none' })
      onTestFinished(() => store.close())
      return store
    },
  }
}

/** An empty SQLite database in memory. */
export function localDatabase() {
  const store = openDatabase(':memory:')
  migrate(store.sqlite, 0)
  onTestFinished(() => store.close())
  return store
}

/** What a test of both databases is run with: a fresh store of each kind. */
export const eachDatabase: readonly {
  readonly database: string
  readonly open: () => Promise<Store>
}[] = [
  { database: 'SQLite', open: async () => localDatabase() },
  ...(hasPostgres
    ? [{ database: 'PostgreSQL', open: async () => (await sharedDatabase()).open() }]
    : []),
]

/** A process that ManualTime moves: `settled` resolves once no statement of it runs, and none follows. */
export function settling<S extends Store>(
  store: S,
): { readonly store: S; readonly settled: () => Promise<void> } {
  let running = 0
  let count = 0
  const counted = async <T>(work: () => Promise<T>): Promise<T> => {
    running += 1
    count += 1
    try {
      return await work()
    } finally {
      running -= 1
    }
  }
  const { statements } = store
  const prepare: Store['statements']['prepare'] = <R>(sql: string) => {
    const statement = statements.prepare<R>(sql)
    return {
      all: (values) => counted(() => statement.all(values)),
      get: (values) => counted(() => statement.get(values)),
      arrays: (values) => counted(() => statement.arrays(values)),
      run: (values) => counted(() => statement.run(values)),
    }
  }
  const made: Store['statements'] = {
    prepare,
    transaction: <T>(work: () => Promise<T>) => counted(() => statements.transaction(work)),
    lockedTransaction: <T>(work: () => Promise<T>) =>
      counted(() => statements.lockedTransaction(work)),
    afterCommit: (work: () => void) => statements.afterCommit(work),
    notify: (...notice) => counted(() => statements.notify(...notice)),
    prepareRows: <R>(text: RowsText) => {
      const run = statements.prepareRows<R>(text)
      return (rows: readonly Row[]) => counted(() => run(rows))
    },
    isShared: statements.isShared,
  }
  return {
    store: { ...store, statements: made },
    async settled() {
      const isQuiet = (seen: number): boolean => seen === count && running === 0
      for (let seen = -1; !isQuiet(seen);) {
        seen = count
        for (let turn = 0; turn < 3; turn += 1) await turnOfEventLoop()
      }
    },
  }
}
