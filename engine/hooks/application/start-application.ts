/**
 * An application of drachtio-srf beside the product: a file of the operator in the worker of hooks,
 * or one of our examples as a PBX node.
 */
import type { Log } from '../../../schema/contracts/log.ts'
import type { SipPort } from '../../sip-server/index.ts'
import { APPLICATION_CONTINUES } from '../../call/application/private-headers.ts'
import { ApplicationServer, type ApplicationServerOptions } from './application-server.ts'
import { type LibraryResponse, loadSrf, type ApplicationSrf, type SrfLibrary } from './library.ts'
import { ownSrf, type SrfWorld } from './own-srf.ts'
import { loopbackOf, type WayToMain } from './private-lines.ts'
import { resolveLibrary } from './resolve-library.ts'

/** The default export of a file, or of an example. */
export type ApplicationFunction = (srf: never) => unknown

export interface WorkerApplicationDeps {
  /** Known as soon as the main process serves SIP. */
  readonly main: Promise<WayToMain>
  readonly randomSecret: () => string
  readonly log: Log
  /** A call whose middleware has failed goes on without it, or gets 503. */
  readonly fallback: 'continue' | 'refuse'
  /** The application takes INVITEs from now on, at this port of loopback. */
  readonly onTaking: (port: number) => void
  /** An error of a middleware: with its stack, which has file and line. */
  readonly onError: (error: unknown) => void
}

/** Seconds. */
const RETRY_AFTER = '5'

/**
 * The application of a worker. To be created before the file is imported, as the file may connect
 * by itself; nothing is bound before it does.
 */
export class WorkerApplication {
  readonly #deps: WorkerApplicationDeps
  #server: Promise<ApplicationServer> | undefined
  #running: ApplicationServer | undefined
  #secret = ''
  readonly #connected = new Set<ApplicationSrf>()
  readonly #library: SrfLibrary

  private constructor(library: SrfLibrary, deps: WorkerApplicationDeps) {
    this.#deps = deps
    this.#library = ownSrf(library, this.#world())
    resolveLibrary(this.#library)
  }

  static async create(deps: WorkerApplicationDeps): Promise<WorkerApplication> {
    return new WorkerApplication(await loadSrf(), deps)
  }

  /** The file's default export, a function, gets its `srf`. */
  async startApplication(application: ApplicationFunction): Promise<void> {
    const srf = new this.#library()
    await application(srf as never)
    srf.connect(anywhere)
  }

  /** Whether the file has connected an `Srf`, or its default export was started. */
  get isUsed(): boolean {
    return this.#connected.size > 0
  }

  /** Calls and requests that have not come to their end: a worker that has any is not replaced. */
  get pending(): number {
    return this.#running?.pending ?? 0
  }

  async stop(): Promise<void> {
    const server = this.#running
    for (const srf of this.#connected) disconnect(srf)
    this.#connected.clear()
    await server?.stop()
  }

  async #open() {
    this.#server ??= this.#start()
    return (await this.#server).door
  }

  async #start(): Promise<ApplicationServer> {
    const { randomSecret, log, onTaking } = this.#deps
    const main = await this.#deps.main
    this.#secret = main.secret
    const server = new ApplicationServer({
      listen: { protocol: main.protocol, host: loopbackOf(main), port: 0 },
      main,
      randomSecret,
      log,
      onTaking: () => onTaking(server.port),
    })
    await server.start()
    this.#running = server
    return server
  }

  #world(): SrfWorld {
    const { fallback, onError } = this.#deps
    return {
      open: () => this.#open(),
      onConnect: (srf) => void this.#connected.add(srf),
      onError,
      passOn: (response: LibraryResponse, error: unknown) => {
        const status = statusOf(error)
        if (status !== undefined) response.send(status)
        else if (error != null && fallback === 'refuse')
          response.send(503, undefined, { headers: { 'Retry-After': RETRY_AFTER } })
        else response.send(404, 'Continue', { headers: { [APPLICATION_CONTINUES]: this.#secret } })
      },
    }
  }
}

/** It would connect again, for ever. drachtio-srf throws where there is no connection. */
function disconnect(srf: ApplicationSrf): void {
  try {
    srf.disconnect()
  } catch {
    // There is none.
  }
}

/** An `Srf` of ours connects to its own server, whatever it is told. */
const anywhere = { host: '', port: 0, secret: '' }

/** An error with a status is an answer; any other one is a fault. */
function statusOf(error: unknown): number | undefined {
  if (typeof error !== 'object' || error === null || !('status' in error)) return undefined
  const { status } = error
  return typeof status === 'number' && status >= 400 && status < 700 ? status : undefined
}

/** An application of its own, such as a PBX node: everybody may call it. */
export interface StandaloneApplication {
  readonly port: number
  /** A port for calls from the same address. */
  readonly createPort: () => SipPort
  stop(): Promise<void>
}

/** @throws {ListenError} the address cannot be bound. */
export async function serveApplication(
  application: ApplicationFunction,
  { listen, randomSecret, log }: Omit<ApplicationServerOptions, 'main' | 'onTaking'>,
): Promise<StandaloneApplication> {
  let onTaking = (): void => undefined
  const taken = new Promise<void>((resolve) => (onTaking = resolve))
  const server = new ApplicationServer({ listen, randomSecret, log, onTaking: () => onTaking() })
  await server.start()
  const onError = (error: unknown): void => log('error', 'an application has failed', { error })
  const Own = ownSrf(await loadSrf(), { open: () => Promise.resolve(server.door), onError })
  const srf = new Own()
  await application(srf as never)
  srf.connect(server.door)
  await taken
  return {
    port: server.port,
    createPort: () => server.createPort(),
    stop: async () => {
      disconnect(srf)
      await server.stop()
    },
  }
}
