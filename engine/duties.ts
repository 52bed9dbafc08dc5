/** The work of the serving process at intervals, apart from calls and requests. */
import {
  RECORDING_RETENTION_STEP_MS,
  Retention,
  RETENTION_STEP_MS,
} from '../control/observe/retention/retention.ts'
import { RecordingRetention } from '../control/observe/retention/recording-retention.ts'
import { type Cancel, type Clocks, earliest, type Every, type Schedule } from '../schema/clock.ts'
import type { Log } from '../schema/contracts/log.ts'
import type { LocalStore, Store } from '../schema/storage/store.ts'
import { makeBackup, ScheduledBackups } from './backups/scheduled-backups.ts'
import type { Config } from './config.ts'
import { type InstanceChange, InstanceNews, type InstanceNewsDeps } from './stores/instance-news.ts'
import type { Stores } from './stores/stores.ts'
import {
  LostInstances,
  LOST_INSTANCES_POLL_MS,
  type LostInstancesDeps,
} from './stores/lost-instances.ts'

interface DutyDeps extends Clocks {
  readonly config: Config
  readonly schedule: Schedule
  readonly every: Every
  readonly log: Log
}

/** Off unless a folder is set. */
export function scheduleBackups(store: LocalStore, { config, now, log }: DutyDeps) {
  const { folder, ...rest } = config.backup
  if (folder === undefined) return undefined
  return new ScheduledBackups({
    plan: { folder, ...rest },
    databasePath: config.databasePath,
    make: (file) => makeBackup(store, file),
    isStorageFailing: () => store.storage.problem !== undefined,
    now,
    log,
  })
}

/** Starts the duties of every process. Returns the functions that end them. */
export const startDuties = (
  { store, instance, notices }: Pick<Stores, 'store' | 'instance' | 'notices'>,
  { events }: Pick<InstanceNewsDeps, 'events'>,
  { sink }: Pick<InstanceNewsDeps, 'sink'>,
  deps: DutyDeps,
): (() => void)[] => [
  forgetOldRecords(store, notices !== undefined, deps),
  watchInstances(instance, notices !== undefined, { ...deps, store, events, sink }),
]

function watchInstances(
  instances: LostInstancesDeps['instances'],
  hasOthers: boolean,
  deps: DutyDeps & Omit<InstanceNewsDeps, 'now'>,
): () => void {
  const { steadyNow, log } = deps
  const news = hasOthers ? new InstanceNews(deps) : undefined
  const tell = news && ((change: InstanceChange) => news.add(change))
  const lost = new LostInstances({ instances, now: steadyNow, log, ...(tell && { tell }) })
  return deps.every(LOST_INSTANCES_POLL_MS, () => {
    lost.poll()
    void news?.retry()
  })
}

function forgetOldRecords(store: Store, hasOthers: boolean, deps: DutyDeps): () => void {
  const { callRecordDays, auditDays } = deps.config.retention
  const retention = new Retention(
    { ...deps, store, now: () => earliest(deps) },
    { callRecordDays, auditDays },
  )
  const recordings = new RecordingRetention({
    ...deps,
    store,
    now: () => earliest(deps),
    hasOthers,
  })
  const stops = [
    stepping(retention, deps),
    deps.every(RECORDING_RETENTION_STEP_MS, () => void recordings.step()),
  ]
  return () => stops.forEach((stop) => stop())
}

/** Steps until nothing is left to delete, and then looks again from time to time. */
function stepping(retention: Retention, { schedule }: Pick<DutyDeps, 'schedule'>): Cancel {
  let isStopped = false
  const step = async (): Promise<void> => {
    await retention.step()
    if (!isStopped) cancel = schedule(() => void step(), retention.pauseMs())
  }
  let cancel = schedule(() => void step(), RETENTION_STEP_MS)
  return () => {
    isStopped = true
    cancel()
  }
}
