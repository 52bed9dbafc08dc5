/**
 * The program as a user runs it: its own process, a database (a file; with TEST_DATABASE=postgres
 * one on a server), real ports of 127.0.0.1. What happened is read from the database, as an
 * operator would with `sqlite3` or `psql`.
 */
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import Database from 'better-sqlite3'
import type { Listener } from '../../engine/sip-server/index.ts'
import type { JournalEntry } from '../../schema/journal/journal-entries.ts'
import { CallJournal } from '../../schema/journal/call-journal.ts'
import { JournalFiles } from '../../schema/journal/journal-files.ts'
import { Storage } from '../../schema/storage/storage.ts'
import { createKey, provision } from './commands-here.ts'
import { freePort } from './free-port.ts'
import { PassedSockets } from './passed-sockets.ts'
import { programDatabase } from './program-database.ts'
import { asRestarted, programEnvironment } from './program-environment.ts'
import { serverRows } from './server-rows.ts'
import { eventually, patienceMs } from './waiting.ts'

const program = 'dist/main.js'

interface OpenCall {
  readonly call_uuid: string
  readonly call_id: string
  /** Up to the last heartbeat. */
  readonly talkedMs: number
}

export interface StoredCall {
  readonly call_uuid: string
  readonly call_id: string
  /** Milliseconds UTC. */
  readonly start_stamp: number
  readonly disposition: string
  readonly sip_code: number
  readonly billsec: number
  readonly duration: number
  readonly cost_micros: number
  readonly hangup_by: string
  readonly hangup_cause: string
  readonly denial_code: string | null
  readonly node: string | null
  readonly carrier: string | null
  readonly direction: string
  readonly attempts: string
  readonly is_recovered: number
  readonly caller_id_number: string
  readonly destination_number: string
}

export class TollgateProcess {
  readonly folder: string
  readonly sipPort: number
  /**
   * The port for encrypted SIP and for WebSockets; listened on when the environment has a
   * certificate.
   */
  readonly tlsPort: number
  readonly wsPort: number
  readonly wssPort: number
  readonly apiPort: number
  readonly edgePort: number
  readonly databasePath: string
  readonly log: string[] = []
  /** Called with each log line when it arrives. */
  onLog: (line: string) => void = () => undefined
  #process: ChildProcess | undefined
  /** Its listeners outlive it; absent: it binds them. */
  #sockets: PassedSockets | undefined
  readonly #environment: Record<string, string>
  /** The URL of a database on a server. */
  readonly #databaseUrl: string | undefined
  readonly #dropDatabase: () => Promise<void>

  private constructor(
    folder: string,
    ports: Record<'sip' | 'tls' | 'ws' | 'wss' | 'api' | 'edge', number>,
    environment: Record<string, string>,
    dropDatabase: () => Promise<void>,
  ) {
    this.folder = folder
    this.#databaseUrl = environment['DATABASE_URL']
    this.#dropDatabase = dropDatabase
    this.sipPort = ports.sip
    this.tlsPort = ports.tls
    this.wsPort = ports.ws
    this.wssPort = ports.wss
    this.apiPort = ports.api
    this.edgePort = ports.edge
    this.databasePath = environment['DATABASE_PATH'] ?? join(folder, 'tollgate.db')
    const plain = ['udp', 'tcp'].map((protocol) => `${protocol}/127.0.0.1:${ports.sip}`)
    const others = (['tls', 'ws', 'wss'] as const).map((name) => `${name}/127.0.0.1:${ports[name]}`)
    const listen = environment['SIP_TLS_CERT'] === undefined ? plain : [...plain, ...others]
    this.#environment = {
      ...programEnvironment,
      DATABASE_PATH: this.databasePath,
      SIP_LISTEN: listen.join(','),
      API_LISTEN: `127.0.0.1:${ports.api}`,
      EDGE_LISTEN: `127.0.0.1:${ports.edge}`,
      LOG_LEVEL: 'info',
      ...environment,
    }
  }

  /** Provisions `seed` as `tollgate seed` does, starts, and waits until it is ready. */
  static async start(
    seed: object,
    environment: Record<string, string> = {},
    { isActivated = false } = {},
  ): Promise<TollgateProcess> {
    const folder = mkdtempSync(join(tmpdir(), 'tollgate-'))
    const ports = {
      sip: await freePort(),
      api: await freePort(),
      edge: await freePort(),
      tls: await freePort(),
      ws: await freePort(),
      wss: await freePort(),
    }
    const { settings, drop } = await programDatabase(environment)
    const tollgate = new TollgateProcess(folder, ports, { ...settings, ...environment }, drop)
    const file = join(folder, 'seed.json')
    writeFileSync(file, JSON.stringify(seed))
    await provision(tollgate.#environment, file)
    if (isActivated)
      tollgate.#sockets = await PassedSockets.bind([
        { protocol: 'udp', port: ports.sip },
        { protocol: 'tcp', port: ports.sip },
        { protocol: 'tcp', port: ports.api },
        { protocol: 'tcp', port: ports.edge },
      ])
    await tollgate.restart()
    return tollgate
  }

  /** The listener for a `SipPeer`. */
  listener(protocol: 'udp' | 'tcp' | 'tls' = 'udp'): Listener {
    const address = '127.0.0.1'
    const port = protocol === 'tls' ? this.tlsPort : this.sipPort
    return { protocol, address, port, advertisedHost: address, advertisedPort: port }
  }

  /** Log lines of level error or fatal. */
  get faults(): readonly string[] {
    return this.log.filter((line) => /"level":"(error|fatal)"/.test(line))
  }

  get pid(): number {
    return this.#process?.pid ?? 0
  }

  /** Runs one command to its end; answers with its standard output. */
  async run(words: readonly string[]): Promise<string> {
    const child = spawn(process.execPath, [program, ...words], { env: this.#environment })
    let output = ''
    let complaint = ''
    child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()))
    child.stderr.on('data', (chunk: Buffer) => (complaint += chunk.toString()))
    const [code] = await once(child, 'close')
    if (code !== 0)
      throw new Error(`tollgate ${words.join(' ')}: exit ${String(code)}: ${complaint}`)
    return output
  }

  /** A key made as `tollgate key create` makes it, with these options; answers with its token. */
  createKey(...words: readonly string[]): Promise<string> {
    return createKey(this.#environment, words)
  }

  /** @param changed settings that differ from those of the start, in this run only. */
  async restart(changed: Record<string, string> = {}): Promise<void> {
    const words = [...asRestarted.flags, program, 'serve']
    const env = { ...asRestarted.environment, ...this.#environment, ...changed }
    const child = this.#spawn(words, env)
    this.#process = child
    const { stdout, stderr } = child
    if (stdout === null || stderr === null) throw new Error('its output is not piped')
    createInterface({ input: stderr }).on('line', (line) => {
      this.log.push(line)
      this.onLog(line)
    })
    const lines = createInterface({ input: stdout })
    for await (const line of lines) if (line.startsWith('ready ')) return
    throw new Error(`tollgate did not start:\n${this.log.join('\n')}`)
  }

  #spawn(words: readonly string[], env: Record<string, string>): ChildProcess {
    const descriptors = this.#sockets?.descriptors ?? []
    // `LISTEN_PID` is known in the process only: a shell that becomes the program says it.
    const script = 'LISTEN_PID=$$ exec "$@"'
    return spawn('/bin/sh', ['-c', script, 'sh', process.execPath, ...words], {
      env: { ...env, ...(descriptors.length > 0 && { LISTEN_FDS: String(descriptors.length) }) },
      stdio: ['ignore', 'pipe', 'pipe', ...descriptors],
    })
  }

  /** As a service manager restarts it: it ends in order, and starts again. */
  async restartInOrder(): Promise<void> {
    await this.terminate()
    await this.restart()
  }

  signal(name: NodeJS.Signals): void {
    this.#process?.kill(name)
  }

  /** Ends the process without warning, as a power cut would. */
  async kill(): Promise<void> {
    await this.#end('SIGKILL')
  }

  /** As `kill`, or politely with SIGTERM; answers with the exit code. */
  async #end(signal: 'SIGKILL' | 'SIGTERM'): Promise<number | null> {
    const child = this.#process
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return null
    const closed = once(child, 'exit')
    child.kill(signal)
    const [code] = await closed
    return typeof code === 'number' ? code : null
  }

  /** Stops politely and removes everything. */
  async stop(): Promise<void> {
    await this.#end('SIGTERM')
    this.#sockets?.close()
    await this.#dropDatabase()
    rmSync(this.folder, { recursive: true, force: true })
  }

  async terminate(): Promise<number | null> {
    return this.#end('SIGTERM')
  }

  /** Asks in SQL that both databases know; parameters are `?`. */
  query<Row>(sql: string, ...values: readonly unknown[]): Row[] {
    if (this.#databaseUrl !== undefined) return serverRows<Row>(this.#databaseUrl, sql, values)
    const database = new Database(this.databasePath, { readonly: true })
    try {
      // The statement's columns are the caller's: it wrote the SQL.
      return database.prepare(sql).all(...values) as Row[]
    } finally {
      database.close()
    }
  }

  /** Changes what is stored, beside the program. SQL as for `query`. */
  change(sql: string, ...values: readonly unknown[]): void {
    if (this.#databaseUrl !== undefined) return void serverRows(this.#databaseUrl, sql, values)
    const database = new Database(this.databasePath)
    try {
      database.prepare(sql).run(...values)
    } finally {
      database.close()
    }
  }

  /** The calls in the order of their ends: a server stores many at once. */
  calls(): StoredCall[] {
    return this.query<StoredCall>('SELECT * FROM cdr ORDER BY end_stamp, id')
  }

  /** The files in which calls are that are not stored yet. */
  journalFiles(): readonly string[] {
    const folder = dirname(this.databasePath)
    const begin = `${basename(this.databasePath)}.calls-`
    return readdirSync(folder)
      .filter((name) => name.startsWith(begin))
      .map((name) => join(folder, name))
  }

  /** Their lines, as they are written. */
  journal(): readonly string[] {
    return this.journalFiles().flatMap((file) => readFileSync(file, 'utf8').split('\n'))
  }

  /** The calls that are answered and go on. */
  openCalls(): OpenCall[] {
    return this.#unstored().flatMap((entry) =>
      entry.kind === 'cut'
        ? [{ call_uuid: uuidOf(entry), call_id: entry.call.callId, talkedMs: entry.talkedMs }]
        : [],
    )
  }

  /** How many calls go on, or have ended and are not in the database yet. */
  countUnstored(): number {
    return this.#unstored().length
  }

  /** The calls that the journal has and the database has not. */
  #unstored(): JournalEntry[] {
    const [id] = this.query<{ value: string }>(
      "SELECT value FROM setting WHERE name = 'database_id'",
    )
    const journal = new CallJournal(new JournalFiles(this.databasePath, id?.value ?? ''), {
      storage: new Storage(),
      schedule: () => () => undefined,
      // A line that kill -9 has cut off is a warning: its caller was not informed.
      log: (level, message) => {
        if (level === 'error') throw new Error(message)
      },
    })
    const left = journal.left()
    const stored = new Set(this.#storedOf(left.map(uuidOf)))
    return left.filter((entry) => !stored.has(uuidOf(entry)))
  }

  #storedOf(callUuids: readonly string[]): readonly string[] {
    if (callUuids.length === 0) return []
    const places = callUuids.map(() => '?').join(', ')
    const rows = this.query<{ call_uuid: string }>(
      `SELECT call_uuid FROM cdr WHERE call_uuid IN (${places})`,
      ...callUuids,
    )
    return rows.map((row) => row.call_uuid)
  }

  /** Waits until `count` calls are stored; records are written in groups, shortly after the end. */
  waitForCalls(count: number, withinMs = patienceMs): Promise<StoredCall[]> {
    return eventually(() => {
      const calls = this.calls()
      if (calls.length < count) throw new Error(`${calls.length} of ${count} calls are stored`)
      return calls
    }, withinMs)
  }

  /** Balance of a customer's wallet in micro-units, and what its ledger adds up to. */
  wallet(customer: string): { balance: number; ledger: number; debits: number } {
    const [row] = this.query<{ balance: number; ledger: number; debits: number }>(
      `SELECT w.balance_micros AS balance,
         (SELECT coalesce(sum(amount_micros), 0) FROM ledger_entry WHERE wallet_id = w.id) AS ledger,
         (SELECT count(*) FROM ledger_entry WHERE wallet_id = w.id AND kind = 'debit') AS debits
       FROM wallet w JOIN customer c ON c.id = w.customer_id WHERE c.name = ?`,
      customer,
    )
    if (row === undefined) throw new Error(`customer ${customer} has no wallet`)
    return row
  }
}

const uuidOf = ({ callUuid }: JournalEntry): string => callUuid
