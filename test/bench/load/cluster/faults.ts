/** The faults of a cluster, and their times: a plan from a seed, and its execution. */
import { setTimeout as later } from 'node:timers/promises'
import { seededRandom } from '../../../support/seeded-random.ts'
import type { ClusterInstance } from './cluster-node.ts'
import type { DatabaseServer } from './database-server.ts'
import type { Machine, Network } from './network.ts'

export const faultKinds = [
  'kill',
  'pause',
  'cut database',
  'cut nodes',
  'restart database',
] as const
type FaultKind = (typeof faultKinds)[number]

interface Fault {
  readonly kind: FaultKind
  /** Milliseconds after the begin. */
  readonly atMs: number
  /** How long it lasts; a process that was killed is started again a second later by itself. */
  readonly forMs: number
  /** Number of the instance; of the database, how it ends. */
  readonly target: number
  readonly how: 'fast' | 'immediate'
}

interface FaultOptions {
  readonly seed: number
  readonly instances: number
  readonly durationMs: number
  /** The time from one fault to the next, on average. */
  readonly everyMs: number
  readonly pauseMs: number
  readonly cutMs: number
  readonly kinds: readonly FaultKind[]
}

/**
 * None lasts longer than `durationMs`. One instance has one fault at a time, and so has the
 * database.
 */
export function planFaults(options: FaultOptions): readonly Fault[] {
  const { seed, instances, durationMs, everyMs, kinds } = options
  const random = seededRandom(seed)
  const busyUntil = new Map<number, number>()
  const faults: Fault[] = []
  for (let atMs = everyMs; atMs < durationMs; atMs += everyMs * (0.5 + random())) {
    const kind = kinds[Math.floor(random() * kinds.length)] ?? 'kill'
    const target = Math.floor(random() * instances)
    const how = random() < 0.5 ? 'fast' : 'immediate'
    const forMs = lengthOf(kind, options, random())
    const busy = kind === 'restart database' ? DATABASE : target
    if (atMs + forMs > durationMs || (busyUntil.get(busy) ?? 0) > atMs) continue
    busyUntil.set(busy, atMs + forMs + SETTLING_MS)
    faults.push({ kind, atMs: Math.round(atMs), forMs: Math.round(forMs), target, how })
  }
  return faults
}

/** Stands in the place of an instance's number. */
const DATABASE = -1
/** Before the same part has the next fault. */
const SETTLING_MS = 2_000

function lengthOf(kind: FaultKind, { pauseMs, cutMs }: FaultOptions, random: number): number {
  if (kind === 'kill') return 0
  if (kind === 'pause') return pauseMs
  return cutMs * (0.25 + 0.75 * random)
}

interface Parts {
  readonly network: Network
  readonly instances: readonly ClusterInstance[]
  readonly database: DatabaseServer
  readonly databaseMachine: Machine
}

/** Carries out a plan, and tells of each fault. Resolves when all has been mended. */
export async function carryOut(
  plan: readonly Fault[],
  parts: Parts,
  tell: (text: string) => void,
): Promise<void> {
  const start = performance.now()
  const running: Promise<void>[] = []
  for (const fault of plan) {
    await later(Math.max(0, start + fault.atMs - performance.now()))
    const { kind, target, forMs, how } = fault
    tell(`${kind} (node ${target + 1}, ${how}) for ${(forMs / 1_000).toFixed(1)} s`)
    running.push(inflict(fault, parts))
  }
  await Promise.all(running)
}

async function inflict(
  { kind, target, forMs, how }: Fault,
  { network, instances, database, databaseMachine }: Parts,
): Promise<void> {
  const [instance, other] = [instances[target], instances[(target + 1) % instances.length]]
  if (instance === undefined || other === undefined) throw new Error(`there is no node ${target}`)
  switch (kind) {
    case 'kill': {
      instance.kill()
      await instance.serving()
      return
    }
    case 'pause': {
      instance.pause()
      await later(forMs)
      instance.resume()
      return
    }
    case 'cut database':
    case 'cut nodes': {
      const peer = kind === 'cut nodes' ? other.machine : databaseMachine
      const mend = network.cut(instance.machine, peer)
      await later(forMs)
      mend()
      return
    }
    case 'restart database': {
      await database.stop(how)
      await later(forMs)
      await database.start()
    }
  }
}
