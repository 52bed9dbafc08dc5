/** One node of a demo with several: a process of this program that serves. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join, resolve } from 'node:path'
import { createInterface } from 'node:readline'
import type { World } from '../command.ts'
import { endWith } from './end-with.ts'

export interface NodeProcess {
  readonly name: string
  readonly pid: number
  /** `host:port`. */
  readonly api: string
  readonly sipPort: number
  /** Resolves with how it has ended. */
  readonly ended: Promise<string>
  /** Its live calls may finish for a moment. */
  stop(): Promise<void>
}

/** Resolves when it serves. @throws {Error} it has ended before. */
export async function startNode(
  { name, folder }: { readonly name: string; readonly folder: string },
  environment: Readonly<Record<string, string | undefined>>,
  world: Pick<World, 'pid' | 'print'>,
): Promise<NodeProcess> {
  const { execPath, execArgv, argv } = process
  const child = spawn(execPath, [...execArgv, resolve(argv[1] ?? ''), 'serve'], {
    env: { ...environment, NODE_NAME: name, DATABASE_PATH: join(folder, `${name}.db`) },
    // It would read the `.env` of an installation.
    cwd: folder,
    // Of a session of its own: Ctrl-C is for the demo, which stops the calls first.
    detached: true,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const ended = once(child, 'exit').then(([code, signal]) =>
    signal === null ? `exit code ${String(code)}` : String(signal),
  )
  if (child.pid !== undefined) endWith(world.pid, child.pid, 'TERM')
  const ready = await Promise.race([readyLine(child, world), ended])
  const [, sipPort, api] = /^ready sip=udp\/[^,\s]*:(\d+)\S* api=(\S+)/.exec(ready) ?? []
  if (sipPort === undefined || api === undefined) {
    child.kill('SIGKILL')
    throw new Error(`node ${name} does not start: ${ready}`)
  }
  const stop = async (): Promise<void> => {
    child.kill('SIGTERM')
    await ended
  }
  return { name, pid: child.pid ?? 0, api, sipPort: Number(sipPort), ended, stop }
}

/** What it says before, such as a password that is shown once, is passed on. */
function readyLine(child: ChildProcess, { print }: Pick<World, 'print'>): Promise<string> {
  const { stdout } = child
  if (stdout === null) return Promise.resolve('it has no output')
  return new Promise((resolve) => {
    createInterface({ input: stdout }).on('line', (line) => {
      if (line.startsWith('ready ')) resolve(line)
      else print(line)
    })
  })
}
