/** Whether a database server is away for a while: it restarts, fails over, or is not reached. */
import { DatabaseRefused } from '../refusal.ts'
import { DatabaseUnavailable, failureOf, isUnreadableFile } from '../sql/failure.ts'
import { PostgresStatements } from '../sql/postgres-statements.ts'

/** Longer than a round trip through any network that a node can work with. */
const ANSWER_MS = 3_000

/** The same may succeed later. False: a person has to mend something first, such as a wrong password. */
export function isServerUnavailable(error: unknown): boolean {
  const cause = error instanceof DatabaseRefused ? error.cause : error
  if (cause instanceof DatabaseUnavailable && isUnreadableFile(cause.cause)) return false
  const kind = failureOf(cause)?.kind
  // `unwritable`: a standby that is about to become the primary, or a full disk.
  return kind === 'unavailable' || kind === 'unwritable'
}

/** Asks the server once. Resolves with one line; undefined: it can be used, or says why not by itself. */
export async function whyServerUnavailable(url: string): Promise<string | undefined> {
  const statements = new PostgresStatements({
    url,
    connections: 1,
    connectTimeoutMs: ANSWER_MS,
    statementTimeoutMs: ANSWER_MS,
  })
  try {
    const standby = statements.prepare<{ readonly is_standby: 0 | 1 }>(
      'SELECT pg_is_in_recovery() AS is_standby',
    )
    return (await standby.get([]))?.is_standby === 1 ? 'the server is a standby' : undefined
  } catch (error) {
    return isServerUnavailable(error) && error instanceof Error ? error.message : undefined
  } finally {
    await statements.close()
  }
}
