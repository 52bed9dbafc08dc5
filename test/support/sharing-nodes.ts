/** Instances of one PostgreSQL database that share something, each with connections of its own. */
import { InstanceShares } from '../../engine/shares/instance-shares.ts'
import type { ShareKind } from '../../engine/shares/instance-share.ts'
import type { Schedule } from '../../schema/clock.ts'
import { openStore } from '../../schema/postgres/open.ts'

export const noSecrets = {
  secretKey: Buffer.alloc(32, 1).toString('base64'),
  keyFile: '/none',
} as const

interface SharingInstance {
  readonly shares: InstanceShares
  /** How often the instance has asked the database. */
  readonly statements: () => number
}

export interface SharingInstances {
  readonly instances: readonly SharingInstance[]
  stop(): Promise<void>
}

export async function sharingInstances(
  url: string,
  kind: ShareKind,
  count: number,
): Promise<SharingInstances> {
  const handlers = new Map<string, Set<(payload: string) => void>>()
  const notices = {
    on: (channel: string, handler: (payload: string) => void) => {
      const known = handlers.get(channel) ?? new Set()
      handlers.set(channel, known.add(handler))
      return () => void known.delete(handler)
    },
    notify: (channel: string, payload: string) => {
      for (const handler of handlers.get(channel) ?? []) setImmediate(handler, payload)
    },
  }
  const open = async (name: string) => {
    const store = await openStore(url, { ...noSecrets, now: 0, connections: 4 })
    let statements = 0
    const prepare = store.statements.prepare.bind(store.statements)
    const counted: typeof prepare = (sql) => {
      const { all, ...statement } = prepare<never>(sql)
      return { ...statement, all: (values) => ((statements += 1), all(values)) }
    }
    Object.assign(store.statements, { prepare: counted })
    const members = { name, process: name, size: () => count, gone: () => [], notices }
    const shares = new InstanceShares(kind, {
      store,
      now: () => performance.now(),
      schedule: withTimers,
      log: () => undefined,
      members: { ...members, canHold: () => true },
    })
    const stop = async (): Promise<void> => {
      await shares.stop()
      await store.close()
    }
    return { shares, statements: () => statements, stop }
  }
  const nodes = await Promise.all(Array.from({ length: count }, (_, n) => open(`node ${n}`)))
  return {
    instances: nodes,
    stop: async () => void (await Promise.all(nodes.map((instance) => instance.stop()))),
  }
}

const withTimers: Schedule = (work, delayMs) => {
  const timer = setTimeout(work, delayMs)
  return () => clearTimeout(timer)
}
