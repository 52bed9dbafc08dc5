/** What the names of all sessions of an installation begin with: at its start it deletes those that are left. Pure. */
import { hash } from 'node:crypto'

interface Installation {
  readonly host: string
  readonly databasePath: string
  readonly databaseId: string
}

/** Of others at the same relay containers may have the same names and paths, and copies of a database the same id. */
export const prefixOf = ({ host, databasePath, databaseId }: Installation): string =>
  hash('sha1', JSON.stringify([host, databasePath, databaseId]), 'hex').slice(0, 12)
