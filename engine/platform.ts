/**
 * The whole process put together: database → charging → engine → API. `serve` and `demo` build one;
 * what it needs of the outside are arguments.
 */
import { lookup } from 'node:dns/promises'
import { statfs } from 'node:fs/promises'
import { dirname } from 'node:path'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import type { EndRetention } from './charging/kept-ends.ts'
import { Ocs } from './charging/ocs.ts'
import type { ControlDeps } from '../control/app.ts'
import type { LoopDelay } from '../control/http/platform.ts'
import { readConsole } from '../control/console/console-files.ts'
import { membershipOf, INSTANCE_KEY } from '../control/instances/membership.ts'
import { OtherInstances } from '../control/instances/other-instances.ts'
import { openReports, type Reports } from '../control/reports/reports.ts'
import { openRateImports, type RateImports } from '../control/resources/rate-imports.ts'
import { type ControlServer, startControl } from '../control/server.ts'
import { Webhooks } from '../control/webhooks/webhooks.ts'
import { openAlertSender } from '../control/alerts/alert-sender.ts'
import { Alerts } from '../control/alerts/alerts.ts'
import type { DiskSpace } from '../control/alerts/alert-watch.ts'
import type { CallJournal } from '../schema/journal/call-journal.ts'
import type { Boot, Clocks, Every, Schedule } from '../schema/clock.ts'
import type { Log } from '../schema/contracts/log.ts'
import type { LocalStore, Store } from '../schema/storage/store.ts'
import { Rounds } from '../schema/rounds.ts'
import { isServerUnavailable } from '../schema/postgres/open.ts'
import { BACKUP_TICK_MS, type ScheduledBackups } from './backups/scheduled-backups.ts'
import { ExternalCharging } from './charging/external/external-charging.ts'
import { type Config, type Environment, withoutSecrets } from './config.ts'
import type { NodeChange } from './dispatcher/dispatcher.ts'
import { portOf } from './engine-port.ts'
import { scheduleBackups, startDuties } from './duties.ts'
import { createEngine } from './create-engine.ts'
import { LOST_REGISTRATIONS_TICK_MS, LostRegistrations } from './registrar/lost-registrations.ts'
import type { Engine } from './engine.ts'
import { followForCharging, followForEngine } from './follow-changes.ts'
import {
  limitShares,
  type InstanceShares,
  requestShares,
  type ShareMembers,
} from './shares/instance-shares.ts'
import { HookHost } from './hooks/hook-host.ts'
import { HttpCertificates } from './http-certificates.ts'
import { pricesOf } from './prices-of-ocs.ts'
import { installationOf } from './stores/installation.ts'
import { limitsOf, membersOf } from './stores/shares-of-instance.ts'
import { instanceSipPlaceOf, instanceUrlOf } from './stores/instance-place.ts'
import { openStores } from './stores/open-stores.ts'
import type { OwnInstance, Stores } from './stores/stores.ts'
import { noteRulesWithoutRelay } from './media/create-media.ts'
import { formatHostAndPort } from './setting-kinds.ts'
import { addFirstAdmin } from './first-admin.ts'
import { AnswersFile } from './answers-file.ts'
import { OpenedParts } from './opened-parts.ts'

export interface PlatformDeps extends Clocks {
  readonly boot?: Boot | undefined
  /** An empty database may begin beside the files of one that is gone. */
  readonly isNewDatabase?: boolean | undefined
  readonly config: Config
  readonly inForce?: ControlDeps['inForce']
  /** The file of hooks sees it, without our secrets. Absent: it sees nothing. */
  readonly environment?: Environment
  readonly version: string
  /** Host name of this machine. */
  readonly hostName: string
  /** Addresses of this machine, as others see them. */
  readonly networkAddresses: () => readonly string[]
  /** Id of this process. */
  readonly pid: number
  /** From 0 up to 1. */
  readonly random: () => number
  readonly randomBytes: (size: number) => Buffer
  readonly newUuid: () => string
  readonly schedule: Schedule
  readonly log: Log
  /** Prints one line to the terminal. */
  readonly announce: (line: string) => void
}

/** All parts of one start share these. */
interface RunningDeps extends PlatformDeps {
  readonly every: Every
}

export interface OpenedPlatform {
  /** The database file; undefined: the database is on a server. */
  readonly local: LocalStore | undefined
  readonly engine: Engine
  /**
   * `sip=… api=… edge=…`, each in the form of its setting, and `console=` with the URL for a
   * browser.
   */
  readonly addresses: string
  /**
   * Takes no new call; resolves when the live ones are over, `DRAIN_SECONDS` from now at the
   * latest.
   */
  drain(): Promise<void>
  /** The next process has the same sockets, and goes on with the live calls. `stop` follows. */
  leave(): Promise<void>
  /** Reads the certificates of all listeners again, for new connections. */
  reloadCertificates(): void
  /** Loads the file of hooks again. */
  reloadHooks(): void
  /** Ends the live calls of a draining platform now. */
  forceStop(): void
  /**
   * Closes every port, writes what waits, closes the database. False: something could not be
   * written; the log has it.
   */
  stop(): Promise<boolean>
}

/** After the drain's deadline, this long for BYEs to be answered. */
const PARTING_MS = 3_000
/** Calls that are being set up when the process leaves its sockets to the next one get so long. */
const SET_UP_MS = 2_000

/**
 * @throws {DatabaseRefused} the database cannot be used.
 * @throws {HookFileError} the file of hooks cannot be loaded.
 * @throws {Error} an address cannot be listened on.
 */
export async function startPlatform(given: PlatformDeps): Promise<OpenedPlatform> {
  const { log } = given
  const timers = endingTimers(given.schedule)
  const { schedule } = timers
  const deps = { ...given, schedule, every: new Rounds({ ...given, schedule }).every }
  const stores = await openStores(deps)
  const opened = new OpenedParts(log)
  opened.closeBy(() => stores.close())
  try {
    const services = await openServices(stores, opened, deps)
    const engine = await openEngine(stores, services, opened, deps)
    return await serve({ stores, services, engine, opened }, deps)
  } catch (error) {
    // Nothing waits for the answers of a server that is away.
    if (isServerUnavailable(error)) stores.cut()
    await opened.closeAll()
    timers.end()
    throw error
  }
}

type Services = Awaited<ReturnType<typeof openServices>>

/** Parts of a platform whose engine has loaded its tables. */
interface LoadedParts {
  readonly stores: Stores
  readonly services: Services
  readonly engine: Engine
  readonly opened: OpenedParts
}

/** Opens the parts that the engine calls: hooks, shares, webhooks, journal, charging. */
async function openServices(stores: Stores, opened: OpenedParts, deps: RunningDeps) {
  const hooks = await startHooks(opened, deps)
  const members = membersOf(stores, deps)
  const limits = members && limitsOf(limitShares, stores, members, deps)
  const requests = members && limitsOf(requestShares, stores, members, deps)
  opened.closeBy(...lastClosed(stores, [limits, requests]))
  const alerts = await openAlerts(stores, deps)
  opened.closeBy(() => alerts.stop())
  const webhooks = await openWebhooks(stores, alerts, deps)
  opened.closeBy(() => webhooks.stop())
  const journal = stores.openJournal()
  opened.closeBy(() => journal.close(opened.hasServed))
  const charging = await openCharging(stores, [journal, webhooks, limits], deps, members)
  const ocs = charging instanceof Ocs ? charging : undefined
  if (ocs) followForCharging(stores.changes, ocs)
  const previous = await charging.start()
  opened.closeBy(async () => {
    const unwritten = await charging.stop()
    if (unwritten.length > 0) opened.noteLoss()
    for (const record of unwritten)
      deps.log('error', 'a call record could not be written', { record })
  })
  return { hooks, limits, requests, alerts, webhooks, journal, charging, ocs, previous }
}

/** Undefined without `HOOKS`. @throws {HookFileError} */
async function startHooks(opened: OpenedParts, deps: PlatformDeps): Promise<HookHost | undefined> {
  const { config, environment = {}, steadyNow, now: wallNow, schedule, log } = deps
  if (config.hooks === undefined) return undefined
  const hooks = new HookHost({
    ...config.hooks,
    environment: withoutSecrets(environment),
    now: steadyNow,
    wallNow,
    schedule,
    log,
  })
  opened.closeBy(() => hooks.stop())
  await hooks.start()
  return hooks
}

/** Creates the engine on opened stores, and loads its tables; it serves nothing yet. */
async function openEngine(
  stores: Stores,
  services: Services,
  opened: OpenedParts,
  deps: RunningDeps,
): Promise<Engine> {
  const { store, changes, instance } = stores
  const engine = engineOn(stores, services, deps)
  opened.closeBy(() => engine.stop())
  instance.countCalls(() => engine.calls.size)
  reviewWhenFenced(instance, services.ocs, engine)
  followForEngine(changes, engine)
  await engine.load()
  await changes.start()
  if (engine.relays === undefined) await noteRulesWithoutRelay(store, deps.log)
  return engine
}

/** Serves calls, then the API. When that fails, calls go on in the next process. */
async function serve(parts: LoadedParts, deps: RunningDeps): Promise<OpenedPlatform> {
  const { stores, services, engine, opened } = parts
  const answers = new AnswersFile(deps.config.databasePath, deps.log)
  try {
    await resumeCalls(engine, services, answers, deps)
    stores.serving()
    const http = await openHttp(parts, deps)
    services.webhooks.start()
    services.alerts.start()
    const apiUrl = instanceUrlOf(deps.config, http.control.api, deps.hostName)
    await stores.instance.become('serving', apiUrl, ...instanceSipPlaceOf(engine, deps))
    const stopDuties = beginDuties(parts, http.backups, deps)
    opened.closeBy(stopDuties, http.stopWatch)
    await announceAdmin(stores.store, deps)
    opened.hasServed = true
    return runningPlatform(parts, http, { answers, stopDuties }, deps)
  } catch (error) {
    engine.leaveCalls()
    await services.journal.written()
    throw error
  }
}

/** Binds SIP, and takes up the calls of the previous process. */
async function resumeCalls(
  engine: Engine,
  { hooks, limits, requests, previous }: Services,
  answers: AnswersFile,
  deps: PlatformDeps,
): Promise<void> {
  const { saved, ...closed } = previous
  const { now, log } = deps
  const { restored, abandoned } = await engine.start(saved, answers.take(now()))
  serveApplications(hooks, engine, deps)
  engine.finishLast()
  await Promise.all([limits?.alone(), requests?.alone()])
  tellResumed(log, restored, { ...closed, recoveredCalls: closed.recoveredCalls + abandoned })
}

type Http = Awaited<ReturnType<typeof openHttp>>

/** Binds the API and the customer edge. */
async function openHttp({ stores, services, engine, opened }: LoadedParts, deps: RunningDeps) {
  const { store, local, changes } = stores
  const { config, log } = deps
  const { databaseUrl } = config
  const rollUps = { ...deps, days: config.retention.callRecordDays }
  const reports = openReports({ store, now: deps.steadyNow, log, databaseUrl, rollUps })
  const rateImports = openRateImports({ ...deps, store, changes, databaseUrl })
  const stopWatch = stores.watch({
    onLogGone: () => void reports.restart(),
    onChange: (problem) => engine.storage.note(problem),
  })
  // A start that fails later ends the watch here. A stop ends it first, so that what waits can be
  // written.
  opened.closeBy(stopWatch)
  const backups = local && scheduleBackups(local, deps)
  const certificates = new HttpCertificates(config, log, deps.now)
  opened.closeBy(() => certificates.stop())
  const control = await openControl(
    stores,
    services,
    engine,
    { reports, rateImports, backups, certificates },
    deps,
  )
  const stopControl = once(() => control.stop())
  opened.closeBy(stopControl)
  return { control, stopControl, certificates, backups, stopWatch }
}

/** Returns the function that ends the duties. */
function beginDuties(
  { stores, services, engine }: LoadedParts,
  backups: ScheduledBackups | undefined,
  deps: RunningDeps,
): () => void {
  const { alerts, webhooks } = services
  const duties = [
    () => void webhooks.stop(),
    () => void alerts.stop(),
    ...startDuties(stores, engine, webhooks, deps),
  ]
  const { store, clocks } = stores
  const lost = new LostRegistrations({
    store,
    sink: webhooks.sink,
    now: clocks.steadyNow,
    log: deps.log,
  })
  duties.push(deps.every(LOST_REGISTRATIONS_TICK_MS, () => void lost.tell()))
  if (backups) duties.push(deps.every(BACKUP_TICK_MS, () => backups.tick()))
  return () => duties.splice(0).forEach((stop) => stop())
}

function runningPlatform(
  { stores, services, engine, opened }: LoadedParts,
  { control, stopControl, certificates }: Http,
  { answers, stopDuties }: { readonly answers: AnswersFile; readonly stopDuties: () => void },
  deps: PlatformDeps,
): OpenedPlatform {
  const { drain, forceStop } = drainOf(engine, deps)
  return {
    local: stores.local,
    engine,
    addresses: addressesOf(engine, control, deps.config),
    reloadCertificates: () => {
      engine.reloadCertificates()
      certificates.reload()
    },
    reloadHooks: () => void services.hooks?.reload(),
    drain: async () => {
      await Promise.all([stores.instance.become('draining'), drain()])
    },
    forceStop,
    leave: async () => {
      stopDuties()
      const [left] = await Promise.all([engine.leave(SET_UP_MS), stopControl()])
      answers.write(left)
      await services.journal.written()
      opened.hasServed = false
    },
    stop: () => opened.closeAll(),
  }
}

function engineOn(
  stores: Stores,
  { charging, hooks, limits, ocs, webhooks }: Services,
  deps: RunningDeps,
): Engine {
  const { store, disk, instance } = stores
  return createEngine({
    ...deps,
    store,
    charging,
    now: deps.steadyNow,
    wallNow: deps.now,
    disk,
    databaseId: stores.databaseId,
    whyClosed: () => stores.whyClosed(),
    instance: instance.identity,
    notices: noticesFor(stores),
    shares: limits,
    installation: stores.local === undefined ? installationOf(store, instance) : undefined,
    clocks: stores.clocks,
    ...(ocs && {
      prices: pricesOf(ocs, deps.now),
      foresee: (asked) => ocs.foresee(asked),
      payerOf: (asked) => ocs.payerOf(asked),
    }),
    hooks,
    webhooks: webhooks.sink,
    announce: (event) => webhooks.announce(event),
    keepsLostPhones: () => webhooks.selects('registration.lost'),
    onNodeChange: (change) => tellNodeChange(webhooks, change, deps.now()),
  })
}

/** Middleware of drachtio-srf needs our own SIP server. */
function serveApplications(
  hooks: HookHost | undefined,
  engine: Engine,
  { randomBytes, log }: PlatformDeps,
): void {
  const way = engine.wayForApplications
  if (way !== undefined)
    hooks?.serveApplications({
      runs: engine.applications,
      way,
      randomSecret: () => randomBytes(24).toString('base64url'),
    })
  else if (hooks)
    log('warn', 'hooks: middleware is not asked, as SIP is served neither here by UDP nor by TCP')
}

/** A fenced instance has lost its shares: its calls are asked again what their payers can pay. */
function reviewWhenFenced(instance: OwnInstance, ocs: Ocs | undefined, engine: Engine): void {
  instance.onFenced((fenced) => void ocs?.loseHoldings(fenced).then(() => engine.calls.review()))
}

function tellResumed(
  log: Log,
  restoredCalls: number,
  closed: { readonly recoveredCalls: number; readonly unansweredCalls: number },
): void {
  if (restoredCalls > 0)
    log('info', 'calls of the previous process were resumed', { restoredCalls })
  if (closed.recoveredCalls + closed.unansweredCalls > 0)
    log('warn', 'calls of the previous process were closed', closed)
}

/** Timers of one start: when that has failed, nothing of it is tried again. */
function endingTimers(schedule: Schedule): { readonly schedule: Schedule; end(): void } {
  let hasEnded = false
  const ending: Schedule = (work, delayMs) => {
    if (hasEnded) return () => undefined
    return schedule(() => {
      if (!hasEnded) work()
    }, delayMs)
  }
  return {
    schedule: ending,
    end: () => {
      hasEnded = true
    },
  }
}

function once<T>(work: () => T): () => T {
  let done: { readonly result: T } | undefined
  return () => (done ??= { result: work() }).result
}

/** Parts that are closed last; they are closed in the reverse order of this list. */
const lastClosed = (
  { instance, changes, keepLost }: Stores,
  shares: readonly (InstanceShares | undefined)[],
) => [
  () => instance.end(),
  () => keepLost(),
  () => changes.stop(),
  ...shares.map((each) => () => each?.stop()),
]

/** Last of all: a start that fails makes no user whose password is never shown again. */
async function announceAdmin(
  store: Store,
  { config, announce, now, randomBytes }: PlatformDeps,
): Promise<void> {
  const admin = await addFirstAdmin(store, config.admin, now(), randomBytes)
  if (admin !== undefined)
    announce(
      `created user ${config.admin.username} with password ${admin.drawnPassword} (shown this ` +
        'once)',
    )
}

async function openAlerts(
  { store, changes, instance }: Pick<Stores, 'store' | 'changes' | 'instance'>,
  deps: PlatformDeps,
): Promise<Alerts> {
  const { config } = deps
  const { smtp: server, smtpFrom: sender } = config
  const alerts = new Alerts({
    ...deps,
    store,
    instance: instance.identity,
    sender: openAlertSender({
      ...deps,
      allowPrivate: config.webhookPrivateTargets === 'allow',
      resolve: (host) => lookup(host, { all: true }),
      publicUrl: config.publicUrl,
      installation: server === undefined || sender === undefined ? undefined : { server, sender },
    }),
    disks: async () => [await spaceOf(dirname(config.databasePath))],
    instances: () => instance.list(),
  })
  const topics = ['alert_channel', 'alert_rule', 'alert_rule_channel', 'carrier'] as const
  changes.follow({ topics, reload: () => alerts.reload() })
  await alerts.reload()
  return alerts
}

async function spaceOf(folder: string): Promise<DiskSpace> {
  const { bavail, blocks, bsize } = await statfs(folder)
  return { folder, freeBytes: bavail * bsize, totalBytes: blocks * bsize }
}

async function openWebhooks(
  { store, changes, instance }: Pick<Stores, 'store' | 'changes' | 'instance'>,
  { sink: beside }: Pick<Alerts, 'sink'>,
  deps: PlatformDeps,
): Promise<Webhooks> {
  const allowPrivate = deps.config.webhookPrivateTargets === 'allow'
  const webhooks = new Webhooks({
    ...deps,
    store,
    allowPrivate,
    beside,
    instance: instance.identity,
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
  stores: Stores,
  [journal, webhooks, shares]: readonly [CallJournal, Webhooks, InstanceShares | undefined],
  deps: RunningDeps,
  members: ShareMembers | undefined,
): Promise<Ocs | ExternalCharging> {
  const { config, now: wallNow, steadyNow: now, random, schedule, every, log } = deps
  const { url, token, timeoutMs, failMode } = config.ocs
  const { store } = stores
  const keeping = endRetentionOf(stores, deps)
  if (url === undefined) {
    const ocs = await Ocs.open({
      store,
      journal,
      keeping,
      now,
      wallNow,
      schedule,
      every,
      log,
      failMode,
      unknownCaller: config.unknownCaller,
      exitCodes: config.exitCodes,
      events: webhooks.sink,
      members,
      awaySeconds: config.databaseAwayMs / 1_000,
      shares,
    })
    stores.instance.grantsFor(() => ocs.rates.longestGrantSeconds)
    return ocs
  }
  return new ExternalCharging({
    store,
    journal,
    instance: stores.instance.identity.name,
    url,
    token,
    timeoutMs,
    failMode,
    keeping,
    now,
    wallNow,
    schedule,
    random,
    log,
  })
}

/** Undefined: no other server can take over. */
const endRetentionOf = (
  { instance, notices }: Stores,
  { config: { journalKeepMs: keepMs }, steadyNow: now, schedule }: PlatformDeps,
): EndRetention | undefined =>
  notices && {
    keepMs,
    now,
    schedule,
    lastAnswerAt: () => now() - instance.heartbeatAgeMs,
    onGap: (check) => notices.onGap(check),
  }

/** Registrations are many and mostly right: after a gap they are read when all else has been. */
const noticesFor = ({ notices, changes }: Stores) =>
  notices && {
    on: notices.on.bind(notices),
    notify: notices.notify.bind(notices),
    listening: notices.listening.bind(notices),
    onGap: (handler: () => void) =>
      changes.follow({ topics: [], reload: () => Promise.resolve(handler()) }),
  }

/** Undefined: no other process shares the database. */
function othersOf(
  { store, instance, notices, clocks }: Stores,
  deps: PlatformDeps,
): OtherInstances | undefined {
  if (notices === undefined) return undefined
  const key = store.secrets.keyFor(INSTANCE_KEY)
  return new OtherInstances({ ...deps, ...clocks, ...membershipOf(instance, key, clocks.now) })
}

interface ControlParts {
  readonly reports: Reports
  readonly rateImports: RateImports
  readonly backups: ScheduledBackups | undefined
  readonly certificates: HttpCertificates
}

function openControl(
  stores: Stores,
  { hooks, ocs, requests, alerts, webhooks }: Services,
  engine: Engine,
  { reports, rateImports, backups, certificates }: ControlParts,
  deps: RunningDeps,
): Promise<ControlServer> {
  const { store, disk, changes, instance, clocks, isJournalLost } = stores
  const { config, version, schedule, randomBytes, log } = deps
  // The engine has the steady clock of this process.
  const port = portOf(engine, (time) => time + clocks.now() - deps.steadyNow())
  const listCertificates = () => [
    ...certificates.list(),
    ...(engine.certificate === undefined ? [] : [{ use: 'sip' as const, ...engine.certificate }]),
    ...engine.stir.ends().map((end) => ({ use: 'stir' as const, ...end })),
  ]
  alerts.watchCertificates(listCertificates)
  alerts.watchNodes(() => engine.dispatcher.status())
  return startControl(
    {
      ...clocks,
      store,
      disk,
      isJournalLost,
      changes,
      instances: instance,
      others: othersOf(stores, deps),
      ocs,
      requestShares: requests,
      webhooks,
      alerts,
      reports,
      rateImports,
      schedule,
      randomBytes,
      log,
      version,
      engine: {
        ...port,
        telemetry: () => ({
          ...port.telemetry(),
          ...backups?.telemetry(),
          ...hooks?.telemetry(),
        }),
      },
      lossTroubles: () => engine.losses.troubles(),
      hookTroubles: () => [...(hooks?.troubles() ?? []), ...engine.routingWebhooks.troubles()],
      console: readConsole(),
      inForce: deps.inForce,
      loopDelay: watchLoop(),
      certificates: listCertificates,
      resolve: (host) => lookup(host, { all: true }),
      settings: {
        jwtSecret: config.jwtSecret,
        recordingsPath: config.recording?.folder,
        paymentWebhookSecret: config.paymentWebhookSecret,
        mcpAllowedHosts: config.mcpAllowedHosts,
        publicUrl: config.publicUrl,
        trustedProxies: config.trustedProxies,
        hasMediaRelay: config.relays.length > 0,
        allowsPrivateTargets: config.webhookPrivateTargets === 'allow',
        allowsPrivateCertificates: config.stir.privateTargets === 'allow',
        reservedNetworks: [
          ...config.trustedSources,
          ...config.edgeProxies.map(({ network }) => network),
        ],
        ownPlaces: engine.ownPlaces,
      },
    },
    {
      api: { ...config.apiListen, certificate: certificates.api },
      edge: { ...config.edgeListen, certificate: certificates.edge },
      every: deps.every,
      limits: { connectionsPerAddress: config.httpConnectionsPerAddress },
    },
  )
}

/** A timer in its place would wake the process a hundred times a second. */
function watchLoop(): LoopDelay {
  const histogram = monitorEventLoopDelay({ samplePerIteration: true })
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

function addressesOf(
  engine: Engine,
  control: ControlServer,
  { publicUrl, apiTls }: Config,
): string {
  const sip = engine.listeners.map(
    ({ protocol, ...place }) => `${protocol}/${formatHostAndPort(place)}`,
  )
  const api = formatHostAndPort(control.api)
  const { host, port } = control.api
  const isWildcard = host === '0.0.0.0' || host === '::'
  const local = formatHostAndPort({ host: isWildcard ? 'localhost' : host, port })
  const consoleUrl = publicUrl ?? `${apiTls === undefined ? 'http' : 'https'}://${local}/`
  const edge = formatHostAndPort(control.edge)
  return `sip=${sip.join(',')} api=${api} edge=${edge} console=${consoleUrl}`
}
