/**
 * The bytes that short-lived values leave in the old generation: in a `Map`, and in a
 * `ReleasingMap`.
 */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { GCProfiler } from 'node:v8'
import { ReleasingMap } from '../../schema/sip/releasing-map.ts'

export const describe =
  'old generation per value of 10 kB that lives for 200 others: in a Map, and in a ReleasingMap'

const VALUES = 10_000
const LIVING = 200
/** As the server has it (`engine/launch.ts`). */
const flags = [
  '--min-semi-space-size=16',
  '--max-semi-space-size=32',
  '--no-allocation-site-pretenuring',
  '--no-parallel-scavenge',
]

export async function run(): Promise<void> {
  for (const kind of ['Map', 'ReleasingMap'] as const) {
    const child = fork(import.meta.filename, [kind], { execArgv: [...process.execArgv, ...flags] })
    // The other side, below, sends its bytes.
    const [bytes] = (await once(child, 'message')) as [number]
    console.log(`  ${kind.padEnd(12)} ${(bytes / VALUES).toFixed(0).padStart(6)} bytes per value`)
  }
}

/** Bytes that scavenges move into the old generation meanwhile. */
function promoted(work: () => void): number {
  const profiler = new GCProfiler()
  profiler.start()
  work()
  const scavenges = profiler.stop().statistics.filter(({ gcType }) => gcType === 'Scavenge')
  return scavenges.reduce(
    (sum, { beforeGC, afterGC }) => sum + oldBytes(afterGC) - oldBytes(beforeGC),
    0,
  )
}

const oldBytes = ({ heapSpaceStatistics }: HeapStatistics): number =>
  heapSpaceStatistics.find(({ spaceName }) => spaceName === 'old_space')?.spaceUsedSize ?? 0

type HeapStatistics = ReturnType<GCProfiler['stop']>['statistics'][number]['afterGC']

interface Table {
  set(key: string, value: object): unknown
  delete(key: string): boolean
}

/** Beside each value as much is thrown away as a call throws away. */
function comeAndGo(table: Table, values: number): void {
  for (let next = 0; next < values; next += 1) {
    table.set(`call ${next}`, { parts: Array.from({ length: 200 }, (_, part) => ({ part, next })) })
    table.delete(`call ${next - LIVING}`)
    for (let thrown = 0; thrown < 110; thrown += 1) lastThrown.away = Array<number>(128).fill(next)
  }
}

const lastThrown: { away: readonly number[] } = { away: [] }

if (process.send !== undefined && process.argv[1] === import.meta.filename) {
  const table =
    process.argv[2] === 'Map' ? new Map<string, object>() : new ReleasingMap<string, object>()
  comeAndGo(table, VALUES)
  process.send(promoted(() => comeAndGo(table, VALUES)))
  process.disconnect()
}
