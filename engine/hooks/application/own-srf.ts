/**
 * The `Srf` that files of the operator get: drachtio-srf's own, which connects to the server beside
 * it, whatever host, port and secret it is told. After its last middleware an INVITE goes on.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import { APPLICATION_CALL } from '../../call/application/private-headers.ts'
import { CALL_UUID } from '../../call/sip-headers.ts'
import { bridgeForwarded } from './forwarded-calls.ts'
import type {
  ConnectOptions,
  LibraryAgent,
  LibraryRequest,
  LibraryResponse,
  Next,
  ApplicationSrf,
  SrfLibrary,
} from './library.ts'

export interface SrfWorld {
  /** The server, started by the first that asks. */
  readonly open: () => Promise<ConnectOptions>
  /**
   * The answer to a new INVITE that no middleware has answered. Absent: drachtio-srf's own, 404.
   */
  readonly passOn?: (response: LibraryResponse, error: unknown) => void
  /** One more connects to the server. */
  readonly onConnect?: (srf: ApplicationSrf) => void
  /** A middleware has thrown, or cannot connect. */
  readonly onError: (error: unknown) => void
}

export function ownSrf(Library: SrfLibrary, world: SrfWorld): SrfLibrary {
  return class OwnSrf extends Library {
    constructor(tags?: unknown) {
      const isPlace = typeof tags === 'object' && tags !== null && !Array.isArray(tags)
      super(isPlace ? undefined : tags)
      adopt(this, world)
      // Without a listener an error of the connection would end the process.
      this.on('error', world.onError)
      if (isPlace) this.connect(noPlace)
    }

    override connect(options: ConnectOptions, callback?: (...parameters: unknown[]) => void) {
      const connect = (place: ConnectOptions) =>
        super.connect({ ...options, tls: undefined, ...place } as ConnectOptions, callback)
      world.onConnect?.(this)
      world.open().then(connect, world.onError)
      return this.app
    }

    /** Applications that wait for the server to connect get the same connection. */
    listen(options: ConnectOptions, callback?: (...parameters: unknown[]) => void) {
      if (callback) this.once('connect', callback)
      return this.connect(options)
    }
  }
}

const noPlace: ConnectOptions = { host: '', port: 0, secret: '' }

/** README and API of drachtio-srf write the URI first, where its code has it third. */
function bridgeInAnyOrder(srf: ApplicationSrf) {
  const bridge = srf.createB2BUA.bind(srf) as (...parameters: unknown[]) => unknown
  return (...parameters: unknown[]): unknown => {
    const [uri, request, response, ...more] = parameters
    return typeof uri === 'string' ? bridge(request, response, uri, ...more) : bridge(...parameters)
  }
}

function adopt(srf: ApplicationSrf, world: SrfWorld): void {
  const { app } = srf
  Object.assign(srf, { createB2BUA: bridgeInAnyOrder(srf) })
  const calls = new CallsOfRequests()
  const guarded = new WeakSet<object>()
  const handle = app.handle.bind(app)
  app.handle = (request, response, out) => {
    for (const layer of app.stack) {
      if (guarded.has(layer)) continue
      guarded.add(layer)
      layer.handle = withRejections(layer.handle)
    }
    calls.run(request, () => handle(request, response, out ?? lastOf(request, response, world)))
  }
  const init = app._init.bind(app)
  app._init = () => {
    const agent = withCalls(init(), calls)
    if (world.passOn) bridgeForwarded(srf, agent)
    return agent
  }
}

/** A rejected promise of a middleware is its error: drachtio-srf would let the process end. */
function withRejections(handle: (...parameters: unknown[]) => unknown) {
  const run = (parameters: unknown[]): void => {
    const result = handle(...parameters)
    const next = parameters.at(-1)
    if (result instanceof Promise && isNext(next)) result.catch(failing(next))
  }
  // drachtio-srf tells handlers of errors by the number of their parameters.
  return handle.length < 4
    ? (request: unknown, response: unknown, next: unknown) => run([request, response, next])
    : (error: unknown, request: unknown, response: unknown, next: unknown) =>
        run([error, request, response, next])
}

const failing = (next: Next) => (error: unknown) =>
  next(error ?? new Error('a middleware has rejected'))

const isNext = (value: unknown): value is Next => typeof value === 'function'

function lastOf(
  request: LibraryRequest,
  response: LibraryResponse,
  { passOn, onError }: SrfWorld,
): Next | undefined {
  if (!request.isNewInvite || passOn === undefined) return undefined
  return (error) => {
    if (error !== undefined && error !== null) onError(error)
    const isAnswered = response.finalResponseSent || (response.status ?? 0) >= 200
    if (!isAnswered) passOn(response, error)
  }
}

/** The most calls whose later requests are known to belong to them. */
const MAX_CALLS = 20_000

/** In which call a request is made: what its handlers do later belongs to it, too. */
class CallsOfRequests {
  readonly #current = new AsyncLocalStorage<string>()
  /** Call uuids by Call-ID, the oldest first. */
  readonly #known = new Map<string, string>()

  get current(): string | undefined {
    return this.#current.getStore()
  }

  run(request: LibraryRequest, handle: () => void): void {
    const callId = request.get('Call-ID') ?? ''
    const named = request.isNewInvite ? request.get(CALL_UUID) : undefined
    if (named !== undefined) this.#note(callId, named)
    const callUuid = named ?? this.#known.get(callId)
    if (callUuid === undefined) handle()
    else this.#current.run(callUuid, handle)
  }

  #note(callId: string, callUuid: string): void {
    const [oldest] = this.#known.keys()
    if (this.#known.size >= MAX_CALLS && oldest !== undefined) this.#known.delete(oldest)
    this.#known.set(callId, callUuid)
  }
}

/** Requests outside dialogs name the call in which they are made. */
function withCalls(agent: LibraryAgent, calls: CallsOfRequests): LibraryAgent {
  const makeRequest = agent._makeRequest.bind(agent)
  agent._makeRequest = (parameters) => {
    const { options } = parameters
    const { current } = calls
    const isNew = !options.stackDialogId && !options.stackTxnId
    if (isNew && current !== undefined)
      options.headers = { ...options.headers, [APPLICATION_CALL]: current }
    return makeRequest(parameters)
  }
  return agent
}
