/** The SIP server as a program: reads its options, serves, and stops in order. */
import { OptionError } from '../errors.ts'
import { bracketed } from '../message/host.ts'
import type { Log, SipServerOptions } from '../options.ts'
import { createSipServer, type SipServer } from '../server.ts'
import { readCommandLine } from './command-line.ts'
import { optionHelp } from './help.ts'
import { requestHandlers } from '../rules/request-handlers.ts'
import { serverOptions } from './server-options.ts'
import { fileToRead, readSettings, type Environment, type Settings } from './settings.ts'
import type { Values } from './option-table.ts'
import { openSyslog, type Syslog } from './syslog.ts'
import { readXml, type Element } from './xml-file.ts'
import { watchBlacklist } from '../rules/blacklist.ts'

export type LogLevel = 'debug' | 'info' | 'warn' | 'error' | 'fatal' | 'silent'

export interface ProgramLog {
  readonly log: Log
  /** Resolves when what was logged before is written. */
  readonly flush: () => Promise<void>
}

/** What a program is given by the one that starts it. */
export interface ProgramWorld {
  readonly environment: Environment
  readonly version: string
  readonly hostName: string
  readonly pid: number
  /** Milliseconds since the epoch. */
  readonly now: () => number
  /** One line on standard output. */
  readonly print: (line: string) => void
  /** The text of a file; undefined: there is none. */
  readonly readFile: (path: string) => string | undefined
  readonly createLog: (level: LogLevel) => ProgramLog
  readonly randomBytes: (size: number) => Uint8Array
  /** Calls `listener` at each SIGTERM or SIGINT from now on. */
  readonly onStopSignal: (listener: () => void) => void
  /** Calls `listener` at each SIGHUP from now on. */
  readonly onReloadSignal: (listener: () => void) => void
}

/**
 * Serves until it is told to stop.
 * @throws OptionError, ListenError, CertificateError
 */
export async function runProgram(words: readonly string[], world: ProgramWorld): Promise<void> {
  const given = readCommandLine(words)
  if (given.some(({ name }) => name === 'help')) return world.print(programHelp())
  if (given.some(({ name }) => name === 'version')) return world.print(world.version)
  const file = fileToRead(given, world.environment)
  const settings = readSettings(words, world.environment, file && fileOf(file, world))
  await serve(settings, serverOptions(settings), world)
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

async function serve(
  settings: Settings,
  options: SipServerOptions,
  world: ProgramWorld,
): Promise<void> {
  const { values } = settings
  const level = levelOf(values.logLevel)
  const output = world.createLog(level)
  const syslog = syslogOf(values, world)
  const log: Log = (...line) => {
    output.log(...line)
    if (ranks[line[0]] >= ranks[level]) syslog?.log(...line)
  }
  for (const note of settings.notes) log('warn', note)
  const handlers = requestHandlers(handlersOf(settings), log)
  const blacklist =
    values.blacklistFile && watchBlacklist(values.blacklistFile, world.readFile, log)
  const server = createSipServer({
    ...options,
    ...(handlers && { routeRequest: handlers.route }),
    ...(blacklist && { admit: ({ address }) => !blacklist.denies(address) }),
    randomBytes: world.randomBytes,
    log,
  })
  const stopped = new Promise<void>((resolve) => world.onStopSignal(resolve))
  await server.start()
  world.onReloadSignal(() => server.reloadCertificates())
  world.print(`ready ${addressesOf(server)}`)
  await stopped
  await server.stop()
  handlers?.stop()
  if (blacklist) blacklist.stop()
  syslog?.stop()
  await output.flush()
}

const ranks: Readonly<Record<LogLevel, number>> = {
  ...{ debug: 0, info: 1, warn: 2, error: 3, fatal: 4, silent: 5 },
}

function syslogOf(values: Values, { now, hostName, pid }: ProgramWorld): Syslog | undefined {
  const { syslogAddress: host, syslogPort: port = 514, syslogFacility = 'local0' } = values
  if (host === undefined) return undefined
  const facility = Number(syslogFacility.slice(-1))
  return openSyslog({ host, port, facility, hostName, pid }, now)
}

/** `--handler` is one for all methods. */
function handlersOf({ handlers, values }: Settings): Settings['handlers'] {
  const { handler: url } = values
  if (url === undefined) return handlers
  return [{ sipMethod: '*', httpMethod: 'get', url, verifies: true }]
}

const levels: Readonly<Record<string, LogLevel>> = {
  ...{
    silent: 'silent',
    fatal: 'fatal',
    error: 'error',
    warn: 'warn',
    warning: 'warn',
    notice: 'info',
    info: 'info',
    debug: 'debug',
  },
}

const levelOf = (name: string | undefined): LogLevel => levels[name ?? ''] ?? 'info'

function addressesOf(server: SipServer): string {
  const sip = server.listeners.map(
    ({ protocol, address, port }) => `${protocol}/${bracketed(address)}:${port}`,
  )
  const { adminAddress: admin, adminTlsAddress: adminTls, metricsAddress: metrics } = server
  const places = Object.entries({ admin, 'admin-tls': adminTls, metrics }).flatMap(
    ([name, place]) =>
      place === undefined ? [] : [`${name}=${bracketed(place.host)}:${place.port}`],
  )
  return [`sip=${sip.join(',')}`, ...places].join(' ')
}
