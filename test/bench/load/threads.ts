/** What the threads of a process have used and how often they have slept, as Linux counts it. */
import { readdirSync, readFileSync } from 'node:fs'

/** Sums of all threads of one name. */
export interface ThreadUse {
  readonly cpuMicros: number
  /** How often a thread went to sleep by itself: as often it was woken. */
  readonly wakeUps: number
}

/** Since the start of the process, by the name of the thread. */
export function threadsOf(pid: number): ReadonlyMap<string, ThreadUse> {
  const uses = new Map<string, ThreadUse>()
  for (const task of readdirSync(`/proc/${pid}/task`)) {
    const found = useOf(`/proc/${pid}/task/${task}`)
    if (found === undefined) continue
    const { name, ...use } = found
    const so = uses.get(name) ?? { cpuMicros: 0, wakeUps: 0 }
    uses.set(name, {
      cpuMicros: so.cpuMicros + use.cpuMicros,
      wakeUps: so.wakeUps + use.wakeUps,
    })
  }
  return uses
}

/** Undefined: the thread has ended. */
function useOf(folder: string) {
  try {
    const [nanoseconds] = readFileSync(`${folder}/schedstat`, 'utf8').split(' ')
    const status = readFileSync(`${folder}/status`, 'utf8')
    return {
      name: readFileSync(`${folder}/comm`, 'utf8').trim(),
      cpuMicros: Number(nanoseconds) / 1_000,
      wakeUps: Number(/^voluntary_ctxt_switches:\s+(\d+)/m.exec(status)?.[1] ?? 0),
    }
  } catch {
    return undefined
  }
}
