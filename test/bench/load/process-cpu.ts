/** CPU time of processes as the operating system counts it: user and system, all threads. */
import { readFileSync, readdirSync } from 'node:fs'

/** Linux counts in hundredths of a second for user space, whatever the kernel's own rate. */
const microsPerTick = 10_000

/**
 * Microseconds that the processes have used since they started, with their children that have
 * ended; a process that has ended itself counts nothing.
 */
export const cpuMicros = (pids: readonly number[]): number =>
  pids.reduce((sum, pid) => sum + ticksOf(pid) * microsPerTick, 0)

function ticksOf(pid: number): number {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    // The name in parentheses may hold spaces; utime, stime, cutime and cstime are the 14th to the
    // 17th fields. The last two are those of ended children: Redis rewrites its log in one.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return fields.slice(11, 15).reduce((sum, ticks) => sum + Number(ticks), 0)
  } catch {
    return 0
  }
}

/**
 * The same by the scheduler's clock, to the nanosecond: for slices of a second or two. A thread
 * that has ended counts nothing any more.
 */
export const exactCpuMicros = (pid: number): number =>
  readdirSync(`/proc/${pid}/task`).reduce((sum, task) => sum + runMicros(pid, task), 0)

function runMicros(pid: number, task: string): number {
  try {
    const [nanoseconds] = readFileSync(`/proc/${pid}/task/${task}/schedstat`, 'utf8').split(' ')
    return Number(nanoseconds) / 1_000
  } catch {
    return 0
  }
}

/** Resident memory in megabytes: all, or what is mapped from files, such as the program of Node. */
export function residentMegabytes(pid: number, kind: 'VmRSS' | 'RssFile' = 'VmRSS'): number {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8')
  const line = status.split('\n').find((each) => each.startsWith(`${kind}:`))
  return Number(/\d+/.exec(line ?? '')?.[0] ?? 0) / 1_024
}

/** A process and everything that it has started. */
export function processTree(root: number): readonly number[] {
  const childrenOf = new Map<number, number[]>()
  for (const name of readdirSync('/proc')) {
    const pid = Number(name)
    if (!Number.isInteger(pid)) continue
    const parent = parentOf(pid)
    childrenOf.set(parent, [...(childrenOf.get(parent) ?? []), pid])
  }
  const tree = [root]
  for (const pid of tree) tree.push(...(childrenOf.get(pid) ?? []))
  return tree
}

function parentOf(pid: number): number {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1])
  } catch {
    return 0
  }
}
