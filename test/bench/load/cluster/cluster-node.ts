/** The built program on a machine of its own, kept running as a service manager does. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createWriteStream, mkdirSync, readdirSync, type WriteStream } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as later } from 'node:timers/promises'
import { programEnvironment } from '../../../support/program-environment.ts'
import { eventually } from '../../../support/waiting.ts'
import type { Machine } from './network.ts'

const program = 'dist/main.js'

/** As `RestartSec=1` of systemd. */
const RESTART_MS = 1_000
const START_MS = 60_000

export const SIP_PORT = 5_060
const API_PORT = 8_080

export class ClusterInstance {
  readonly machine: Machine
  /** Not by this bench. */
  endsByItself = 0
  /** Log lines of level error and fatal, and what is no log line. */
  readonly faults: string[] = []
  readonly #folder: string
  readonly #environment: Readonly<Record<string, string>>
  readonly #log: WriteStream
  #child: ChildProcess | undefined
  #isWanted = false
  #isServing = false
  /** Ended by this test. */
  #isEnding = false

  /**
   * @param parent the folder in which its own is made.
   * @param logFolder where its log is written.
   */
  constructor(
    machine: Machine,
    environment: Readonly<Record<string, string>>,
    { parent, logFolder }: { readonly parent: string; readonly logFolder: string },
  ) {
    this.machine = machine
    this.#folder = join(parent, machine.name)
    mkdirSync(this.#folder)
    this.#log = createWriteStream(join(logFolder, `${machine.name}.log`))
    const { address, name } = machine
    this.#environment = {
      ...programEnvironment,
      NODE_NAME: name,
      DATABASE_PATH: join(this.#folder, 'tollgate.db'),
      SIP_LISTEN: `udp/${address}:${SIP_PORT}`,
      API_LISTEN: `${address}:${API_PORT}`,
      EDGE_LISTEN: `${address}:${API_PORT + 1}`,
      LOG_LEVEL: 'info',
      ...environment,
    }
  }

  get name(): string {
    return this.machine.name
  }

  get isServing(): boolean {
    return this.#isServing
  }

  /** Resolves when it is ready, perhaps again after an end. */
  serving(withinMs = START_MS): Promise<void> {
    return eventually(() => {
      if (!this.#isServing) throw new Error(`${this.name} does not serve: ${this.faults.at(-1)}`)
    }, withinMs)
  }

  /**
   * Resolves when it is ready for the first time. From then on it is started again whenever it
   * ends.
   */
  async start(): Promise<void> {
    this.#isWanted = true
    void this.#keepRunning()
    await this.serving()
  }

  /** As a power cut of the machine, with a disk that survives. */
  kill(): void {
    this.#isEnding = true
    this.#isServing = false
    this.#child?.kill('SIGKILL')
  }

  pause(): void {
    this.#child?.kill('SIGSTOP')
  }

  resume(): void {
    this.#child?.kill('SIGCONT')
  }

  /** Ends it in order, for good. */
  async stop(): Promise<void> {
    this.#isWanted = false
    this.#isEnding = true
    const child = this.#child
    if (child === undefined) return
    const ended = once(child, 'exit')
    this.resume()
    child.kill('SIGTERM')
    await ended
  }

  /** Files of calls that are not stored. An end in order leaves none. */
  journalFiles(): readonly string[] {
    return readdirSync(this.#folder).filter((name) => name.startsWith('tollgate.db.calls-'))
  }

  async #keepRunning(): Promise<void> {
    while (this.#isWanted) {
      await this.#run()
      await later(RESTART_MS)
    }
  }

  async #run(): Promise<void> {
    const [first, ...words] = this.machine.command(process.execPath, program, 'serve')
    // Ctrl-C ends the run, which ends the instances.
    const child = spawn(first, words, {
      env: this.#environment,
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    this.#child = child
    this.#isEnding = false
    createInterface({ input: child.stderr }).on('line', (line) => this.#note(line))
    createInterface({ input: child.stdout }).on('line', (line) => {
      this.#log.write(`${line}\n`)
      if (line.startsWith('ready ')) this.#isServing = true
    })
    await once(child, 'exit')
    if (!this.#isEnding) this.endsByItself += 1
    this.#child = undefined
    this.#isServing = false
  }

  #note(line: string): void {
    this.#log.write(`${line}\n`)
    if (/"level":"(?:error|fatal)"/.test(line) || !line.startsWith('{')) this.faults.push(line)
  }
}
