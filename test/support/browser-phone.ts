/**
 * A phone in a browser: Chromium (Debian: chromium) without a display, with JsSIP in its page,
 * driven by the DevTools protocol. Its microphone is a file with a tone.
 */
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { build } from 'esbuild'
import { WebSocket } from 'ws'
import { toneWav } from './tones.ts'
import { eventually } from './waiting.ts'

interface BrowserPhoneOptions {
  /** The tone that its microphone hears. */
  readonly toneHz?: number
}

interface Registration {
  /** `wss://…`; the certificate is not checked. */
  readonly server: string
  readonly user: string
  readonly password: string
  readonly domain: string
}

interface MediaStatistics {
  readonly packetsReceived: number
  readonly packetsLost: number
  readonly packetsSent: number
  readonly dtlsState: string
  readonly codec: string
}

/** A tone that is there is near -30 dB, and one that is not is under -90. */
const audibleDb = -60

export class BrowserPhone {
  readonly #process: ChildProcess
  readonly #folder: string
  readonly #pages: Server
  readonly #tools: DevTools

  private constructor(child: ChildProcess, folder: string, pages: Server, tools: DevTools) {
    this.#process = child
    this.#folder = folder
    this.#pages = pages
    this.#tools = tools
  }

  static async start({ toneHz = 440 }: BrowserPhoneOptions = {}): Promise<BrowserPhone> {
    const folder = mkdtempSync(join(tmpdir(), 'chromium-'))
    const tone = join(folder, 'tone.wav')
    writeFileSync(tone, toneWav(toneHz))
    const pages = await servePage()
    const child = spawn(
      'chromium',
      [...switches, `--user-data-dir=${folder}/profile`, toneSwitch(tone)],
      {
        stdio: ['ignore', 'ignore', 'pipe'],
        // Whatever it starts ends with it: a group of its own.
        detached: true,
      },
    )
    const tools = await DevTools.connect(await toolsAddress(child))
    const { port } = pages.address() as AddressInfo
    await tools.open(`http://localhost:${port}/`)
    const phone = new BrowserPhone(child, folder, pages, tools)
    await eventually(async () => {
      if ((await tools.evaluate('typeof phone')) !== 'object') throw new Error('no page')
    })
    return phone
  }

  register(registration: Registration): Promise<void> {
    return this.#run('register', registration)
  }

  /** Resolves when the call is up. */
  call(target: string): Promise<void> {
    return this.#run('call', target)
  }

  /** Waits for a call and takes it. */
  answer(): Promise<void> {
    return this.#run('answer')
  }

  hold(): Promise<void> {
    return this.#run('hold')
  }

  resume(): Promise<void> {
    return this.#run('resume')
  }

  sendDtmf(tones: string, by: 'RFC2833' | 'INFO'): Promise<void> {
    return this.#run('sendDtmf', tones, by)
  }

  hangUp(): Promise<void> {
    return this.#run('hangUp')
  }

  statistics(): Promise<MediaStatistics> {
    return this.#run('statistics')
  }

  /** Waits until this tone is heard. */
  hears(toneHz: number): Promise<void> {
    return this.#hears(toneHz, true)
  }

  /** Waits until this tone is not heard. */
  hearsNone(toneHz: number): Promise<void> {
    return this.#hears(toneHz, false)
  }

  #hears(toneHz: number, isAudible: boolean): Promise<void> {
    return eventually(async () => {
      const [level = 0] = await this.#run<readonly number[]>('levels', [toneHz])
      if (level > audibleDb !== isAudible)
        throw new Error(`the browser hears ${level} dB at ${toneHz} Hz`)
    })
  }

  /** Waits until its call is over. */
  async over(): Promise<void> {
    await eventually(async () => {
      if (!(await this.#run<boolean>('isOver'))) throw new Error('the call of the browser goes on')
    })
  }

  async stop(): Promise<void> {
    this.#tools.close()
    this.#pages.close()
    if (this.#process.exitCode === null && this.#process.signalCode === null) {
      const gone = once(this.#process, 'exit')
      process.kill(-(this.#process.pid ?? 0), 'SIGKILL')
      await gone
    }
    rmSync(this.#folder, { recursive: true, force: true, maxRetries: 5 })
  }

  async #run<Result = void>(name: string, ...values: readonly unknown[]): Promise<Result> {
    const words = values.map((value) => JSON.stringify(value)).join(', ')
    // The caller knows what the page gives, and names its type.
    return (await this.#tools.evaluate(`phone.${name}(${words})`)) as Result
  }
}

const switches = [
  '--headless=new',
  '--no-sandbox',
  '--disable-gpu',
  '--disable-dev-shm-usage',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--remote-debugging-port=0',
  '--use-fake-ui-for-media-stream',
  '--use-fake-device-for-media-stream',
  '--autoplay-policy=no-user-gesture-required',
  // The certificate is of an authority of the test, and media is of this machine.
  '--ignore-certificate-errors',
  '--allow-loopback-in-peer-connection',
]
const toneSwitch = (file: string): string => `--use-file-for-fake-audio-capture=${file}`

async function toolsAddress(child: ChildProcess): Promise<string> {
  if (child.stderr === null) throw new Error('no output')
  const lines: string[] = []
  const output = createInterface({ input: child.stderr })
  for await (const line of output) {
    const address = /^DevTools listening on (\S+)/.exec(line)?.[1]
    if (address !== undefined) {
      // Its later output must not fill the pipe.
      child.stderr.resume()
      return address
    }
    lines.push(line)
  }
  throw new Error(`chromium did not start:\n${lines.join('\n')}`)
}

/** Only a page of localhost may use the microphone. */
async function servePage(): Promise<Server> {
  const { outputFiles } = await build({
    entryPoints: [new URL('browser-page.mjs', import.meta.url).pathname],
    bundle: true,
    write: false,
    format: 'iife',
    platform: 'browser',
    logLevel: 'error',
    define: { global: 'globalThis' },
  })
  const script = (outputFiles[0]?.text ?? '').replaceAll('</script', String.raw`<\/script`)
  const page = `<!doctype html><meta charset="utf-8"><script>${script}</script>`
  const server = createServer((_request, response) => {
    response.setHeader('Content-Type', 'text/html')
    response.end(page)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return server
}

interface ToolsAnswer {
  readonly id?: number
  readonly error?: { readonly message: string }
  readonly result?: Record<string, unknown>
}

/** The DevTools protocol, as far as one page needs it. */
class DevTools {
  readonly #socket: WebSocket
  readonly #waiting = new Map<number, (answer: ToolsAnswer) => void>()
  #sessionId: unknown
  #lastId = 0

  private constructor(socket: WebSocket) {
    this.#socket = socket
    socket.on('message', (text: Buffer) => {
      const answer = JSON.parse(text.toString()) as ToolsAnswer
      this.#waiting.get(answer.id ?? 0)?.(answer)
      this.#waiting.delete(answer.id ?? 0)
    })
    socket.on('close', () => {
      for (const settle of this.#waiting.values()) settle({ error: { message: 'it has ended' } })
    })
    socket.on('error', () => undefined)
  }

  static async connect(address: string): Promise<DevTools> {
    const socket = new WebSocket(address)
    await once(socket, 'open')
    return new DevTools(socket)
  }

  async open(url: string): Promise<void> {
    const { targetId } = await this.#ask('Target.createTarget', { url })
    const { sessionId } = await this.#ask('Target.attachToTarget', { targetId, flatten: true })
    this.#sessionId = sessionId
  }

  /** The value of an expression; of a promise what it resolves with. */
  async evaluate(expression: string): Promise<unknown> {
    const options = { expression, awaitPromise: true, returnByValue: true }
    const answer = await this.#ask('Runtime.evaluate', options)
    const { result, exceptionDetails } = answer as Evaluated
    if (exceptionDetails)
      throw new Error(`${expression}: ${exceptionDetails.exception?.description ?? 'failed'}`)
    return result?.value
  }

  close(): void {
    this.#socket.terminate()
  }

  async #ask(method: string, params: object): Promise<Record<string, unknown>> {
    const id = (this.#lastId += 1)
    const answered = new Promise<ToolsAnswer>((resolve) => this.#waiting.set(id, resolve))
    this.#socket.send(JSON.stringify({ id, method, params, sessionId: this.#sessionId }))
    const { error, result = {} } = await answered
    if (error) throw new Error(`chromium: ${method}: ${error.message}`)
    return result
  }
}

interface Evaluated {
  readonly result?: { readonly value?: unknown }
  readonly exceptionDetails?: { readonly exception?: { readonly description?: string } }
}
