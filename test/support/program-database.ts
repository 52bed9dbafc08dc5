/**
 * The database of a started program: a file in its folder, or, with TEST_DATABASE=postgres, one on
 * a server.
 */
import { onTestFinished } from 'vitest'
import { isOnPostgres } from './on-sqlite.ts'
import { freshDatabase } from './postgres.ts'

export interface ProgramDatabase {
  /** The settings by which the program finds it. */
  readonly settings: Record<string, string>
  drop(): Promise<void>
}

/**
 * @param environment what the test tells the program: one with a database of its own gets no other.
 */
export async function programDatabase(
  environment: Readonly<Record<string, string>>,
): Promise<ProgramDatabase> {
  if (!isOnPostgres || environment['DATABASE_URL'] !== undefined) return file
  const { url, drop } = await freshDatabase()
  return { settings: { DATABASE_URL: url, SECRET_KEY, NODE_NAME: 'sbc-1' }, drop }
}

/**
 * The settings of a database that is gone after the test; `path`: of a file, or of those that an
 * instance has beside one on a server.
 */
export async function settingsOfDatabase(path: string): Promise<Record<string, string>> {
  const { settings, drop } = await programDatabase({})
  onTestFinished(drop)
  return { DATABASE_PATH: path, ...settings }
}

const SECRET_KEY = 'A'.repeat(43)

const file: ProgramDatabase = { settings: {}, drop: () => Promise.resolve() }
