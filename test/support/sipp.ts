/** Runs SIPp, the outside judge: scenarios of `sipp-scenarios/` as callers and as PBX nodes. */
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { freePort } from './free-port.ts'

const scenarioFolder = resolve('sipp-scenarios')

export interface SippResult {
  readonly exitCode: number | null
  /** What SIPp complained of: unexpected messages and failed checks. */
  readonly errors: string
}

interface SippOptions {
  readonly calls?: number
  /** Calls per second. */
  readonly rate?: number
  readonly transport?: 'udp' | 'tcp'
  /** Values of `[name]` in the scenario. */
  readonly keys?: Readonly<Record<string, string>>
  readonly service?: string
  readonly timeoutSeconds?: number
  readonly extra?: readonly string[]
}

/** Calls `target` with a scenario and waits until all calls have ended; exit code 0: as it says. */
export async function callWith(
  scenario: string,
  targetPort: number,
  options: SippOptions = {},
): Promise<SippResult> {
  const calls = options.calls ?? 1
  const { child, folder } = await spawnSipp(scenario, options, [
    `127.0.0.1:${targetPort}`,
    ...['-m', String(calls), '-r', String(options.rate ?? 10)],
    ...['-timeout', `${options.timeoutSeconds ?? 30}s`, '-timeout_error'],
  ])
  const [exitCode] = await once(child, 'close')
  const errors = readErrors(folder)
  rmSync(folder, { recursive: true, force: true })
  return { exitCode: typeof exitCode === 'number' ? exitCode : null, errors }
}

/** A PBX node that runs until it is stopped. */
export class SippNode {
  readonly port: number
  readonly #child: ChildProcess
  readonly #folder: string
  #stopped: Promise<string> | undefined

  private constructor(child: ChildProcess, folder: string, port: number) {
    this.#child = child
    this.#folder = folder
    this.port = port
  }

  static async start(
    scenario: string,
    options: SippOptions & { port?: number } = {},
  ): Promise<SippNode> {
    const port = options.port ?? (await freePort())
    const { child, folder } = await spawnSipp(scenario, options, [], port)
    return new SippNode(child, folder, port)
  }

  get pid(): number {
    return this.#child.pid ?? 0
  }

  /** Freezes the process: its port stays open, and nothing answers. */
  freeze(): void {
    this.#child.kill('SIGSTOP')
  }

  thaw(): void {
    this.#child.kill('SIGCONT')
  }

  /** Ends it, if it has not ended yet; answers with what it complained of. */
  stop(): Promise<string> {
    this.#stopped ??= this.#end()
    return this.#stopped
  }

  async #end(): Promise<string> {
    const isRunning = this.#child.exitCode === null && this.#child.signalCode === null
    const closed = isRunning ? once(this.#child, 'close') : undefined
    this.#child.kill('SIGKILL')
    await closed
    const errors = readErrors(this.#folder)
    rmSync(this.#folder, { recursive: true, force: true })
    return errors
  }
}

async function spawnSipp(
  scenario: string,
  options: SippOptions,
  words: readonly string[],
  port?: number,
): Promise<{ child: ChildProcess; folder: string }> {
  const folder = mkdtempSync(join(tmpdir(), 'sipp-'))
  const keys = Object.entries(options.keys ?? {}).flatMap(([name, value]) => ['-key', name, value])
  const child = spawn(
    'sipp',
    [
      ...words,
      ...['-sf', join(scenarioFolder, scenario), '-nostdin', '-i', '127.0.0.1'],
      ...['-p', String(port ?? (await freePort())), '-mp', String(await freePort())],
      ...['-t', options.transport === 'tcp' ? 't1' : 'u1'],
      ...['-s', options.service ?? '18005551212', '-trace_err', '-nd'],
      ...keys,
      ...(options.extra ?? []),
    ],
    { cwd: folder, stdio: 'ignore' },
  )
  await once(child, 'spawn')
  return { child, folder }
}

function readErrors(folder: string): string {
  return readdirSync(folder)
    .filter((name) => name.endsWith('_errors.log'))
    .map((name) => readFileSync(join(folder, name), 'utf8'))
    .join('')
}
