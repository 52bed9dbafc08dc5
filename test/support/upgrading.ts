/** Upgrades the built program while it serves: by itself, since the program on disk is the same. */
import { onTestFinished } from 'vitest'
import type { AtEnd } from './scripted-node.ts'
import type { TollgateProcess } from './tollgate-process.ts'
import { eventually } from './waiting.ts'

const isAlive = (pid: number): boolean => {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

export const isGone = (pid: number): Promise<void> =>
  eventually(() => {
    if (isAlive(pid)) throw new Error(`process ${pid} is still there`)
  })

/** Ends with the test, before the folder of the database is removed. */
function endWithTest(pid: number, atEnd: AtEnd): number {
  atEnd(async () => {
    if (isAlive(pid)) process.kill(pid, 'SIGTERM')
    await isGone(pid)
  })
  return pid
}

/** Answers with the id of the process that serves now. */
export async function upgrade(
  tollgate: TollgateProcess,
  atEnd: AtEnd = onTestFinished,
): Promise<number> {
  const [, pid = ''] = /process (\d+) serves now/.exec(await tollgate.run(['upgrade'])) ?? []
  return endWithTest(Number(pid), atEnd)
}
