import { copyFileSync, existsSync, linkSync, renameSync, rmSync } from 'node:fs'
import { dirname } from 'node:path'
import { findFaults } from '../../schema/migrations/migrate.ts'
import type { LocalStore } from '../../schema/storage/store.ts'
import { openDatabase, openUnmodified } from '../../schema/sqlite/open.ts'
import { LocalSecrets } from '../../schema/secrets/local-secrets.ts'
import { copyDatabase, timeName } from '../../schema/sqlite/copy.ts'
import { sync } from '../../schema/storage/sync.ts'
import { type Command, type CommandContext, WrongUsage } from './command.ts'
import { refuseServer } from './with-store.ts'
import { readConfig } from '../config.ts'
import { lockForServing } from '../serving-lock.ts'
import { journalFiles } from '../../schema/journal/journal-file.ts'
import { keyFileOf } from '../../schema/secrets/key.ts'

export const backup: Command = {
  name: 'backup',
  argument: 'FILE',
  summary: 'Copies the SQLite database to a new file, also while it is in use.',
  run: async ({ argument: file }, context) => {
    refuseServer(context, 'copy a PostgreSQL database with pg_dump')
    const { databasePath, secretKey } = readConfig(context.environment)
    if (!existsSync(databasePath)) throw new WrongUsage(`there is no database ${databasePath}`)
    if (existsSync(file)) throw new WrongUsage(`${file} exists; a backup is never written over`)
    const store = openDatabase(databasePath, { secretKey })
    try {
      copyDatabase(store, file)
      context.print(`${databasePath} is copied to ${file}`)
      context.print(
        `the key of the secrets in it is not: ${store.secrets.keySource}; keep it too, apart ` +
          'from the copy',
      )
    } finally {
      store.close()
    }
    return 0
  },
}

export const restore: Command = {
  name: 'restore',
  argument: 'FILE',
  summary: 'Replaces the SQLite database with a backup. The old database stays beside it.',
  createsDatabase: 'always',
  details: () =>
    [
      'Refuses while the database is served. Refuses a FILE that is damaged, of a newer ' +
        'version, of another program or with another',
      'schema. Does not change FILE. Uses FILE.key if it exists and the present key does ' +
        'not open the secrets.',
    ].join('\n'),
  run: async ({ argument: file }, context) => {
    refuseServer(context, 'restore a PostgreSQL database with pg_restore, while no node serves')
    const { databasePath, secretKey } = readConfig(context.environment)
    if (!existsSync(file)) throw new WrongUsage(`there is no file ${file}`)
    const lock = lockForServing(databasePath)
    try {
      const backup = openUnmodified(file, false)
      try {
        refuseDamaged(backup, file)
        put(backup, { file, path: databasePath, secretKey }, context)
      } finally {
        backup.close()
      }
    } finally {
      lock.release()
    }
    return 0
  },
}

interface RestorePaths {
  readonly file: string
  readonly path: string
  readonly secretKey: string | undefined
}

function refuseDamaged({ sqlite }: LocalStore, file: string): void {
  const marked = sqlite
    .prepare("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'schema_migration'")
    .get()
  if (marked === undefined) throw new WrongUsage(`${file} is not a database of Tollgate`)
  const [fault, ...more] = findFaults(sqlite)
  if (fault === undefined) return
  const others = more.length > 0 ? ` (and ${more.length} more)` : ''
  throw new Error(`${file} is damaged, nothing was changed: ${fault}${others}`)
}

function put(backup: LocalStore, paths: RestorePaths, context: CommandContext): void {
  const { file, path } = paths
  const replaced = `${path}.before-restore-${timeName(context.now())}`
  const copy = `${path}.restoring`
  rmSync(copy, { force: true })
  copyDatabase(backup, copy)
  if (existsSync(path)) {
    moveAside(path, replaced)
    context.print(`the old database is kept as ${replaced}`)
  }
  // Logs of another database would be taken in, and undo or damage this one.
  // Sums of its calls are made again.
  for (const suffix of ['-wal', '-shm', '.sums', '.sums-wal', '.sums-shm'])
    rmSync(path + suffix, { force: true })
  renameSync(copy, path)
  sync(dirname(path))
  context.print(`${path} is ${file} now`)
  keepKey(backup, paths, replaced, context)
}

/** At every moment there is a whole database at `path`, or one with its log at `replaced`. */
function moveAside(path: string, replaced: string): void {
  linkSync(path, replaced)
  if (existsSync(`${path}-wal`)) renameSync(`${path}-wal`, `${replaced}-wal`)
  // The calls that a killed process left open are those of the database until now.
  for (const suffix of journalFiles(path)) renameSync(path + suffix, replaced + suffix)
  sync(dirname(path))
}

function keepKey(
  { sqlite }: LocalStore,
  { file, path, secretKey }: RestorePaths,
  replaced: string,
  context: CommandContext,
): void {
  if (new LocalSecrets(sqlite, secretKey, path).problem() === undefined) return
  const [own, brought] = [keyFileOf(path), keyFileOf(file)]
  const isRight =
    secretKey === undefined && new LocalSecrets(sqlite, undefined, file).problem() === undefined
  if (!isRight) {
    const place = secretKey === undefined ? own : 'SECRET_KEY'
    context.print(
      `its secrets are encrypted with another key: put that key into ${place} before you serve ` +
        'it; if it is lost: tollgate secrets reset',
    )
    return
  }
  if (existsSync(own)) renameSync(own, keyFileOf(replaced))
  copyFileSync(brought, own)
  sync(own)
  sync(dirname(own))
  context.print(`${own} is ${brought} now`)
}
