/** Nodes of one PostgreSQL database that count requests together. */
import { onTestFinished } from 'vitest'
import { RequestWindows } from '../../control/auth/rate-limit.ts'
import { NodeShares, requestShares } from '../../engine/shares/node-shares.ts'
import type { Schedule } from '../../schema/clock.ts'
import { sharedDatabase } from './shared-database.ts'

/** Of one node. */
interface RequestNode {
  readonly windows: RequestWindows
  /** How often it has asked the database. */
  readonly statements: () => number
}

/** `now`: of the windows; what nodes tell each other takes real time. */
export async function requestNodes(
  count: number,
  now: () => number,
): Promise<readonly RequestNode[]> {
  const { open } = await sharedDatabase()
  const handlers = new Map<string, Set<(payload: string) => void>>()
  const on = (channel: string, handler: (payload: string) => void) => {
    const known = handlers.get(channel) ?? new Set()
    handlers.set(channel, known.add(handler))
    return () => void known.delete(handler)
  }
  const notify = (channel: string, payload: string): void => {
    for (const handler of handlers.get(channel) ?? []) setImmediate(handler, payload)
  }
  const schedule: Schedule = (work, delayMs) => {
    const timer = setTimeout(work, delayMs)
    return () => clearTimeout(timer)
  }
  const nodes: RequestNode[] = []
  for (let n = 0; n < count; n += 1) {
    const store = await open()
    let statements = 0
    const prepare = store.statements.prepare.bind(store.statements)
    const counted: typeof prepare = (sql) => {
      const { all, ...statement } = prepare<never>(sql)
      return { ...statement, all: (values) => ((statements += 1), all(values)) }
    }
    Object.assign(store.statements, { prepare: counted })
    const shares = new NodeShares(requestShares, {
      store,
      now: () => performance.now(),
      schedule,
      log: () => undefined,
      members: {
        name: `node ${n}`,
        process: `${n}`,
        canHold: () => true,
        size: () => count,
        gone: () => [],
        notices: { on, notify },
      },
    })
    onTestFinished(() => shares.stop())
    const windows = new RequestWindows({ requestShares: shares, steadyNow: now })
    nodes.push({ windows, statements: () => statements })
  }
  return nodes
}
