/**
 * The whole process put together: database → charging → engine → API. `serve` and `demo` build one;
 * what it needs of the outside are arguments.
 */
import { lookup } from 'node:dns/promises'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { Ocs } from './charging/ocs.ts'
import type { ControlDeps, LoopDelay } from '../control/deps.ts'
import { readConsole } from '../control/console/console-files.ts'
import { openReports, type Reports } from '../control/pbx/reports/reports.ts'
import { type ControlServer, type ServerOptions, startControl } from '../control/server.ts'
import { LOOP_RESOLUTION_MS } from '../control/telemetry/recent.ts'
import { Webhooks } from '../control/webhooks/webhooks.ts'
import { type CallJournal, openCallJournal } from '../schema/journal/journal.ts'
import { brokenClaims } from '../schema/ownership/claims.ts'
import { copyOfLost } from '../schema/storage/last-copy.ts'
import { migrate } from '../schema/migrate.ts'
import type { Boot, Clocks, Schedule } from '../schema/clock.ts'
import type { Log } from '../schema/contracts/log.ts'
import type { Changes } from '../schema/changes/changes.ts'
import { FileChanges } from '../schema/changes/file-changes.ts'
import { openDatabase, type LocalStore } from '../schema/open.ts'
import { StorageWatch } from '../schema/storage/storage-watch.ts'
import { BACKUP_TICK_MS, type ScheduledBackups } from './backups/scheduled-backups.ts'
import { costMicros } from './charging/pricing/price.ts'
import { ExternalCharging } from './charging/external/external-charging.ts'
import type { Config } from './config.ts'
import type { NodeChange } from './dispatcher/dispatcher.ts'
import { portOf } from './engine-port.ts'
import { forgetOldRecords, repeating, scheduleBackups } from './duties.ts'
import { Engine, type EngineDeps } from './engine.ts'
import { followForCharging, followForEngine } from './follow-changes.ts'
import { refuseMigrations, servingLock } from './serving-lock.ts'
import { noteRulesWithoutRelay } from './media/unrelayed.ts'
import type { OldProcess } from './upgrade/old-process.ts'
import {
  finishRest,
  followOld,
  passOn,
  takeOver,
  upgradeOf,
  type UpgradeParts,
} from './upgrade/sharing.ts'
import type { Upgrade } from './upgrade/upgrade.ts'
import { formatHostAndPort } from './setting-kinds.ts'
import { addFirstAdmin } from './first-admin.ts'

export interface PlatformDeps extends Clocks {
  readonly boot?: Boot | undefined
  readonly config: Config
  readonly inForce?: ControlDeps['inForce']
  readonly version: string
  /** Of this process. */
  readonly pid: number
  /** It serves until this one can; absent: a usual start. */
  readonly oldProcess?: OldProcess | undefined
  /** Gives the memory back that is not needed any more. Takes a moment. */
  readonly releaseMemory?: () => void
  /** Starts the program on disk, with these sockets. */
  readonly startProgram: UpgradeParts['startProgram']
  /** From 0 up to 1. */
  readonly random: () => number
  readonly randomBytes: (size: number) => Buffer
  readonly newUuid: () => string
  readonly schedule: Schedule
  readonly log: Log
  /** Prints one line to the terminal. */
  readonly announce: (line: string) => void
}

export interface Platform {
  readonly store: LocalStore
  readonly engine: Engine
  /** `sip=… api=… edge=…`, each in the form of its setting. */
  readonly addresses: string
  /** Takes no new call; resolves when the live ones are over, `DRAIN_SECONDS` from now at the latest. */
  drain(): Promise<void>
  /** A planned upgrade: another process serves next. */
  readonly upgrade: Upgrade
  /** After it: resolves when nothing is left to be done here, `DRAIN_SECONDS` from now at the latest. */
  finishRest(): Promise<void>
  /** Then: the new process goes on with the live calls. This one may only end. */
  passOn(): Promise<void>
  /** Ends the live calls of a draining platform now. */
  forceStop(): void
  /** Closes every port, writes what waits, closes the database. False: something could not be written; the log has it. */
  stop(): Promise<boolean>
  /** Writes at once what waits for the next group commit; for a process that is about to crash. */
  flushOnCrash(): void
}

/** After the drain's deadline, this long for BYEs to be answered. */
const PARTING_MS = 3_000
/** Five who wait in one turn of the event loop stop it for half of 50 ms. */
const SERVING_BUSY_MS = 5

/**
 * @throws {DatabaseRefused} the database cannot be used.
 * @throws {Error} an address cannot be listened on.
 */
export async function startPlatform(given: PlatformDeps): Promise<Platform> {
  const { log, oldProcess } = given
  const config = oldProcess?.withSockets(given.config) ?? given.config
  const deps = { ...given, config }
  const store = openDatabase(config.databasePath, { secretKey: config.secretKey })
  const closers: (() => void | Promise<void>)[] = [() => store.close()]
  let isClean = true
  const closeAll = async () => {
    for (const close of closers.splice(0).toReversed())
      try {
        await close()
      } catch (error) {
        isClean = false
        log('error', 'what waited could not be written', { error })
      }
    return isClean
  }
  try {
    const lock = servingLock(config.databasePath)
    closers.unshift(() => lock.release())
    if (oldProcess) refuseMigrations(store)
    else lock.take()
    await prepareDatabase(store, deps)
    closers.push(() => keepLost(store, deps))
    const changes = new FileChanges(store, deps)
    closers.push(() => changes.stop())
    const webhooks = await openWebhooks(store, changes, deps)
    closers.push(() => webhooks.stop())
    const journal = openCallJournal(store, deps, oldProcess !== undefined)
    let hasServed = false
    closers.push(() => journal.close(hasServed))
    const charging = await openCharging({ store, journal }, webhooks, deps)
    if (charging instanceof Ocs) followForCharging(changes, charging)
    const { saved, ...closed } = await charging.start()
    const tellUnwritten = (unwritten: readonly unknown[]): void => {
      if (unwritten.length > 0) isClean = false
      for (const record of unwritten) log('error', 'a call record could not be written', { record })
    }
    closers.push(async () => tellUnwritten(await charging.stop()))
    const engine = new Engine({
      ...{ ...deps, store, charging, now: deps.steadyNow, wallNow: deps.now },
      ...(charging instanceof Ocs
        ? { priceOf: pricesOf(charging, deps), foresee: (asked) => charging.foresee(asked) }
        : {}),
      webhooks: webhooks.sink,
      onNodeChange: (change) => tellNodeChange(webhooks, change, deps.now()),
    })
    closers.push(() => engine.stop())
    followForEngine(changes, engine)
    await engine.reload()
    await changes.start()
    if (engine.relays === undefined) await noteRulesWithoutRelay(store, log)
    const parts = { ...deps, config, engine, charging, lock }
    const serveSip = async (): Promise<void> => {
      if (oldProcess) await takeOver(oldProcess, parts)
      const { restored, abandoned } = await engine.start(saved)
      if (!oldProcess) engine.finishLast()
      hasServed = true
      const recoveredCalls = closed.recoveredCalls + abandoned
      if (restored > 0) log('info', 'calls of the last run go on', { restoredCalls: restored })
      if (recoveredCalls + closed.unansweredCalls > 0)
        log('warn', 'calls of the last run are closed', { ...closed, recoveredCalls })
      // From now on a wait for another process's lock is a timer, and calls go on.
      store.sqlite.pragma(`busy_timeout = ${SERVING_BUSY_MS}`)
    }
    if (!oldProcess) await serveSip()
    const reports = openReports({ store, now: deps.steadyNow, log })
    const watch = new StorageWatch({
      ...{ store, schedule: deps.schedule },
      onLogGone: () => void reports.stop(),
      onChange: (problem) => engine.storage.note(problem),
    })
    // For a start that fails from here on. A stop ends it earlier, so that what waits can be written.
    closers.push(() => watch.stop())
    const ocs = charging instanceof Ocs ? charging : undefined
    const backups = scheduleBackups(store, deps)
    const control = await openControl(
      { store, changes, engine, ocs, webhooks, reports, backups },
      { ...deps, ...(oldProcess && { beforeListening: serveSip }) },
    )
    closers.push(() => control.stop())
    if (oldProcess) await followOld(oldProcess, parts, deps)
    webhooks.start()
    const duties = [() => void webhooks.stop(), forgetOldRecords(store, deps)]
    if (backups) duties.push(repeating(deps)(BACKUP_TICK_MS, () => backups.tick()))
    const stopDuties = (): void => duties.splice(0).forEach((stop) => stop())
    closers.push(stopDuties)
    closers.push(() => watch.stop())
    await announceAdmin(store, deps)
    const upgrade = upgradeOf({ ...parts, control, stopDuties })
    return {
      ...{ store, engine, stop: closeAll },
      addresses: addressesOf(engine, control),
      ...drainOf(engine, deps),
      upgrade,
      finishRest: () => finishRest(parts, deps.steadyNow, config.drainSeconds * 1_000),
      passOn: async () => {
        await control.stop()
        await passOn(parts, upgrade, () => journal.written())
      },
      flushOnCrash: () => tellUnwritten(charging.flushOnCrash()),
    }
  } catch (error) {
    await closeAll()
    throw error
  }
}

/** A call of one minute, so that connect fees and long first increments count. */
const pricesOf =
  (ocs: Ocs, { now }: PlatformDeps): NonNullable<EngineDeps['priceOf']> =>
  (ratePlanId, number) => {
    const rate = ocs.rateFor(ratePlanId, number, now())
    return rate && { minuteMicros: costMicros(rate.tariff, 60), isBlocked: rate.isBlocked }
  }

async function prepareDatabase(store: LocalStore, { log, now }: PlatformDeps): Promise<void> {
  const report = migrate(store.sqlite, now())
  if (report.applied.length > 0) log('info', 'database migrated', { ...report })
  for (const claim of await brokenClaims(store)) log('warn', `ownership: ${claim}`)
  const encrypted = store.secrets.protect()
  if (encrypted > 0)
    log('warn', 'secrets that were stored in clear are encrypted; older copies still hold them', {
      encrypted,
      key: store.secrets.keptIn,
      copy: report.copy,
    })
}

/** Last of all: a start that fails makes no user whose password is never shown again. */
async function announceAdmin(
  store: LocalStore,
  { config, announce, now, randomBytes }: PlatformDeps,
): Promise<void> {
  const admin = await addFirstAdmin(store, config.admin, now(), randomBytes)
  if (admin !== undefined)
    announce(
      `created user ${config.admin.username} with password ${admin.drawnPassword} (shown this once)`,
    )
}

/** The file at `DATABASE_PATH` is not the one that has the records of this run. */
function keepLost(store: LocalStore, { now, log }: PlatformDeps): void {
  if (store.storage.fileProblem === undefined) return
  const copy = copyOfLost(store, now())
  log('error', 'the database was removed while it was open; what it held is kept', { copy })
}

async function openWebhooks(
  store: LocalStore,
  changes: Changes,
  deps: PlatformDeps,
): Promise<Webhooks> {
  const allowPrivate = deps.config.webhookPrivateTargets === 'allow'
  const webhooks = new Webhooks({
    ...{ ...deps, store, allowPrivate },
    node: { name: 'this' },
    resolve: (host) => lookup(host, { all: true }),
  })
  changes.follow({ topics: ['webhook_endpoint'], reload: () => webhooks.reload() })
  await webhooks.reload()
  return webhooks
}

/** An operator's maintenance takes a node out as much as a failure does. */
function tellNodeChange(webhooks: Webhooks, change: NodeChange, at: number): void {
  const { from, to, destination, setId, cause, reason } = change
  if (from !== 'active' && to !== 'active') return
  webhooks.announce({
    type: to === 'active' ? 'dispatcher.node.up' : 'dispatcher.node.down',
    tenantId: null,
    data: { set_id: setId, destination, from, to, cause, reason, at: new Date(at).toISOString() },
  })
}

async function openCharging(
  stores: { readonly store: LocalStore; readonly journal: CallJournal },
  webhooks: Webhooks,
  deps: PlatformDeps,
): Promise<Ocs | ExternalCharging> {
  const { config, now: wallNow, steadyNow: now, random, schedule, log } = deps
  const { url, token, timeoutMs, failMode } = config.ocs
  if (url === undefined)
    return Ocs.open({
      ...{ ...stores, now, wallNow, schedule, log, unknownCaller: config.unknownCaller },
      events: webhooks.sink,
    })
  return new ExternalCharging({
    ...{ ...stores, url, token, timeoutMs, failMode, now, wallNow, schedule, random, log },
  })
}

function openControl(
  {
    engine,
    backups,
    ...parts
  }: {
    readonly store: LocalStore
    readonly changes: Changes
    readonly engine: Engine
    readonly ocs: Ocs | undefined
    readonly webhooks: Webhooks
    readonly reports: Reports
    readonly backups: ScheduledBackups | undefined
  },
  deps: PlatformDeps & Pick<ServerOptions, 'beforeListening'>,
): Promise<ControlServer> {
  const { config, version, now, steadyNow, schedule, randomBytes, log } = deps
  const port = portOf(engine, (time) => time + now() - steadyNow())
  return startControl(
    {
      ...{ ...parts, now, steadyNow, schedule, randomBytes, log, version },
      engine: { ...port, telemetry: () => ({ ...port.telemetry(), ...backups?.telemetry() }) },
      ...{ console: readConsole(), inForce: deps.inForce },
      loopDelay: watchLoop(),
      settings: {
        jwtSecret: config.jwtSecret,
        recordingsPath: config.recording?.folder,
        paymentWebhookSecret: config.paymentWebhookSecret,
        mcpAllowedHosts: config.mcpAllowedHosts,
        trustedProxies: config.trustedProxies,
        hasMediaRelay: config.relays.length > 0,
        reservedNetworks: [
          ...config.trustedSources,
          ...config.edgeProxies.map(({ network }) => network),
        ],
      },
    },
    {
      ...{ api: config.apiListen, edge: config.edgeListen, every: repeating(deps) },
      limits: { connectionsPerAddress: config.httpConnectionsPerAddress },
      ...(deps.beforeListening && { beforeListening: deps.beforeListening }),
    },
  )
}

function watchLoop(): LoopDelay {
  const histogram = monitorEventLoopDelay({ resolution: LOOP_RESOLUTION_MS })
  histogram.enable()
  return histogram
}

function drainOf(engine: Engine, { config, steadyNow: now, schedule }: PlatformDeps) {
  let finish = (): void => undefined
  const drain = (): Promise<void> =>
    new Promise((resolve) => {
      const waitMs = config.drainSeconds * 1_000
      const cancel = schedule(resolve, waitMs + PARTING_MS)
      finish = () => {
        cancel()
        resolve()
      }
      void engine.drain(now() + waitMs).then(finish)
    })
  const forceStop = (): void => {
    schedule(finish, PARTING_MS)
    void engine.drain(now()).then(finish)
  }
  return { drain, forceStop }
}

function addressesOf(engine: Engine, control: ControlServer): string {
  const sip = engine.listeners.map(
    ({ protocol, ...place }) => `${protocol}/${formatHostAndPort(place)}`,
  )
  const api = formatHostAndPort(control.api)
  return `sip=${sip.join(',')} api=${api} edge=${formatHostAndPort(control.edge)}`
}
