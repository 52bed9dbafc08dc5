/**
 * A PostgreSQL server on a machine of its own, with its own defaults: what it has committed
 * outlives it.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { appendFileSync, chownSync, closeSync, mkdirSync, openSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as later } from 'node:timers/promises'
import pg from 'pg'
import { findPrograms, unprivileged } from '../../../support/postgres.ts'
import type { Machine } from './network.ts'

const START_MS = 60_000

export class DatabaseServer {
  /** As the other machines reach it. */
  readonly url: string
  /** As this process reaches it, whatever the network does. */
  readonly localUrl: string
  readonly #machine: Machine
  readonly #folder: string
  readonly #programs: string
  readonly #user: ReturnType<typeof unprivileged>
  #child: ChildProcess | undefined

  private constructor(machine: Machine, folder: string, programs: string) {
    this.#machine = machine
    this.#folder = folder
    this.#programs = programs
    this.#user = unprivileged()
    this.url = `postgres://tollgate@${machine.address}/tollgate`
    this.localUrl = `postgres://tollgate@localhost/tollgate?host=${folder}`
  }

  static whyNot(): string | undefined {
    return findPrograms() === undefined
      ? 'PostgreSQL is not installed: apt-get install postgresql'
      : undefined
  }

  /** @param parent the folder in which its own is made. */
  static async start(machine: Machine, parent: string): Promise<DatabaseServer> {
    const programs = findPrograms()
    if (programs === undefined) throw new Error(DatabaseServer.whyNot())
    const server = new DatabaseServer(machine, join(parent, 'postgres'), programs)
    server.#initialize()
    await server.start()
    const client = new pg.Client({ connectionString: server.#urlOf('postgres') })
    await client.connect()
    await client.query('CREATE DATABASE tollgate')
    await client.end()
    return server
  }

  /** Resolves when it takes connections. */
  async start(): Promise<void> {
    const log = openSync(this.#logFile, 'a')
    const settings = [`listen_addresses=${this.#machine.address}`, 'max_connections=200']
    const words = [`unix_socket_directories=${this.#folder}`, ...settings]
    const user = this.#user && [
      'setpriv',
      `--reuid=${this.#user.uid}`,
      `--regid=${this.#user.gid}`,
      '--clear-groups',
    ]
    const [program, ...rest] = this.#machine.command(
      ...(user ?? []),
      join(this.#programs, 'postgres'),
      '-D',
      this.#data,
      ...words.flatMap((word) => ['-c', word]),
    )
    // Ctrl-C ends the run, which ends the server.
    const child = spawn(program, rest, { cwd: '/', stdio: ['ignore', log, log], detached: true })
    closeSync(log)
    this.#child = child
    for (let waitedMs = 0; !(await this.#answers()); waitedMs += 50) {
      if (waitedMs > START_MS || child.exitCode !== null)
        throw new Error(`PostgreSQL does not start: ${this.#tail()}`)
      await later(50)
    }
  }

  /** `immediate`: as if it had crashed; it repairs itself at its next start. */
  async stop(how: 'fast' | 'immediate'): Promise<void> {
    const child = this.#child
    this.#child = undefined
    if (child === undefined || child.exitCode !== null) return
    const ended = once(child, 'exit')
    child.kill(how === 'fast' ? 'SIGINT' : 'SIGQUIT')
    await ended
  }

  #initialize(): void {
    mkdirSync(this.#folder, { mode: 0o700 })
    if (this.#user !== undefined) chownSync(this.#folder, this.#user.uid, this.#user.gid)
    const made = spawnSync(
      join(this.#programs, 'initdb'),
      ['-D', this.#data, '-U', 'tollgate', '-A', 'trust', '-E', 'UTF8', '--locale=C', '--no-sync'],
      { ...this.#user, encoding: 'utf8', cwd: '/' },
    )
    if (made.status !== 0) throw new Error(`initdb failed: ${made.stderr}`)
    const network = this.#machine.address.replace(/\d+$/, '0/24')
    appendFileSync(join(this.#data, 'pg_hba.conf'), `host all all ${network} trust\n`)
  }

  get #data(): string {
    return join(this.#folder, 'data')
  }

  get #logFile(): string {
    return join(this.#folder, 'log')
  }

  #urlOf(database: string): string {
    return this.localUrl.replace('/tollgate?', `/${database}?`)
  }

  async #answers(): Promise<boolean> {
    const client = new pg.Client({ connectionString: this.#urlOf('postgres') })
    client.on('error', () => undefined)
    try {
      await client.connect()
      await client.query('SELECT 1')
      return true
    } catch {
      return false
    } finally {
      await client.end().catch(() => undefined)
    }
  }

  #tail(): string {
    return readFileSync(this.#logFile, 'utf8').slice(-2_000)
  }
}
