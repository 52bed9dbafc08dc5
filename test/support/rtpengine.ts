/**
 * Media relays: rtpengine in user space, on loopback and unprivileged, with a folder of its own for
 * recordings.
 */
import { spawn, type ChildProcess } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import type { Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as delay } from 'node:timers/promises'
import { NgClient, openNgSocket } from '../../engine/media/relay/ng-client.ts'
import type { NgAnswer, NgDictionary, NgRequest } from '../../engine/media/relay/relays.ts'
import { claim, freePort } from './free-port.ts'
import { eventually } from './waiting.ts'

/** Debian puts it where a user's PATH may not lead. */
const path = `${process.env['PATH'] ?? ''}:/usr/sbin`

/** As a rule it ends in a tenth of it. */
const PATIENCE_MS = 5_000

/** A test gives it six seconds to answer, where a call has 0.6. */
const SLOWER = 10

/** Above the ports that the kernel and other tests use. */
const mediaPorts = { first: 61_000, end: 65_500 }
/**
 * The ports of one relay: two must not have one in common, since rtpengine binds also what another
 * rtpengine has bound.
 */
const SHARE = 500

interface Share {
  readonly first: number
  readonly last: number
  /** Keep it from other relays. */
  readonly claims: readonly Server[]
}

const claimShare = (count: number): Promise<Share> =>
  eventually(async () => {
    const { first: lowest, end } = mediaPorts
    for (let first = end - count * SHARE; first >= lowest; first -= SHARE) {
      const last = first + count * SHARE - 1
      const wanted = Array.from({ length: count }, (_, at) => claim(first + at * SHARE))
      const claims = (await Promise.all(wanted)).filter((each) => each !== undefined)
      if (claims.length === count) return { first, last, claims }
      for (const each of claims) each.close()
    }
    throw new Error('other relays have the ports')
  })

interface RtpEngineOptions {
  /** Further arguments, such as `--mos=LQ`. */
  readonly words?: readonly string[]
  /** The address that descriptions have instead of its own. */
  readonly advertised?: string
  /** How many shares of the ports of media, for many sessions at once: 125 each. There are nine. */
  readonly shares?: number
}

export class RtpEngine {
  readonly port: number
  /** Lines on standard error. */
  readonly log: string[] = []
  /** It has `pcaps` and `metadata`. */
  readonly recordingFolder: string
  readonly #folder: string
  readonly #words: readonly string[]
  readonly #interface: string
  readonly #share: Share
  #child: ChildProcess | undefined
  #client: NgClient | undefined

  private constructor(port: number, share: Share, { words = [], advertised }: RtpEngineOptions) {
    this.port = port
    this.#share = share
    this.#folder = mkdtempSync(join(tmpdir(), 'rtpengine-'))
    this.recordingFolder = join(this.#folder, 'recordings')
    mkdirSync(this.recordingFolder)
    this.#words = words
    this.#interface = advertised === undefined ? '127.0.0.1' : `127.0.0.1!${advertised}`
  }

  /** Resolves when it answers. */
  static async start(options: RtpEngineOptions = {}): Promise<RtpEngine> {
    const relay = new RtpEngine(await freePort(), await claimShare(options.shares ?? 1), options)
    await relay.restart()
    return relay
  }

  /** As `RTPENGINE` names it. */
  get setting(): string {
    return `udp/127.0.0.1:${this.port}`
  }

  get pid(): number {
    const pid = this.#child?.pid
    if (pid === undefined) throw new Error('rtpengine does not run')
    return pid
  }

  /** After `kill` or `stop`, on the same port. Resolves when it answers. */
  async restart(): Promise<void> {
    const place = `127.0.0.1:${this.port}`
    const child = spawn(
      'rtpengine',
      [
        '--config-file=none',
        '--table=-1',
        '--foreground',
        '--log-stderr',
        '--log-level=5',
        `--listen-ng=${place}`,
        `--listen-cli=127.0.0.1:${this.port + 1}`,
        `--interface=${this.#interface}`,
        `--pidfile=${join(this.#folder, 'pid')}`,
        '--mos=LQ',
        `--port-min=${this.#share.first}`,
        `--port-max=${this.#share.last}`,
        `--recording-dir=${this.recordingFolder}`,
        '--recording-method=pcap',
        ...this.#words,
      ],
      { env: { PATH: path }, stdio: ['ignore', 'ignore', 'pipe'] },
    )
    this.#child = child
    createInterface({ input: child.stderr }).on('line', (line) => this.log.push(line))
    const failed = new Promise<never>((_resolve, reject) => {
      child.once('error', reject)
      child.once('exit', () => reject(new Error(`rtpengine: ${this.log.join('\n')}`)))
    })
    failed.catch(() => undefined)
    const answers = eventually(async () => {
      const answer = await this.request({ command: 'ping' })
      if (answer.kind !== 'ok') await delay(20)
      if (answer.kind !== 'ok') throw new Error('rtpengine does not answer')
    })
    await Promise.race([answers, failed])
  }

  /** Asks past the program under test. */
  request(command: NgRequest): Promise<NgAnswer> {
    this.#client ??= new NgClient({
      open: (events) => openNgSocket({ address: '127.0.0.1', port: this.port }, events),
      newCookie: randomUUID,
      now: () => performance.now() / SLOWER,
      schedule: (work, delayMs) => {
        const timer = setTimeout(work, delayMs * SLOWER)
        return () => clearTimeout(timer)
      },
      onAnswer: () => undefined,
      onTimeout: () => undefined,
      onRefusal: () => undefined,
    })
    return this.#client.request(command)
  }

  /** The ng call-ids of its sessions. */
  async sessions(): Promise<readonly string[]> {
    const { calls } = await this.#values({ command: 'list', limit: '20000' })
    if (!Array.isArray(calls)) throw new Error('rtpengine lists no calls')
    return calls.map(String)
  }

  /** Waits until it has no session. */
  async idle(): Promise<void> {
    await eventually(async () => {
      const sessions = await this.sessions()
      if (sessions.length > 0) throw new Error(`rtpengine has sessions: ${sessions.join(', ')}`)
    })
  }

  /** Its knowledge of one session. */
  query(callId: string): Promise<NgDictionary> {
    return this.#values({ command: 'query', 'call-id': callId })
  }

  /** It stands still: nothing is answered, and what arrives waits. */
  async pause(): Promise<void> {
    const { pid } = this
    process.kill(pid, 'SIGSTOP')
    // Its threads stop one after the other, and one of them may answer yet.
    await eventually(() => {
      const states = readdirSync(`/proc/${pid}/task`).map((task) =>
        readFileSync(`/proc/${pid}/task/${task}/stat`, 'utf8')
          .replace(/^.*\) /s, '')
          .charAt(0),
      )
      if (states.some((state) => state !== 'T'))
        throw new Error(`rtpengine runs: ${states.join('')}`)
    })
  }

  resume(): void {
    process.kill(this.pid, 'SIGCONT')
  }

  /** Ends it at once, as a crash does. */
  async kill(): Promise<void> {
    await this.#end('SIGKILL')
  }

  async stop(): Promise<void> {
    await this.#end('SIGTERM')
    this.#client?.close()
    for (const each of this.#share.claims) each.close()
    rmSync(this.#folder, { recursive: true, force: true })
  }

  async #end(signal: NodeJS.Signals): Promise<void> {
    const child = this.#child
    this.#child = undefined
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return
    const closed = once(child, 'exit')
    const force = setTimeout(() => child.kill('SIGKILL'), PATIENCE_MS)
    child.kill(signal)
    // One that stands still hears no signal.
    child.kill('SIGCONT')
    await closed
    clearTimeout(force)
  }

  async #values(command: NgRequest): Promise<NgDictionary> {
    const answer = await this.request(command)
    if (answer.kind === 'ok') return answer.values
    throw new Error(`rtpengine: ${answer.kind === 'error' ? answer.reason : 'no answer'}`)
  }
}
