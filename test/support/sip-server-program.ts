/**
 * The program of the SIP server on real sockets, in this process: its words, files and variables
 * are those of a test.
 */
import { onTestFinished } from 'vitest'
import type { Listener } from '../../engine/sip-server/index.ts'
import { runProgram, type ProgramWorld } from '../../engine/sip-server/program/program.ts'
import { SipPeer } from './sip-peer.ts'
import type { PeerOptions } from './peer-socket.ts'
import { Signal } from './waiting.ts'

/** The contents of files by path. They may change while the program runs. */
export type Files = Record<string, string>

interface Surroundings {
  readonly files?: Files
  readonly environment?: Readonly<Record<string, string>>
}

/** The world of a program: keeps what it says to the one that has started it. */
export function programWorld({ files = {}, environment = {} }: Surroundings = {}) {
  const printed: string[] = []
  const logged: string[] = []
  const spoke = new Signal()
  let stop = (): void => undefined
  let reload = (): void => undefined
  const world: ProgramWorld = {
    environment,
    version: '1.2.3',
    print: (line) => {
      printed.push(line)
      spoke.fire()
    },
    readFile: (path) => files[path],
    createLog: (level) => ({
      log: (of, message, fields) =>
        void logged.push(
          `${level} ${of} ${message}${fields === undefined ? '' : ` ${JSON.stringify(fields)}`}`,
        ),
      flush: () => Promise.resolve(),
    }),
    randomBytes: (size) => crypto.getRandomValues(new Uint8Array(size)),
    onStopSignal: (listener) => (stop = listener),
    onReloadSignal: (listener) => (reload = listener),
  }
  return { world, printed, logged, spoke, end: () => stop(), reload: () => reload() }
}

export class SipServerProgram {
  readonly printed: readonly string[]
  readonly logged: readonly string[]
  /** As SIGHUP does. */
  readonly reload: () => void
  readonly stop: () => Promise<void>

  private constructor(
    { printed, logged, reload }: ReturnType<typeof programWorld>,
    stop: () => Promise<void>,
  ) {
    this.printed = printed
    this.logged = logged
    this.reload = reload
    this.stop = stop
  }

  /** Until it serves, or has ended. */
  static async start(
    words: string | readonly string[],
    surroundings: Surroundings = {},
  ): Promise<SipServerProgram> {
    const own = programWorld(surroundings)
    const given = typeof words === 'string' ? words.split(' ').filter(Boolean) : words
    const ended = runProgram(given, own.world)
    const stop = async (): Promise<void> => {
      own.end()
      await ended
    }
    await Promise.race([own.spoke.until(() => own.printed.length > 0), ended])
    onTestFinished(stop)
    return new SipServerProgram(own, stop)
  }

  /** The place behind `name=` in the line that says that it is ready. */
  place(name: 'admin' | 'admin-tls' | 'metrics'): { readonly host: string; readonly port: number } {
    const parts = new RegExp(` ${name}=(\\S+):(\\d+)`).exec(this.printed[0] ?? '')
    return { host: parts?.[1] ?? '', port: Number(parts?.[2]) }
  }

  /** The address for `connectByTcp`. */
  get adminAddress(): { readonly host: string; readonly port: number } {
    return this.place('admin')
  }

  port(protocol: string): number {
    return Number(new RegExp(`${protocol}/[^,\\s]*:(\\d+)`).exec(this.printed[0] ?? '')?.[1])
  }

  uri(user: string, protocol: Listener['protocol'] = 'udp'): string {
    return `sip:${user}@127.0.0.1:${this.port(protocol)}`
  }

  /** A SIP endpoint beside it. */
  async peer(
    protocol: Listener['protocol'] = 'udp',
    options: PeerOptions = {},
    port = this.port(protocol),
  ): Promise<SipPeer> {
    const place = { address: '127.0.0.1', advertisedHost: '127.0.0.1' }
    const peer = await SipPeer.open({ protocol, port, advertisedPort: port, ...place }, options)
    onTestFinished(() => peer.close())
    return peer
  }
}
