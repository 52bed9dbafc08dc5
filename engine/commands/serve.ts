import packageJson from '../../package.json' with { type: 'json' }
import { readConfig } from '../config.ts'
import { withPassedSockets } from '../socket-activation.ts'
import { createLogger, type Logger } from '../logger.ts'
import { type OpenedPlatform, startPlatform } from '../platform.ts'
import { plainHttpNotes, settingNotes, settingsInForce } from './settings-in-force.ts'
import {
  type Command,
  type ExitCode,
  type StopSignal,
  type CommandContext,
  newDatabase,
  WrongUsage,
} from './command.ts'
import { settingsHelp } from './help.ts'
import { startWithRetry } from './start-with-retry.ts'
import { serviceManager } from './service-manager.ts'
import { startProblem } from './start-errors.ts'

export const serve: Command = {
  name: 'serve',
  summary: 'Serves SIP, the control API and the customer edge until SIGTERM or SIGINT.',
  createsDatabase: 'always',
  options: newDatabase,
  details: settingsHelp,
  run: async (_input, context) => {
    return runPlatform(context)
  },
}

/** Services that a command runs with the platform. */
export interface SideServices {
  /** At the signal to stop, before the drain. */
  readonly dismiss: () => void
  /** When the last call is over. */
  readonly finish: () => void | Promise<void>
}

const none = (): SideServices => ({ dismiss: () => undefined, finish: () => undefined })

/**
 * Serves until a signal; `startSideServices` is called when everything listens. 1: not everything
 * could be stored.
 */
export async function runPlatform(
  context: CommandContext,
  startSideServices: (platform: OpenedPlatform) => SideServices = none,
): Promise<ExitCode> {
  const sockets = context.passedSockets()
  const config = withPassedSockets(readConfig(context.environment), sockets)
  const isActivated = sockets.length > 0
  const logger = createLogger(config.logLevel)
  const notes = [
    ...settingNotes(context.environment, context.settingsFile),
    ...plainHttpNotes(config),
  ]
  for (const line of notes) logger.log('warn', line)
  const inForce = {
    settings: settingsInForce(context.environment, context.settingsFromFile),
    notes,
  }
  const signals = countSignals(context)
  const started: { platform?: OpenedPlatform } = {}
  const manager = serviceManager(
    context,
    logger.log,
    () => `${started.platform?.engine.calls.size ?? 0} live calls`,
  )
  const starting = startWithRetry({
    ...context,
    log: logger.log,
    address: config.apiListen,
    certificate: config.apiTls,
    stopped: signals.first.then(() => undefined),
    start: () =>
      startPlatform({
        config,
        inForce,
        version: packageJson.version,
        announce: context.print,
        ...context,
        log: logger.log,
      }),
    databaseUrl: config.databaseUrl,
    onWaiting: (status) => manager.starting(status, WAITING_MS),
  }).catch(async (error: unknown) => {
    await flushed(logger, context)
    const problem = startProblem(error, config)
    throw problem === undefined ? error : new WrongUsage(problem)
  })
  const platform = await Promise.race([starting, signals.first.then(() => undefined)])
  if (platform === undefined) {
    await giveUp(starting, context)
    logger.log('info', 'stopped before it served anything')
    await flushed(logger, context)
    return 0
  }
  context.onCrash((error) => {
    logger.lastWords('the process ends: an error that nothing caught', { error })
  })
  started.platform = platform
  context.onReloadSignal(() => {
    manager.reloading()
    platform.reloadCertificates()
    platform.reloadHooks()
    manager.ready()
  })
  const side = startSideServices(platform)
  // A start leaves half of the heap unused.
  context.releaseMemory()
  context.print(`ready ${platform.addresses}`)
  manager.ready()
  const signal = await signals.first
  manager.stopping((config.drainSeconds + STOP_SECONDS) * 1_000)
  side.dismiss()
  // The next process has the same sockets, unless an operator wants the calls to end.
  if (isActivated && signal === 'SIGTERM') await platform.leave()
  else {
    void signals.second.then(() => platform.forceStop())
    await platform.drain()
  }
  await side.finish()
  const isClean = await platform.stop()
  logger.log('info', 'stopped')
  await flushed(logger, context)
  return isClean ? 0 : 1
}

/** Time for the next attempt of a start that waits, and for its end. */
const WAITING_MS = 60_000

/** Time after the drain in which the rest of the records is written and the ports are closed. */
const STOP_SECONDS = 30

/** How long a cancelled start may take to end in order. */
const START_MS = 1_000

/**
 * A start may wait for a drachtio-server that never answers: then the end of the process undoes it.
 */
async function giveUp(
  starting: Promise<OpenedPlatform | undefined>,
  context: CommandContext,
): Promise<void> {
  const undone = starting.then((platform) => platform?.stop()).catch(() => undefined)
  await Promise.race([
    undone,
    new Promise<void>((resolve) => void context.schedule(resolve, START_MS)),
  ])
}

/** A log without a reader must not keep the process from ending. */
const FLUSH_MS = 1_000

export const flushed = (logger: Logger, context: CommandContext): Promise<void> =>
  Promise.race([
    logger.flush(),
    new Promise<void>((resolve) => void context.schedule(resolve, FLUSH_MS)),
  ])

/** Ctrl-C under npm arrives twice: from the terminal, and passed on by npm. */
const SAME_SIGNAL_MS = 300

/** Promises of the first signal to stop, and of a further one. */
function countSignals(context: CommandContext) {
  let firstAt: number | undefined
  const listeners: { first?: (signal: StopSignal) => void; second?: () => void } = {}
  context.onStopSignal((signal) => {
    const now = context.steadyNow()
    firstAt ??= now
    if (firstAt === now) listeners.first?.(signal)
    else if (now - firstAt > SAME_SIGNAL_MS) listeners.second?.()
  })
  return {
    first: new Promise<StopSignal>((resolve) => {
      listeners.first = resolve
    }),
    second: new Promise<void>((resolve) => {
      listeners.second = resolve
    }),
  }
}
