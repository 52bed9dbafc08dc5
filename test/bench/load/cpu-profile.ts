/** CPU profiles of a started process, taken through V8's inspector and read by source file. */
import { readFileSync, readdirSync } from 'node:fs'
import { SourceMap, type SourceMapPayload } from 'node:module'
import WebSocket from 'ws'

/** One line of a profile: the time that a function took itself. */
export interface Share {
  /**
   * Path in the project, `node_modules/…`, `node:…`, or a name in parentheses for V8's own work.
   */
  readonly file: string
  readonly name: string
  readonly micros: number
}

/** What the thread did for so long, as `file name` of each function, the innermost first. */
export interface Sample {
  readonly stack: readonly string[]
  readonly micros: number
}

interface ProfileNode {
  readonly id: number
  readonly callFrame: {
    readonly functionName: string
    readonly url: string
    readonly lineNumber: number
    readonly columnNumber: number
  }
  readonly children?: readonly number[]
}

interface Profile {
  readonly nodes: readonly ProfileNode[]
  readonly samples: readonly number[]
  readonly timeDeltas: readonly number[]
}

const SAMPLE_MICROS = 500

/** Connects to a process that was started with `--inspect=127.0.0.1:<port>`. */
export class Profiler {
  readonly #socket: WebSocket
  readonly #waiting = new Map<number, (result: unknown) => void>()
  #lastId = 0

  private constructor(socket: WebSocket) {
    this.#socket = socket
    socket.on('message', (data: Buffer) => {
      const { id, result } = JSON.parse(data.toString()) as { id?: number; result?: unknown }
      if (id === undefined) return
      this.#waiting.get(id)?.(result)
      this.#waiting.delete(id)
    })
  }

  static async connect(port: number): Promise<Profiler> {
    const answer = await fetch(`http://127.0.0.1:${port}/json/list`)
    const [target] = (await answer.json()) as { webSocketDebuggerUrl: string }[]
    if (target === undefined) throw new Error(`nothing to profile at port ${port}`)
    const socket = new WebSocket(target.webSocketDebuggerUrl, { maxPayload: 0 })
    await new Promise((resolve, reject) => socket.once('open', resolve).once('error', reject))
    const profiler = new Profiler(socket)
    await profiler.#ask('Profiler.enable')
    await profiler.#ask('Profiler.setSamplingInterval', { interval: SAMPLE_MICROS })
    return profiler
  }

  async start(): Promise<void> {
    await this.#ask('Profiler.start')
  }

  /** Tells what the main thread did since `start`, without its idle time. */
  async stop(): Promise<readonly Share[]> {
    return sharesOf(await this.#stop())
  }

  /** The same in the order of time, with the idle time. */
  async stopInOrder(): Promise<readonly Sample[]> {
    return samplesOf(await this.#stop())
  }

  async #stop(): Promise<Profile> {
    const { profile } = (await this.#ask('Profiler.stop')) as { profile: Profile }
    return profile
  }

  close(): void {
    this.#socket.terminate()
  }

  #ask(method: string, params: object = {}): Promise<unknown> {
    this.#lastId += 1
    const id = this.#lastId
    this.#socket.send(JSON.stringify({ id, method, params }))
    return new Promise((resolve) => this.#waiting.set(id, resolve))
  }
}

function sharesOf(profile: Profile): readonly Share[] {
  const nodes = new Map(profile.nodes.map((node) => [node.id, node]))
  const parents = new Map<number, ProfileNode>()
  for (const node of profile.nodes) for (const id of node.children ?? []) parents.set(id, node)
  const micros = new Map<number, number>()
  profile.samples.forEach((id, index) =>
    micros.set(id, (micros.get(id) ?? 0) + (profile.timeDeltas[index] ?? 0)),
  )
  const sourceOf = sources()
  const shares = new Map<string, Share>()
  for (const [id, spent] of micros) {
    const node = nodes.get(id)
    if (node === undefined || node.callFrame.functionName === '(idle)') continue
    const { functionName } = node.callFrame
    // A function of the runtime that is not JavaScript counts for the file that calls it.
    let caller: ProfileNode | undefined = node
    while (caller !== undefined && caller.callFrame.url === '') caller = parents.get(caller.id)
    const isOfV8 = functionName.startsWith('(')
    const file = caller === undefined || isOfV8 ? `(${functionName})` : sourceOf(caller.callFrame)
    const name = node.callFrame.url === '' ? `${functionName} (native)` : functionName
    const key = `${file} ${name}`
    shares.set(key, { file, name, micros: (shares.get(key)?.micros ?? 0) + spent })
  }
  return [...shares.values()].toSorted((a, b) => b.micros - a.micros)
}

function samplesOf(profile: Profile): readonly Sample[] {
  const nodes = new Map(profile.nodes.map((node) => [node.id, node]))
  const parents = new Map<number, ProfileNode>()
  for (const node of profile.nodes) for (const id of node.children ?? []) parents.set(id, node)
  const sourceOf = sources()
  const stacks = new Map<number, readonly string[]>()
  const stackOf = (id: number): readonly string[] => {
    const known = stacks.get(id)
    if (known !== undefined) return known
    const stack: string[] = []
    for (let node = nodes.get(id); node !== undefined; node = parents.get(node.id)) {
      const { functionName, url } = node.callFrame
      stack.push(`${url === '' ? '' : sourceOf(node.callFrame)} ${functionName}`)
    }
    stacks.set(id, stack)
    return stack
  }
  return profile.samples.map((id, index) => ({
    stack: stackOf(id),
    // A delta is the time since the sample before.
    micros: Math.max(0, profile.timeDeltas[index + 1] ?? 0),
  }))
}

/** Finds the source of a place in the bundle. */
function sources(): (frame: ProfileNode['callFrame']) => string {
  const maps = new Map<string, SourceMap>()
  for (const file of readdirSync('dist').filter((name) => name.endsWith('.js.map')))
    maps.set(
      file.slice(0, -'.map'.length),
      new SourceMap(JSON.parse(readFileSync(`dist/${file}`, 'utf8')) as SourceMapPayload),
    )
  return ({ url, lineNumber, columnNumber }) => {
    const map = maps.get(url.slice(url.lastIndexOf('/') + 1))
    const entry = map?.findEntry(lineNumber, columnNumber)
    const path = entry !== undefined && 'originalSource' in entry ? entry.originalSource : url
    return path.replace(/^.*?(?=(engine|control|schema|node_modules)\/)/, '')
  }
}
