/**
 * A PostgreSQL server that several processes share. On the disk of this one are only the journal
 * and its lock.
 */
import { realpathSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { ServerChanges } from '../../schema/changes/server-changes.ts'
import { CallJournal } from '../../schema/journal/call-journal.ts'
import { JournalFiles } from '../../schema/journal/journal-files.ts'
import { databaseIdOf, JournalMark } from '../../schema/journal/journal-mark.ts'
import { Heartbeat } from '../../schema/instances/heartbeat.ts'
import { ServerClock } from '../../schema/instances/server-clock.ts'
import {
  installIdAt,
  registerInstance,
  serverNow,
} from '../../schema/instances/instance-registry.ts'
import { SettingsOfInstances } from '../../schema/instances/settings-of-instances.ts'
import { refuseWithoutFolder } from '../../schema/sqlite/open.ts'
import type { Store } from '../../schema/storage/store.ts'
import { brokenClaims } from '../../schema/rules/ownership.ts'
import { ServerNotices } from '../../schema/changes/server-notices.ts'
import { openStore, refusalOf, type ServerStore } from '../../schema/postgres/open.ts'
import { keyFileOf } from '../../schema/secrets/key.ts'
import { POLL_MS, FailureTimer } from '../../schema/storage/failure-timer.ts'
import { Storage } from '../../schema/storage/storage.ts'
import { lockForServing } from '../serving-lock.ts'
import { commonSettings, SETTINGS_KEY } from './common-settings.ts'
import { instanceNameOf, instanceUrlOf } from './instance-place.ts'
import { logNumberNotes } from './number-notes.ts'
import type { Stores, StoresDeps, WatchDeps } from './stores.ts'

/**
 * @throws {DatabaseRefused} the server cannot be used, or another process serves as this instance.
 */
export async function openServer(url: string, deps: StoresDeps): Promise<Stores> {
  const { databasePath, secretKey } = deps.config
  const name = instanceNameOf(deps.config, deps.hostName)
  refuseWithoutFolder(databasePath)
  const lock = lockForServing(databasePath)
  const closers: (() => unknown)[] = [() => lock.release()]
  const close = async (): Promise<void> => {
    for (const step of closers.splice(0).toReversed()) await step()
  }
  try {
    const keyFile = keyFileOf(databasePath)
    const store = await openStore(url, {
      secretKey,
      keyFile,
      now: deps.now(),
      instanceName: name,
    })
    closers.push(() => store.close())
    try {
      return await serveFrom(store, { ...deps, url, name, closers, close })
    } catch (error) {
      throw refusalOf(store.name, error)
    }
  } catch (error) {
    await close()
    throw error
  }
}

interface OpenServer extends StoresDeps {
  readonly url: string
  /** Name of the instance. */
  readonly name: string
  readonly closers: (() => unknown)[]
  readonly close: () => Promise<void>
}

async function serveFrom(store: ServerStore, deps: OpenServer): Promise<Stores> {
  const { config, closers, close, schedule, random, log } = deps
  const { applied } = store.migrated
  if (applied.length > 0) log('info', 'database migrated', { ...store.migrated })
  for (const claim of await brokenClaims(store)) log('warn', `ownership: ${claim}`)
  await logNumberNotes(store, config.exitCodes, log)
  const notices = new ServerNotices(deps)
  closers.push(() => notices.stop())
  await notices.start()
  const changes = await ServerChanges.open({ notices, schedule, random, log })
  const serverClock = await readServerClock(store, deps)
  const { instance, settings } = await joinInstallation(store, { notices, serverClock }, deps)
  closers.push(() => instance.stop())
  closers.push(() => settings.stop())
  const id = await databaseIdOf(store)
  const disk = new Storage()
  const place = join(realpathSync(dirname(config.databasePath)), basename(config.databasePath))
  const mark = new JournalMark(store, deps.name)
  const isJournalLost = await mark.isLost({ path: place, databaseId: id }, log)
  return {
    store,
    local: undefined,
    disk,
    notices,
    changes,
    instance,
    clocks: { now: serverClock.now, steadyNow: serverClock.now },
    databaseId: id,
    close,
    isJournalLost,
    openJournal: () =>
      new CallJournal(new JournalFiles(place, id, mark), {
        schedule,
        log,
        boot: deps.boot,
        storage: disk,
        isLost: isJournalLost,
      }),
    whyClosed: () => {
      if (instance.condition === 'fenced') return 'node_fenced'
      return disk.problem && 'storage_unavailable'
    },
    serving: () => settings.serving(),
    watch: (watched) => watchBoth(store, disk, deps, watched),
    keepLost: () => undefined,
    cut: () => {
      store.statements.cut()
      notices.cut()
    },
  }
}

async function readServerClock(
  store: Store,
  { steadyNow }: Pick<StoresDeps, 'steadyNow'>,
): Promise<ServerClock> {
  const sentAt = steadyNow()
  const serverAt = await serverNow(store)
  return new ServerClock(steadyNow, { sentAt, serverAt, answeredAt: steadyNow() })
}

async function joinInstallation(
  store: Store,
  { notices, serverClock }: { readonly notices: ServerNotices; readonly serverClock: ServerClock },
  deps: OpenServer,
): Promise<{ readonly instance: Heartbeat; readonly settings: SettingsOfInstances }> {
  const { config, hostName, version, name, steadyNow: now, schedule, log } = deps
  const installId = installIdAt(config.databasePath, deps.randomBytes)
  const address = instanceUrlOf(config, config.apiListen, hostName)
  const { databaseAwayMs: offlineMs } = config
  const sentAt = now()
  const identity = await registerInstance(store, { name, installId, address, version, offlineMs })
  const { storage, secrets } = store
  const own = commonSettings(config, secrets.keyFor(SETTINGS_KEY))
  const settings = new SettingsOfInstances({ identity, own, connection: notices, schedule, log })
  const instance = new Heartbeat(
    {
      identity,
      installId,
      address,
      version,
      offlineMs,
      connection: notices,
      storage,
      settings,
      now,
      clocks: { ofMachine: deps.now, ofServer: serverClock },
      schedule,
      log,
    },
    sentAt,
  )
  await settings.poll()
  return { instance, settings }
}

/** A disk that takes no journal stops new calls; a server that is away does not. */
function watchBoth(
  { storage }: Store,
  disk: Storage,
  { every }: StoresDeps,
  { onChange }: WatchDeps,
): () => void {
  const patience = [new FailureTimer(storage), new FailureTimer(disk)]
  let reportedCode: string | undefined
  return every(POLL_MS, () => {
    for (const each of patience) each.poll()
    const problem = disk.problem ?? storage.problem
    if (problem?.code === reportedCode) return
    reportedCode = problem?.code
    onChange(problem)
  })
}
