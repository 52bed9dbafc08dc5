/** The SIP server as a program: reads its options, serves, and stops in order. */
import { OptionError } from '../errors.ts'
import { bracketed } from '../../../schema/sip/fields.ts'
import type { ServerLog, NewRequest, RouteAnswer, Screening, SipServerOptions } from '../options.ts'
import { createSipServer, type SipServer } from '../server.ts'
import { optionHelp, readCommandLine } from './command-line.ts'
import { requestHandlers, type RequestHandlers } from '../rules/request-handlers.ts'
import {
  type ProgramEnvironment,
  fileToRead,
  needsRestart,
  readSettings,
  screeningOf,
  serverOptions,
  type Settings,
} from './settings.ts'
import { readXml, type Element } from './xml-file.ts'
import { watchBlacklist } from '../rules/screening.ts'

export type ProgramLogLevel = 'debug' | 'info' | 'warn' | 'error' | 'fatal' | 'silent'

export interface ProgramLog {
  readonly log: ServerLog
  /** Resolves when what was logged before is written. */
  readonly flush: () => Promise<void>
}

/** The process around the program: environment, files, signals, output. */
export interface ProgramWorld {
  readonly environment: ProgramEnvironment
  readonly version: string
  /** One line on standard output. */
  readonly print: (line: string) => void
  /** The text of a file; undefined: there is none. */
  readonly readFile: (path: string) => string | undefined
  readonly createLog: (level: ProgramLogLevel) => ProgramLog
  readonly randomBytes: (size: number) => Uint8Array
  /** Calls `listener` at each SIGTERM or SIGINT from now on. */
  readonly onStopSignal: (listener: () => void) => void
  /** Calls `listener` at each SIGHUP from now on. */
  readonly onReloadSignal: (listener: () => void) => void
}

/**
 * Serves until a stop signal.
 * @throws OptionError, ListenError, CertificateError
 */
export async function runProgram(words: readonly string[], world: ProgramWorld): Promise<void> {
  const given = readCommandLine(words)
  if (given.some(({ name }) => name === 'help')) return world.print(programHelp())
  if (given.some(({ name }) => name === 'version')) return world.print(world.version)
  const file = fileToRead(given, world.environment)
  await serve(() => readSettings(words, world.environment, file && fileOf(file, world)), world)
}

export const programHelp = (): string => optionHelp().join('\n')

function fileOf(
  { path, isNamed }: { readonly path: string; readonly isNamed: boolean },
  { readFile }: ProgramWorld,
): Element | undefined {
  const xml = readFile(path)
  if (xml === undefined && !isNamed) return undefined
  if (xml === undefined) throw new OptionError(`cannot read ${path}`)
  try {
    return readXml(xml)
  } catch (error) {
    throw error instanceof OptionError ? new OptionError(`${path}: ${error.message}`) : error
  }
}

async function serve(read: () => Settings, world: ProgramWorld): Promise<void> {
  const settings = read()
  const options = serverOptions(settings)
  const output = new Output(settings, world)
  const { log } = output
  for (const note of settings.notes) log('warn', note)
  const rules = new Rules(settings, log)
  const path = settings.values.blacklistFile
  const blacklist = path === undefined ? undefined : watchBlacklist(path, world.readFile, log)
  const server = createSipServer({
    ...options,
    screen: rules.screen,
    routeRequest: rules.route,
    ...(blacklist && { admit: ({ address }) => !blacklist.denies(address) }),
    randomBytes: world.randomBytes,
    log,
  })
  const stopped = new Promise<void>((resolve) => world.onStopSignal(resolve))
  await server.start()
  world.onReloadSignal(() => {
    server.reloadCertificates()
    blacklist?.refresh()
    reload(read, settings, [output, rules], log)
  })
  world.print(`ready ${addressesOf(server)}`)
  await stopped
  await server.stop()
  rules.stop()
  blacklist?.stop()
  await output.flush()
}

/**
 * Applies the options that may change while the program runs; a file that cannot be read changes
 * nothing.
 */
function reload(
  read: () => Settings,
  atStart: Settings,
  takers: readonly { readonly take: (settings: Settings) => void }[],
  log: ServerLog,
): void {
  try {
    const settings = read()
    for (const { take } of takers) take(settings)
    for (const spelled of needsRestart(atStart, settings))
      log('warn', `${spelled} has changed: it takes effect at the next start`)
    log('info', 'the configuration was read again')
  } catch (error) {
    if (!(error instanceof OptionError)) throw error
    log('error', 'the configuration cannot be read again; nothing has changed', {
      reason: error.message,
    })
  }
}

/** The log; its level may change. */
class Output {
  readonly #world: ProgramWorld
  #level: ProgramLogLevel
  #output: ProgramLog

  constructor({ values }: Settings, world: ProgramWorld) {
    this.#world = world
    this.#level = levelOf(values.logLevel)
    this.#output = world.createLog(this.#level)
  }

  readonly log: ServerLog = (...line) => this.#output.log(...line)

  readonly take = ({ values }: Settings): void => {
    const level = levelOf(values.logLevel)
    if (level === this.#level) return
    this.#level = level
    this.#output = this.#world.createLog(level)
  }

  flush(): Promise<void> {
    return this.#output.flush()
  }
}

/** Decides on new requests: screening, then request handlers. */
class Rules {
  readonly #log: ServerLog
  #screen: SipServerOptions['screen']
  #handlers: RequestHandlers | undefined
  /** The settings of the present handlers, as JSON. */
  #handled: string

  constructor(settings: Settings, log: ServerLog) {
    this.#log = log
    this.#screen = screeningOf(settings)
    this.#handlers = requestHandlers(handlersOf(settings), log)
    this.#handled = JSON.stringify(handlersOf(settings))
  }

  readonly screen = (request: NewRequest): Screening | undefined => this.#screen?.(request)

  readonly route = (request: NewRequest): RouteAnswer => this.#handlers?.route(request)

  readonly take = (settings: Settings): void => {
    this.#screen = screeningOf(settings)
    const handled = JSON.stringify(handlersOf(settings))
    if (handled === this.#handled) return
    this.#handled = handled
    this.#handlers?.retire()
    this.#handlers = requestHandlers(handlersOf(settings), this.#log)
  }

  stop(): void {
    this.#handlers?.stop()
  }
}

/** `--handler` is one for all methods. */
function handlersOf({ handlers, values }: Settings): Settings['handlers'] {
  const { handler: url } = values
  if (url === undefined) return handlers
  return [{ sipMethod: '*', httpMethod: 'get', url, verifies: true }]
}

const levels: Readonly<Record<string, ProgramLogLevel>> = {
  silent: 'silent',
  fatal: 'fatal',
  error: 'error',
  warn: 'warn',
  warning: 'warn',
  notice: 'info',
  info: 'info',
  debug: 'debug',
}

const levelOf = (name: string | undefined): ProgramLogLevel => levels[name ?? ''] ?? 'info'

function addressesOf(server: SipServer): string {
  const sip = server.listeners.map(
    ({ protocol, address, port }) => `${protocol}/${bracketed(address)}:${port}`,
  )
  const { adminAddress: admin, adminTlsAddress: adminTls, metricsAddress: metrics } = server
  const places = Object.entries({ admin, 'admin-tls': adminTls, metrics }).flatMap(
    ([name, endpoint]) =>
      endpoint === undefined ? [] : [`${name}=${bracketed(endpoint.host)}:${endpoint.port}`],
  )
  return [`sip=${sip.join(',')}`, ...places].join(' ')
}
