/**
 * Several instances of one installation: one database, an engine and an API each, joined by HTTP in
 * memory.
 */
import { Agent, type ClientRequestArgs, type Server } from 'node:http'
import { type Duplex, duplexPair } from 'node:stream'
import type { ControlDeps } from '../../control/app.ts'
import { OtherInstances } from '../../control/instances/other-instances.ts'
import { createControl } from '../../control/server.ts'
import { EventLog } from '../../engine/event-log.ts'
import {
  openControl,
  startOfTime,
  type Answer,
  type TestControl,
  type RequestOptions,
} from './control.ts'
import { connectionTo, served, type ServedApp } from './in-memory-http.ts'
import { ManualTime } from './manual-time.ts'
import { type TestEngine, testEngine } from './test-engine.ts'

/** How an instance is for the others. */
type Link = 'up' | 'refused' | 'silent'

export interface JoinedInstance {
  readonly name: string
  readonly engine: TestEngine
  readonly events: EventLog
  readonly app: ServedApp
  readonly server: Server
  readonly hub: ReturnType<typeof createControl>['hub']
  readonly feed: ReturnType<typeof createControl>['feed']
  readonly others: OtherInstances
  /** The link for requests that reach it. */
  link: Link
  /** Whether its heartbeat says that it lives. */
  isAlive: boolean
  /** Raw requests that other instances have sent to it. */
  readonly received: string[]
  request(path: string, options?: RequestOptions): Promise<Answer>
}

export interface JoinedInstances {
  readonly control: TestControl
  readonly time: ManualTime
  readonly instances: readonly JoinedInstance[]
  /** Lets time pass until `answer` is there; resolves with it and with how long it took. */
  after<T>(answer: Promise<T>): Promise<{ readonly answer: T; readonly tookMs: number }>
}

interface JoinOptions {
  /** Differs from the key of the other instances. */
  readonly keyOf?: (name: string) => Buffer
  readonly depsOf?: (name: string, engine: TestEngine) => Partial<ControlDeps>
  readonly control?: TestControl
}

export async function joinInstances(
  names: readonly string[],
  { keyOf = () => sharedKey, depsOf = () => ({}), ...given }: JoinOptions = {},
): Promise<JoinedInstances> {
  const control = given.control ?? (await openControl())
  const time = new ManualTime(startOfTime)
  const instances: JoinedInstance[] = []
  const agent = new MemoryAgent(instances)
  for (const [index, name] of names.entries()) {
    const events = new EventLog(() => time.now() + index)
    const engine = testEngine(events)
    const clocks = { now: time.wallNow, steadyNow: time.now, schedule: time.schedule }
    const others = new OtherInstances({
      ...control.deps,
      ...clocks,
      self: name,
      key: keyOf(name),
      agent,
      peers: () =>
        instances
          .filter((other) => other.name !== name)
          .map((other) => ({
            name: other.name,
            apiUrl: `http://${other.name}.test:8080`,
            isAlive: other.isAlive,
          })),
    })
    const deps = { ...control.deps, ...clocks, engine, others, ...depsOf(name, engine) }
    const made = createControl(deps, { connectionsPerAddress: 4_096 })
    const { app: api, server } = made.api
    const app = served(api, server)
    instances.push({
      name,
      engine,
      events,
      app,
      server,
      hub: made.hub,
      feed: made.feed,
      others,
      link: 'up',
      isAlive: true,
      received: [],
      request: (path, options) => control.request(path, { ...options, app }),
    })
  }
  return {
    control,
    time,
    instances,
    async after(answer) {
      const start = time.now()
      const progress = { isThere: false }
      const watched = answer.finally(() => (progress.isThere = true))
      void watched.catch(() => undefined)
      // Instances that answer do so without time: only when nothing moves does it pass. A database
      // server takes real time.
      for (let turns = 0, since = performance.now(); !progress.isThere; turns += 1) {
        await turn()
        await control.store.settled()
        if (turns < TURNS_PER_STEP || performance.now() - since < STILL_MS) continue
        time.advance(STEP_MS)
        turns = 0
        since = performance.now()
      }
      return { answer: await watched, tookMs: time.now() - start }
    },
  }
}

/** As long as a request and its response through memory take many times. */
const TURNS_PER_STEP = 200
/** Longer than what Node's pool of threads is asked for. */
const STILL_MS = 30
const STEP_MS = 100

export const sharedKey = Buffer.alloc(32, 7)

const turn = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve))

/** Finds the server of an instance by its host name. */
class MemoryAgent extends Agent {
  readonly #instances: readonly JoinedInstance[]

  constructor(instances: readonly JoinedInstance[]) {
    super()
    this.#instances = instances
  }

  override createConnection({ host }: ClientRequestArgs): Duplex {
    const index = this.#instances.findIndex(({ name }) => `${name}.test` === host)
    const instance = this.#instances[index]
    if (instance === undefined || instance.link === 'refused') {
      const [client] = duplexPair()
      process.nextTick(() => client.destroy(new Error('connect ECONNREFUSED')))
      return client
    }
    if (instance.link === 'silent') return duplexPair()[0]
    const connection = connectionTo(instance.server, `10.0.0.${index + 1}`)
    const write = connection.write.bind(connection) as (chunk: unknown, ...rest: never[]) => boolean
    connection.write = (chunk: unknown, ...rest: never[]) => {
      instance.received.push(String(chunk))
      return write(chunk, ...rest)
    }
    return connection
  }
}
