/** The built program started by hand: its exit code and what it said. */
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { onTestFinished } from 'vitest'
import { isOnPostgres } from '../support/on-sqlite.ts'
import { programEnvironment } from '../support/program-environment.ts'

export interface Program {
  readonly child: ChildProcess
  readonly printed: string[]
  readonly complaints: string[]
  /** The first line of standard output that the pattern matches, also one of before. */
  line(pattern: RegExp): Promise<string>
  /** Its exit code, when it has ended and everything it said has been read. */
  readonly ended: Promise<number | null>
}

/** Loopback and free ports, unless the environment says otherwise. */
export function startProgram(
  words: readonly string[],
  environment: Record<string, string> = {},
  cwd?: string,
  main = resolve('dist/main.js'),
): Program {
  if (isOnPostgres && 'DATABASE_PATH' in environment && !('DATABASE_URL' in environment))
    throw new Error('a program on a database file: its settings are those of settingsOfDatabase')
  const child = spawn(process.execPath, [main, ...words], {
    cwd,
    env: {
      ...programEnvironment,
      SIP_LISTEN: 'udp/127.0.0.1:0',
      API_LISTEN: '127.0.0.1:0',
      EDGE_LISTEN: '127.0.0.1:0',
      ...environment,
    },
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  const ended = once(child, 'close').then(([code]) => (typeof code === 'number' ? code : null))
  const printed: string[] = []
  const complaints: string[] = []
  createInterface({ input: child.stderr }).on('line', (line) => complaints.push(line))
  const output = createInterface({ input: child.stdout })
  output.on('line', (line) => printed.push(line))
  const line = (pattern: RegExp) =>
    new Promise<string>((resolve, reject) => {
      const look = () => {
        const found = printed.find((text) => pattern.test(text))
        if (found !== undefined) resolve(found)
      }
      output.on('line', look)
      void ended.then(() => reject(new Error(`ended: ${[...printed, ...complaints].join('\n')}`)))
      look()
    })
  return { child, printed, complaints, line, ended }
}
