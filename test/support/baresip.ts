/**
 * baresip (Debian: baresip-core), a real phone without a face: one account, a tone as its
 * microphone, driven over its control socket (netstrings of JSON).
 */
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from './free-port.ts'
import { shareInLastDump } from './tones.ts'
import { eventually, patienceMs } from './waiting.ts'

export interface BaresipOptions {
  readonly user: string
  readonly password: string
  /** The line of its file of accounts, instead of one that is made of the other options. */
  readonly account?: string
  readonly domain: string
  /** Tollgate's SIP port on 127.0.0.1. */
  readonly sipPort: number
  readonly transport?: 'udp' | 'tcp' | 'tls'
  /** `auto` unless said otherwise: it picks up by itself. */
  readonly answerMode?: 'auto' | 'manual'
  /**
   * The authorities for TLS; this version of baresip does not hold it against the server's
   * certificate.
   */
  readonly caFile?: string
  /** The tone that its microphone hears. */
  readonly toneHz?: number
}

/** A share of the sound that is no accident: two tones at once have half each. */
const audible = 0.2

export interface BaresipEvent {
  readonly type: string
  readonly param?: string
  readonly peeruri?: string
}

export class Baresip {
  readonly events: BaresipEvent[] = []
  readonly #process: ChildProcess
  readonly #socket: Socket
  readonly #folder: string
  #buffered = Buffer.alloc(0)
  readonly #waiting: (() => void)[] = []
  readonly #answers: string[] = []

  private constructor(child: ChildProcess, socket: Socket, folder: string) {
    this.#process = child
    this.#socket = socket
    this.#folder = folder
    socket.on('data', (bytes: Buffer) => this.#read(bytes))
    socket.on('error', () => undefined)
  }

  /** Starts the phone, which registers by itself. */
  static async start(options: BaresipOptions): Promise<Baresip> {
    const folder = mkdtempSync(join(tmpdir(), 'baresip-'))
    const controlPort = await freePort()
    writeFileSync(join(folder, 'config'), configOf(controlPort, folder, options))
    writeFileSync(join(folder, 'accounts'), `${options.account ?? accountOf(options)}\n`)
    // Standard input stays open: at its end the phone quits.
    const child = spawn('baresip', ['-f', folder], { stdio: ['pipe', 'ignore', 'ignore'] })
    return new Baresip(child, await connectTo(controlPort, child), folder)
  }

  /** The next event of one of these types that has not been taken yet. */
  async next(...types: readonly string[]): Promise<BaresipEvent> {
    const deadline = Date.now() + patienceMs
    for (;;) {
      const at = this.events.findIndex(({ type }) => types.includes(type))
      const [event] = at === -1 ? [] : this.events.splice(at, 1)
      if (event) return event
      await this.#more(deadline, `no ${types.join(' or ')}`)
    }
  }

  /**
   * Waits until the phone is registered. Asked rather than listened for: a phone that starts fast
   * has registered before a listener can be attached.
   */
  async registered(): Promise<void> {
    const deadline = Date.now() + patienceMs
    // Coloured for a terminal: the escape sequence ends in a letter right before it.
    while (!/OK/.test(await this.command('reginfo'))) {
      if (Date.now() > deadline) throw new Error('baresip: not registered')
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
  }

  /** Runs a command of baresip's menu, such as `dial`; answers with what it prints. */
  async command(command: string, params = ''): Promise<string> {
    const text = JSON.stringify({ command, params })
    this.#socket.write(`${Buffer.byteLength(text)}:${text},`)
    const deadline = Date.now() + patienceMs
    for (;;) {
      const answer = this.#answers.shift()
      if (answer !== undefined) return answer
      await this.#more(deadline, `no answer to ${command}`)
    }
  }

  /**
   * Media packets of the present call, so far: the phone counts them by source, and a tone of the
   * relay is one.
   */
  async received(): Promise<number> {
    const sources = [...(await this.command('audio_debug')).matchAll(/rcvd=(\d+)/g)]
    return sources.reduce((sum, [, count]) => sum + Number(count), 0)
  }

  /** Waits until more media has come. */
  async hearsMore(): Promise<void> {
    const before = await this.received()
    await eventually(async () => {
      if ((await this.received()) <= before + 10) throw new Error('baresip: hears nothing')
    })
  }

  /** Waits until these tones are heard. */
  async hears(...tonesHz: readonly number[]): Promise<void> {
    await eventually(() => {
      for (const hz of tonesHz)
        if (this.shareOf(hz) < audible)
          throw new Error(`baresip: hears no ${hz} Hz: ${this.shareOf(hz)}`)
    })
  }

  /** Waits until none of these tones is heard: another one is, or nothing. */
  async hearsNone(...tonesHz: readonly number[]): Promise<void> {
    await eventually(() => {
      for (const hz of tonesHz)
        if (this.shareOf(hz) > 0.01) throw new Error(`baresip: hears ${hz} Hz: ${this.shareOf(hz)}`)
    })
  }

  /**
   * How much of what it has heard in the last half second is this tone: 0 to 1. This version of
   * baresip writes nothing down any more once the direction of its media has changed (hold):
   * `hearsMore` tells then whether it hears.
   */
  shareOf(hz: number): number {
    return shareInLastDump(this.#folder, hz)
  }

  async stop(): Promise<void> {
    this.#socket.destroy()
    if (this.#process.exitCode === null && this.#process.signalCode === null) {
      const gone = once(this.#process, 'exit')
      this.#process.kill('SIGKILL')
      await gone
    }
    rmSync(this.#folder, { recursive: true, force: true })
  }

  async #more(deadline: number, complaint: string): Promise<void> {
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<never>((_resolve, reject) => {
      const seen = this.events.map(({ type, param }) => `${type} ${param ?? ''}`).join('; ')
      timer = setTimeout(
        () => reject(new Error(`baresip: ${complaint}; there are: ${seen}`)),
        Math.max(0, deadline - Date.now()),
      )
    })
    await Promise.race([new Promise<void>((resolve) => this.#waiting.push(resolve)), late])
    clearTimeout(timer)
  }

  #read(bytes: Buffer): void {
    this.#buffered = Buffer.concat([this.#buffered, bytes])
    for (;;) {
      const colon = this.#buffered.indexOf(':')
      const length = Number(this.#buffered.toString('utf8', 0, Math.max(colon, 0)))
      if (colon === -1 || this.#buffered.length < colon + length + 2) break
      const text = this.#buffered.toString('utf8', colon + 1, colon + 1 + length)
      this.#buffered = this.#buffered.subarray(colon + length + 2)
      // Its messages have baresip's own format; the fields are read as they are named.
      const message = JSON.parse(text) as BaresipEvent & { event?: true; data?: string }
      if (message.event === true) this.events.push(message)
      else this.#answers.push(message.data ?? '')
    }
    for (const wake of this.#waiting.splice(0)) wake()
  }
}

async function connectTo(port: number, child: ChildProcess): Promise<Socket> {
  for (;;) {
    const socket = connect(port, '127.0.0.1')
    try {
      await once(socket, 'connect')
      return socket
    } catch {
      socket.destroy()
      if (child.exitCode !== null) throw new Error('baresip has ended')
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
  }
}

const accountOf = ({
  user,
  password,
  domain,
  sipPort,
  transport = 'udp',
  answerMode = 'auto',
}: BaresipOptions) =>
  `<sip:${user}@${domain};transport=${transport}>;auth_user=${user};auth_pass=${password};` +
  `outbound="sip:127.0.0.1:${sipPort};transport=${transport}";answermode=${answerMode};regint=60`

/** Media above the ports that a kernel gives by itself: the tests' own ones are below them. */
const configOf = (
  controlPort: number,
  folder: string,
  { caFile, toneHz = 440 }: BaresipOptions,
): string => `
net_interface 127.0.0.1
sip_listen 127.0.0.1:0
${caFile === undefined ? '' : `sip_cafile ${caFile}`}
rtp_ports 61000-65535
audio_source ausine,${toneHz}
audio_player aubridge,nil
audio_alert aubridge,nil
ausrc_srate 48000
ausrc_channels 2
module_path /usr/lib/baresip/modules
module g711.so
module ausine.so
module aubridge.so
module stdio.so
module sndfile.so
snd_path ${folder}
module_app account.so
module_app menu.so
module_app ctrl_tcp.so
ctrl_tcp_listen 127.0.0.1:${controlPort}
`
