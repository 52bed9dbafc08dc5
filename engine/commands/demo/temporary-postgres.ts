/**
 * A temporary PostgreSQL server: it has its data and its only socket in one folder, and stops with
 * its owner.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chownSync, existsSync, mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { createInterface } from 'node:readline'
import pg from 'pg'
import type { Schedule } from '../../../schema/clock.ts'
import type { CommandContext } from '../command.ts'

/**
 * Debian's packages, Homebrew's, those of the PostgreSQL project for Red Hat, and Fedora's:
 * `<place>/<version>/bin`, or `<place>/bin`.
 */
const FOLDERS = ['/usr/lib/postgresql', '/opt/homebrew/opt', '/usr/local/opt', '/usr']
const OLDEST = 15
const START_MS = 30_000
const POLL_MS = 20

/** The folder of the newest server that is installed; undefined: there is none. */
export function findPostgres(folders: readonly string[] = FOLDERS): string | undefined {
  for (const place of folders) {
    const names = existsSync(place) ? readdirSync(place) : []
    const versioned = names
      .map((name) => ({ name, version: Number(/^(?:postgresql@|pgsql-)?(\d+)$/.exec(name)?.[1]) }))
      .filter(({ version }) => version >= OLDEST)
      .toSorted((one, other) => other.version - one.version)
      .map(({ name }) => join(place, name, 'bin'))
    const found = [...versioned, join(place, 'bin')].find((folder) =>
      existsSync(join(folder, 'initdb')),
    )
    if (found !== undefined) return found
  }
  return undefined
}

interface User {
  readonly uid: number
  readonly gid: number
}

export interface TemporaryPostgresOptions {
  /** Where `initdb` and `postgres` are. */
  readonly programs: string
  /** An empty one, which becomes the server's. */
  readonly folder: string
  /** The process with which the server ends, however that ends. */
  readonly ownerPid: number
  /** Removed when the owner is gone without having stopped the server; absent: nothing is. */
  readonly removes?: string
  readonly schedule: Schedule
}

export class TemporaryPostgres {
  readonly url: string
  readonly #options: TemporaryPostgresOptions
  readonly #user: User | undefined
  #server: ChildProcess | undefined

  /** @throws {Error} the server cannot be made or does not start. */
  static async start(options: TemporaryPostgresOptions): Promise<TemporaryPostgres> {
    const postgres = new TemporaryPostgres(options)
    postgres.#make()
    await postgres.start()
    return postgres
  }

  private constructor(options: TemporaryPostgresOptions) {
    this.#options = options
    this.#user = unprivileged()
    this.url = `postgres://tollgate@localhost/postgres?host=${encodeURIComponent(options.folder)}`
  }

  /** Again, after `stop`. */
  async start(): Promise<void> {
    const { programs, folder, ownerPid, removes } = this.#options
    const settings = [
      'listen_addresses=',
      `unix_socket_directories=${folder}`,
      'max_connections=100',
      'fsync=off',
      'full_page_writes=off',
      'shared_buffers=32MB',
      'logging_collector=on',
      `log_directory=${folder}`,
      'log_filename=postgres.log',
    ]
    const words = ['-D', this.#data, ...settings.flatMap((setting) => ['-c', setting])]
    // It has a session of its own: Ctrl-C is for the owner, which stops the server last.
    const options = { ...this.#user, cwd: folder, detached: true, stdio: 'ignore' } as const
    const server = spawn(join(programs, 'postgres'), words, options)
    this.#server = server
    if (server.pid !== undefined) endWith(ownerPid, server.pid, 'INT', removes)
    await this.#answers()
  }

  /** Ends its connections, and writes what it has. */
  async stop(): Promise<void> {
    const server = this.#server
    this.#server = undefined
    if (server === undefined || server.exitCode !== null || server.signalCode !== null) return
    const ended = once(server, 'exit')
    server.kill('SIGINT')
    await ended
  }

  get #data(): string {
    return join(this.#options.folder, 'data')
  }

  #make(): void {
    const { programs, folder } = this.#options
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    const user = this.#user
    if (user !== undefined) chownSync(folder, user.uid, user.gid)
    const words = ['-D', this.#data, '-U', 'tollgate', '-A', 'trust', '-E', 'UTF8']
    const made = spawnSync(join(programs, 'initdb'), [...words, '--locale=C', '--no-sync'], {
      ...user,
      cwd: folder,
      encoding: 'utf8',
    })
    if (made.status !== 0)
      throw new Error(`initdb has failed: ${made.error?.message ?? made.stderr}`)
  }

  async #answers(): Promise<void> {
    for (let waitedMs = 0; ; waitedMs += POLL_MS) {
      const client = new pg.Client({ connectionString: this.url })
      try {
        await client.connect()
        return await client.end()
      } catch (error) {
        void client.end().catch(() => undefined)
        const isOver = this.#server?.exitCode != null
        if (isOver || waitedMs > START_MS)
          throw new Error(`PostgreSQL does not start: ${this.#log()}`, { cause: error })
        await new Promise<void>((resolve) => void this.#options.schedule(resolve, POLL_MS))
      }
    }
  }

  #log(): string {
    const log = join(this.#options.folder, 'postgres.log')
    return existsSync(log) ? readFileSync(log, 'utf8').slice(-2_000) : 'it has written nothing'
  }
}

/** The server refuses to run as root. @throws {Error} there is no other user to run it as. */
function unprivileged(): User | undefined {
  if (process.getuid?.() !== 0) return undefined
  const lines = readFileSync('/etc/passwd', 'utf8').split('\n')
  const [, , uid, gid] = (lines.find((line) => line.startsWith('postgres:')) ?? '').split(':')
  if (uid === undefined)
    throw new Error('PostgreSQL does not run as root, and there is no user postgres')
  return { uid: Number(uid), gid: Number(gid) }
}

/** An owner that lives cleans up by itself. */
const script = `while kill -0 "$1" 2>/dev/null && kill -0 "$2" 2>/dev/null; do sleep 0.5; done
  kill -0 "$1" 2>/dev/null && exit
  kill -"$3" "$2" 2>/dev/null
  while kill -0 "$2" 2>/dev/null; do sleep 0.5; done
  [ -z "$4" ] || rm -rf "$4"`

/**
 * Sends `signal` to the child when its owner is gone, and then removes `folder`. A process of its
 * own watches: an owner that is killed has no time to do it.
 */
export function endWith(
  ownerPid: number,
  childPid: number,
  signal: 'INT' | 'TERM',
  folder = '',
): void {
  const words = [String(ownerPid), String(childPid), signal, folder]
  spawn('sh', ['-c', script, 'sh', ...words], { detached: true, stdio: 'ignore' }).unref()
}

/** One instance of a demo with several: a process of this program that serves. */
export interface InstanceProcess {
  readonly name: string
  readonly pid: number
  /** `host:port`. */
  readonly api: string
  readonly sipPort: number
  /** Resolves with how it has ended. */
  readonly ended: Promise<string>
  /** The live calls of the instance may finish for a moment. */
  stop(): Promise<void>
}

/** Resolves when it serves. @throws {Error} it has ended before. */
export async function startInstance(
  { name, folder }: { readonly name: string; readonly folder: string },
  environment: Readonly<Record<string, string | undefined>>,
  context: Pick<CommandContext, 'pid' | 'print'>,
): Promise<InstanceProcess> {
  const { execPath, execArgv, argv } = process
  const child = spawn(execPath, [...execArgv, resolve(argv[1] ?? ''), 'serve'], {
    env: { ...environment, NODE_NAME: name, DATABASE_PATH: join(folder, `${name}.db`) },
    // In another folder the instance would read the `.env` of an installation.
    cwd: folder,
    // It has a session of its own: Ctrl-C is for the demo, which stops the calls first.
    detached: true,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const ended = once(child, 'exit').then(([code, signal]) =>
    signal === null ? `exit code ${String(code)}` : String(signal),
  )
  if (child.pid !== undefined) endWith(context.pid, child.pid, 'TERM')
  const ready = await Promise.race([readyLine(child, context), ended])
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

/** Earlier lines, such as a password that is shown once, are printed. */
function readyLine(child: ChildProcess, { print }: Pick<CommandContext, 'print'>): Promise<string> {
  const { stdout } = child
  if (stdout === null) return Promise.resolve('it has no output')
  return new Promise((resolve) => {
    createInterface({ input: stdout }).on('line', (line) => {
      if (line.startsWith('ready ')) resolve(line)
      else print(line)
    })
  })
}
