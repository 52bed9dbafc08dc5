import type { Log } from './contracts/log.ts'
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

/**
 * Returns a function, to be called now and then, that reloads when another connection has committed. A reload
 * that failed is tried again.
 */
export function followForeignWrites(
  store: Pick<LocalStore, 'sqlite'>,
  reload: () => Promise<void>,
  log: Log,
): () => void {
  const hasForeignWrites = foreignWrites(store)
  let isBehind = false
  const failed = (error: unknown): void => {
    isBehind = true
    log('error', 'what another process has changed cannot be read', { error })
  }
  return () => {
    try {
      isBehind ||= hasForeignWrites()
    } catch (error) {
      return failed(error)
    }
    if (!isBehind) return
    isBehind = false
    reload().catch(failed)
  }
}
