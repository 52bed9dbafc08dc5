/** A database with many application keys, issued as `tollgate key create` does. */
import { newKeyBody } from '../../../control/auth/app-key.ts'
import { randomBytes } from 'node:crypto'
import { consoleGrantor, issueKey } from '../../../control/auth/issue-key.ts'
import { KeyStore } from '../../../control/auth/key-store.ts'
import { migrate } from '../../../schema/migrate.ts'
import { openDatabase } from '../../../schema/open.ts'
import { transaction } from '../../../schema/sql/query.ts'

/** Answers their tokens. No bench meets their limit, whose window is kept as exactly as any other. */
export async function issueKeys(path: string, count: number): Promise<readonly string[]> {
  const store = openDatabase(path)
  try {
    migrate(store.sqlite, Date.now())
    const keys = new KeyStore(store)
    const mint = { store, keys, now: Date.now, randomBytes }
    const issue = async (index: number): Promise<string> => {
      const body = newKeyBody.parse({
        name: `bench ${index}`,
        scopes: ['*'],
        rate_limit_rpm: 100_000,
      })
      return (await issueKey(mint, body, consoleGrantor)).token
    }
    return await transaction(store, async () => {
      const tokens: string[] = []
      for (let index = 0; index < count; index += 1) tokens.push(await issue(index))
      return tokens
    })
  } finally {
    store.close()
  }
}
