import type { LocalStore } from './open.ts'

/**
 * Returns a function that tells whether another connection, such as a command, has committed to the file
 * since it was last asked. Commits on this handle do not count.
 */
export function foreignWrites({ sqlite }: Pick<LocalStore, 'sqlite'>): () => boolean {
  const read = (): unknown => sqlite.pragma('data_version', { simple: true })
  let seen = read()
  return () => {
    const version = read()
    const isNew = version !== seen
    seen = version
    return isNew
  }
}
