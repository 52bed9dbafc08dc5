/** An SQLite file, which one process serves. */
import { realpathSync } from 'node:fs'
import { FileChanges } from '../../schema/changes/file-changes.ts'
import { CallJournal } from '../../schema/journal/call-journal.ts'
import { JournalFiles } from '../../schema/journal/journal-files.ts'
import { MemoryFile } from '../../schema/journal/memory-file.ts'
import { databaseId, JournalMark } from '../../schema/journal/journal-mark.ts'
import { migrate } from '../../schema/migrations/migrate.ts'
import { OnlyInstance } from '../../schema/instances/only-instance.ts'
import { openCheckpoints } from '../../schema/sqlite/checkpoints.ts'
import { openDatabase } from '../../schema/sqlite/open.ts'
import type { LocalStore } from '../../schema/storage/store.ts'
import { brokenClaims } from '../../schema/rules/ownership.ts'
import { saveLostDatabase } from '../../schema/sqlite/copy.ts'
import { StorageWatch } from '../../schema/storage/storage-watch.ts'
import { lockForServing } from '../serving-lock.ts'
import { instanceNameOf, instanceUrlOf } from './instance-place.ts'
import { logNumberNotes } from './number-notes.ts'
import type { Stores, StoresDeps } from './stores.ts'

/** Five who wait in one turn of the event loop stop it for half of 50 ms. */
const SERVING_BUSY_MS = 5

/** @throws {DatabaseRefused} the file cannot be used, or another process serves it. */
export async function openFile(deps: StoresDeps): Promise<Stores> {
  const { config, schedule, every, log } = deps
  const name = instanceNameOf(config, deps.hostName)
  const store = openDatabase(config.databasePath, {
    secretKey: config.secretKey,
    isNew: deps.isNewDatabase,
  })
  let lock: { release(): void } | undefined
  try {
    lock = lockForServing(config.databasePath)
    await prepare(store, deps)
    const { sqlite, storage } = store
    const place = sqlite.memory ? undefined : realpathSync(sqlite.name)
    const checkpoints = openCheckpoints(store, log)
    const id = databaseId(store)
    const mark = new JournalMark(store)
    const isJournalLost =
      place !== undefined && (await mark.isLost({ path: place, databaseId: id }, log))
    return {
      store,
      local: store,
      disk: storage,
      notices: undefined,
      clocks: deps,
      databaseId: id,
      isJournalLost,
      changes: new FileChanges(store, deps),
      instance: new OnlyInstance({
        ...deps,
        name,
        startedAt: deps.now(),
        address: instanceUrlOf(config, config.apiListen, deps.hostName),
      }),
      openJournal: () =>
        new CallJournal(
          place === undefined ? new MemoryFile() : new JournalFiles(place, id, mark),
          { schedule, log, boot: deps.boot, storage, isLost: isJournalLost },
        ),
      whyClosed: () => storage.problem && 'storage_unavailable',
      serving: () => void sqlite.pragma(`busy_timeout = ${SERVING_BUSY_MS}`),
      watch: (watched) => {
        const onLogGone = (): void => {
          watched.onLogGone()
          void checkpoints?.stop()
        }
        const watch = new StorageWatch({ store, schedule, every, ...watched, onLogGone })
        return () => watch.stop()
      },
      keepLost: () => keepLost(store, deps),
      cut: () => undefined,
      close: async () => {
        await checkpoints?.close()
        store.close()
        lock?.release()
      },
    }
  } catch (error) {
    store.close()
    lock?.release()
    throw error
  }
}

async function prepare(store: LocalStore, { config, log, now }: StoresDeps): Promise<void> {
  const report = migrate(store.sqlite, now())
  if (report.applied.length > 0) log('info', 'database migrated', { ...report })
  for (const claim of await brokenClaims(store)) log('warn', `ownership: ${claim}`)
  await logNumberNotes(store, config.exitCodes, log)
  const encrypted = store.secrets.protect()
  if (encrypted > 0)
    log('warn', 'secrets that were stored in clear are encrypted; older copies still hold them', {
      encrypted,
      key: store.secrets.keySource,
      copy: report.copy,
    })
  // Pages that a statement may have to take back are kept there: in a file they were six writes a
  // call. Only now, because a migration sorts whole tables, and `protect` copies them (D537).
  store.sqlite.pragma('temp_store = MEMORY')
}

/** The file at `DATABASE_PATH` is not the one that has the records of this run. */
function keepLost(store: LocalStore, { now, log }: StoresDeps): void {
  if (store.storage.fileProblem === undefined) return
  const copy = saveLostDatabase(store, now())
  log('error', 'the database was removed while it was open; its contents are saved in a copy', {
    copy,
  })
}
