/** Starts and stops of the program, on a file and on a PostgreSQL server: what it takes until it is ready, and until it has ended. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { emptyStore } from '../support/empty-store.ts'
import { freshDatabase, hasPostgres } from '../support/postgres.ts'
import { asRestarted, programEnvironment } from '../support/program-environment.ts'
import { spread } from './load/figures.ts'
import { cpuMicros, residentMegabytes } from './load/process-cpu.ts'

export const describe =
  'starts and stops of the program on both databases, in turns; arguments: runs=10 programs=dist/main.js,…'

interface Run {
  readonly startMs: number
  readonly startCpuMs: number
  readonly residentMb: number
  readonly stopMs: number
  readonly stopCpuMs: number
}

/** As users start it, and as the tests do: with the flags that it would start itself anew with, and V8's code at hand. */
const ways = {
  users: { flags: [], environment: {} },
  tests: {
    flags: asRestarted.flags,
    environment: { ...programEnvironment, ...asRestarted.environment },
  },
} as const

export async function run(words: readonly string[] = []): Promise<void> {
  const options = new Map(words.map((word) => word.split('=') as [string, string | undefined]))
  const runs = Number(options.get('runs') ?? 10)
  const programs = (options.get('programs') ?? 'dist/main.js').split(',')
  const databases = hasPostgres ? (['file', 'server'] as const) : (['file'] as const)
  const cases = databases.flatMap((database) =>
    (['users', 'tests'] as const).flatMap((way) =>
      programs.map((program) => ({ database, way, program, taken: [] as Run[] })),
    ),
  )
  // The first of each makes files that the others find.
  for (const each of cases) await startAndStop(each)
  for (let turn = 0; turn < runs; turn += 1)
    for (const each of cases) each.taken.push(await startAndStop(each))
  for (const { database, way, program, taken } of cases) {
    const of = (name: keyof Run): string => spread(taken.map((each) => each[name]))
    console.log(`  ${program}, database on a ${database}, as ${way} start it`)
    console.log(`    start: ${of('startMs')} ms, ${of('startCpuMs')} ms of CPU`)
    console.log(`    stop:  ${of('stopMs')} ms, ${of('stopCpuMs')} ms of CPU`)
    console.log(`    ready: ${of('residentMb')} MB resident`)
  }
}

interface Case {
  readonly database: 'file' | 'server'
  readonly way: keyof typeof ways
  readonly program: string
}

async function startAndStop({ database, way, program }: Case): Promise<Run> {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-start-'))
  const path = join(folder, 'tollgate.db')
  const server = database === 'server' ? await freshDatabase() : undefined
  if (server === undefined) emptyStore(Date.now(), path).close()
  const { flags, environment } = ways[way]
  try {
    const cpuBefore = cpuOfEndedChildrenMs()
    const from = performance.now()
    const child = spawn(process.execPath, [...flags, program, 'serve'], {
      env: {
        PATH: process.env['PATH'],
        ...environment,
        DATABASE_PATH: path,
        ...(server && {
          DATABASE_URL: server.url,
          SECRET_KEY: 'A'.repeat(43),
          NODE_NAME: 'sbc-1',
        }),
        SIP_LISTEN: 'udp/127.0.0.1:0,tcp/127.0.0.1:0',
        API_LISTEN: '127.0.0.1:0',
        EDGE_LISTEN: '127.0.0.1:0',
        LOG_LEVEL: 'info',
      },
      stdio: ['ignore', 'pipe', 'ignore'],
    })
    const ended = once(child, 'exit')
    for await (const line of createInterface({ input: child.stdout }))
      if (line.startsWith('ready ')) break
    const pid = child.pid ?? 0
    const startMs = performance.now() - from
    const startCpuMs = cpuMicros([pid]) / 1_000
    const residentMb = residentMegabytes(pid)
    const stopFrom = performance.now()
    child.kill('SIGTERM')
    const [code] = await ended
    if (code !== 0) throw new Error(`${program} ended with exit code ${String(code)}`)
    const stopMs = performance.now() - stopFrom
    const stopCpuMs = cpuOfEndedChildrenMs() - cpuBefore - startCpuMs
    return { startMs, startCpuMs, residentMb, stopMs, stopCpuMs }
  } finally {
    await server?.drop()
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Of those that this process has waited for. Linux counts in hundredths of a second. */
function cpuOfEndedChildrenMs(): number {
  const stat = readFileSync('/proc/self/stat', 'utf8')
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[13]) + Number(fields[14])) * 10
}
