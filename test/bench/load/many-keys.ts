/** A database with many application keys, issued as `tollgate key create` does. */
import { randomBytes } from 'node:crypto'
import { consoleGrantor, issueKey } from '../../../control/auth/keys/issue-key.ts'
import { newKeyBody } from '../../../control/auth/keys/key-bodies.ts'
import { KeyCache } from '../../../control/auth/keys/key-cache.ts'
import { KeyStore } from '../../../control/auth/keys/key-store.ts'
import { migrate } from '../../../schema/migrate.ts'
import { openDatabase } from '../../../schema/open.ts'
import { transaction } from '../../../schema/sql/sync-query.ts'

/** Answers their tokens. No bench meets their limit, whose window is kept as exactly as any other. */
export function issueKeys(path: string, count: number): readonly string[] {
  const store = openDatabase(path)
  try {
    migrate(store.sqlite, Date.now())
    const keys = new KeyStore(store, new KeyCache())
    const mint = { store, keys, now: Date.now, randomBytes }
    const issue = (index: number): string => {
      const body = newKeyBody.parse({
        name: `bench ${index}`,
        scopes: ['*'],
        rate_limit_rpm: 100_000,
      })
      return issueKey(mint, body, consoleGrantor).token
    }
    return transaction(store, () => Array.from({ length: count }, (_, index) => issue(index)))
  } finally {
    store.close()
  }
}
