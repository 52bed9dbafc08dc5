/** Groups of writes that the event loop does not wait for: what is promised of them. */
import {
  copyFileSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import Sqlite from 'better-sqlite3'
import { expect, onTestFinished, test, vi } from 'vitest'
import type { Log } from '../../../schema/contracts/log.ts'
import { SqliteStatements } from '../../../schema/sql/sqlite-statements.ts'
import { Checkpoints, openCheckpoints } from '../../../schema/sqlite/checkpoints.ts'
import { openDatabase } from '../../../schema/sqlite/open.ts'
import { stateOf } from '../../../schema/sql/write-ahead-log.ts'
import { Storage } from '../../../schema/storage/storage.ts'
import { runEach, WriteQueue } from '../../../schema/storage/write-queue.ts'
import { deferred } from '../../support/deferred.ts'
import { ManualTime } from '../../support/manual-time.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'
import { threadFile } from '../../support/thread-file.ts'
import { eventually, turnOfEventLoop } from '../../support/waiting.ts'

const folder = temporaryFolder()
let count = 0

function opened() {
  const path = join(folder, `${++count}.db`)
  const store = openDatabase(path)
  store.sqlite.exec('CREATE TABLE thing (name TEXT UNIQUE) STRICT')
  onTestFinished(() => store.close())
  const add = (name: string) => store.statements.prepare('INSERT INTO thing VALUES (?)').run([name])
  return { path, store, add }
}

const namesIn = (path: string): unknown[] => {
  const sqlite = new Sqlite(path, { readonly: true })
  try {
    return sqlite.prepare('SELECT name FROM thing ORDER BY name').pluck().all()
  } finally {
    sqlite.close()
  }
}

/** Statements whose log is on the disk when the test says so. */
function onSlowDisk() {
  const { path, store } = opened()
  const syncs: { readonly resolve: () => void; readonly reject: (error: Error) => void }[] = []
  const statements = new SqliteStatements(store.sqlite, {
    sync: () => new Promise((resolve, reject) => syncs.push({ resolve, reject })),
    committed: () => undefined,
    failed: () => undefined,
    isUnsure: false,
  })
  const add = (name: string) => statements.prepare('INSERT INTO thing VALUES (?)').run([name])
  const synced = () => eventually(() => expect(syncs).not.toEqual([]))
  return { path, sqlite: store.sqlite, statements, syncs, synced, add }
}

test('others see the rows of a group at once; what waits for its commit runs when it is on the disk', async () => {
  const { path, statements, syncs, synced, add } = onSlowDisk()
  const told: string[] = []
  await statements.groupTransaction(async () => {
    await add('a')
    statements.afterCommit(() => told.push('after'))
  })
  await synced()
  await turnOfEventLoop()
  expect([namesIn(path), told]).toEqual([['a'], []])
  syncs[0]?.resolve()
  await eventually(() => expect(told).toEqual(['after']))
})

test('the commit of anything else waits for the disk: also after a group, one that fails, one that stands still, and one that finds the database locked', async () => {
  const { path, sqlite, statements, syncs, add } = onSlowDisk()
  sqlite.pragma('busy_timeout = 0')
  const isFull = () => expect(sqlite.pragma('synchronous', { simple: true })).toBe(2)
  let during: unknown
  await statements.groupTransaction(async () => {
    await add('a')
    during = sqlite.pragma('synchronous', { simple: true })
  })
  expect(during).toBe(1)
  isFull()
  await expect(statements.groupTransaction(() => add('a'))).rejects.toThrow('UNIQUE')
  isFull()
  const still = deferred()
  const standing = statements.groupTransaction(() => still.promise)
  const failed = standing.catch((error: unknown) => error)
  await turnOfEventLoop()
  await turnOfEventLoop()
  isFull()
  await statements.transaction(() => add('b'))
  still.resolve()
  expect(String(await failed)).toContain('waited for something other')
  isFull()
  const other = new Sqlite(path)
  other.exec('BEGIN IMMEDIATE')
  await expect(statements.groupTransaction(() => add('c'))).rejects.toThrow('locked')
  other.close()
  isFull()
  expect([namesIn(path), syncs]).toEqual([['a', 'b'], []])
})

test('a write is told when the disk has it; while the disk fails it waits, is written once, and those after it wait', async () => {
  const { statements, syncs } = onSlowDisk()
  const time = new ManualTime(0)
  const storage = new Storage()
  const done: string[] = []
  const failures: string[] = []
  let runs = 0
  const queue = new WriteQueue({
    store: { statements, storage },
    schedule: time.schedule,
    run: runEach,
    onFailure: (error) => failures.push(String(error)),
  })
  const insert = statements.prepare('INSERT INTO thing VALUES (?)')
  const add = (name: string) =>
    queue.add({
      run: () => {
        runs += 1
        return insert.run([name])
      },
      done: () => void done.push(name),
    })
  add('a')
  time.advance(10)
  await eventually(() => expect(syncs).toHaveLength(1))
  add('b')
  syncs[0]?.reject(new Error('EIO'))
  await eventually(() => expect(failures).toEqual(['Error: EIO']))
  expect([done, queue.waiting, storage.episode]).toEqual([[], 2, 1])
  const flushed = queue.flush()
  await eventually(() => expect(syncs).toHaveLength(2))
  syncs[1]?.reject(new Error('EIO'))
  expect(await flushed).toBe(false)
  time.advance(1_000)
  await eventually(() => expect(syncs).toHaveLength(3))
  expect([done, runs]).toEqual([[], 1])
  syncs[2]?.resolve()
  await eventually(() => expect(done).toEqual(['a']))
  time.advance(1_000)
  await eventually(() => expect(syncs).toHaveLength(4))
  syncs[3]?.resolve()
  await eventually(() => expect(done).toEqual(['a', 'b']))
  expect([runs, queue.waiting, storage.episode]).toEqual([2, 0, undefined])
})

test('a write that is told alone, because another of its group is refused, waits for the disk alone', async () => {
  const { statements, syncs } = onSlowDisk()
  const time = new ManualTime(0)
  const done: string[] = []
  const queue = new WriteQueue({
    store: { statements, storage: new Storage() },
    schedule: time.schedule,
    run: runEach,
    onFailure: () => undefined,
  })
  const insert = statements.prepare('INSERT INTO thing VALUES (?)')
  for (const name of ['a', 'b', 'b', 'c'])
    queue.add({ run: () => insert.run([name]), done: () => void done.push(name) })
  time.advance(10)
  await eventually(() => expect(syncs).toHaveLength(1))
  syncs[0]?.reject(new Error('EIO'))
  for (let next = 1; next < 4; next += 1) {
    await eventually(() => {
      time.advance(1_000)
      expect(syncs.length).toBeGreaterThan(next)
    })
    syncs[next]?.resolve()
  }
  await eventually(() => expect(queue.waiting).toBe(0))
  expect(done).toEqual(['a', 'b', 'c'])
})

test('after a failure all of the log is written to the file of the database before a group is told', async () => {
  const { path, store, add } = opened()
  const group = async (name: string): Promise<void> => {
    await store.statements.groupTransaction(() => add(name))
    await store.statements.onDisk()
  }
  await group('a')
  // The log is out of reach: a folder has its name.
  renameSync(`${path}-wal`, `${path}-moved`)
  mkdirSync(`${path}-wal`)
  await expect(group('b')).rejects.toThrow('EISDIR')
  await group('c')
  const alone = join(folder, 'alone.db')
  copyFileSync(path, alone)
  expect(namesIn(alone)).toEqual(['a', 'b', 'c'])
})

test('after a failure what others commit does not stand behind rows that the disk lacks', async () => {
  const { path, store, add } = opened()
  await store.statements.transaction(() => add('a'))
  renameSync(`${path}-wal`, `${path}-moved`)
  mkdirSync(`${path}-wal`)
  await store.statements.groupTransaction(() => add('b'))
  await expect(store.statements.onDisk()).rejects.toThrow('EISDIR')
  await store.statements.transaction(() => add('c'))
  const alone = join(folder, 'before.db')
  copyFileSync(path, alone)
  expect(namesIn(alone)).toEqual(['a', 'b'])
})

test.each(['before a group waits for it', 'while a group waits for it'])(
  'a failure of the disk that another commit was told of, %s, counts for the group, too',
  async (when) => {
    const { path, store, add } = opened()
    const { sqlite, statements } = store
    await statements.groupTransaction(() => add('a'))
    const exec = sqlite.exec.bind(sqlite)
    const failing = vi.spyOn(sqlite, 'exec').mockImplementation((sql) => {
      if (sql !== 'COMMIT') return exec(sql)
      throw Object.assign(new Error('disk I/O error'), { code: 'SQLITE_IOERR_FSYNC' })
    })
    let onDisk = when.startsWith('while') ? statements.onDisk() : undefined
    // All of it in one turn of the event loop: no file is opened meanwhile.
    await expect(statements.transaction(() => add('b'))).rejects.toThrow('I/O')
    failing.mockRestore()
    onDisk ??= statements.onDisk()
    await onDisk
    const alone = join(folder, `${++count}.db`)
    copyFileSync(path, alone)
    expect(namesIn(alone)).toEqual(['a'])
  },
)

test('a commit that is refused for another reason says nothing of the disk', async () => {
  const { store, add } = opened()
  await store.statements.transaction(() => add('a'))
  await expect(store.statements.transaction(() => add('a'))).rejects.toThrow('UNIQUE')
  expect(store.writeAhead?.isUnsure).toBe(false)
})

test('a log that a reader keeps from being emptied after a failure fails the group, until it ends', async () => {
  const { path, store, add } = opened()
  store.sqlite.pragma('busy_timeout = 0')
  const group = async (name: string): Promise<void> => {
    await store.statements.groupTransaction(() => add(name))
    await store.statements.onDisk()
  }
  await group('a')
  const reader = new Sqlite(path, { readonly: true })
  const rows = reader.prepare('SELECT name FROM thing').iterate()
  rows.next()
  renameSync(`${path}-wal`, `${path}-moved`)
  await expect(group('b')).rejects.toThrow('ENOENT')
  await expect(group('c')).rejects.toThrow('is read')
  rows.return?.()
  reader.close()
  await group('d')
})

const file = await threadFile(
  new URL('../../../schema/sqlite/checkpoint-worker.ts', import.meta.url),
)

/** Sixteen commits of a hundred pages or more each. */
async function commitMuch({ store }: ReturnType<typeof opened>, round: number): Promise<void> {
  const insert = store.statements.prepare('INSERT INTO thing VALUES (?)')
  for (let at = 0; at < 16; at += 1)
    await store.statements.transaction(async () => {
      for (let row = 0; row < 50; row += 1)
        await insert.run([`${round}.${at}.${row}`.padEnd(4_000, 'x')])
    })
}

test('a long log is moved into the file of the database by a thread, while commits go on, and is used again from its start', async () => {
  const here = opened()
  const { path, store } = here
  const checkpoints = openCheckpoints(store, () => undefined, file)
  onTestFinished(() => checkpoints?.close())
  for (let round = 0; round < 12; round += 1) {
    await commitMuch(here, round)
    await eventually(() => {
      const { log, checkpointed } = stateOf(store.sqlite, 'NOOP')
      expect(checkpointed).toBe(log)
    })
  }
  // As much as two rounds, of the twelve.
  expect(statSync(`${path}-wal`).size).toBeLessThan(30_000_000)
  expect(store.sqlite.pragma('wal_autocheckpoint', { simple: true })).toBe(8_000)
})

test('transactions that wait for each other are all told of their commits while the length of the log is looked at', async () => {
  const { path, store, add } = opened()
  const checkpoints = openCheckpoints(store, () => undefined, file)
  onTestFinished(() => checkpoints?.close())
  const names = Array.from({ length: 40 }, (_, index) => String(index).padStart(2, '0'))
  const { statements } = store
  const told = names.map((name, index) =>
    index % 2 === 0
      ? statements.transaction(() => add(name))
      : statements.groupTransaction(() => add(name)),
  )
  const failed = (await Promise.allSettled(told)).filter(({ status }) => status === 'rejected')
  expect([failed, namesIn(path)]).toEqual([[], names])
})

test('without its thread a log stays bounded', async () => {
  const here = opened()
  const checkpoints = openCheckpoints(here.store, () => undefined, file)
  await checkpoints?.close()
  for (let round = 0; round < 12; round += 1) await commitMuch(here, round)
  expect(statSync(`${here.path}-wal`).size).toBeLessThan(50_000_000)
})

test('a thread that is stopped has closed the database, and the next request starts another', async () => {
  const { path, store, add } = opened()
  const checkpoints = new Checkpoints(
    file,
    path,
    () => undefined,
    () => undefined,
  )
  onTestFinished(() => checkpoints.close())
  const isMoved = () => {
    const { log, checkpointed } = stateOf(store.sqlite, 'NOOP')
    return log === checkpointed
  }
  for (const name of ['a', 'b']) {
    await add(name)
    expect(isMoved()).toBe(false)
    checkpoints.request()
    await eventually(() => expect(isMoved()).toBe(true))
    await checkpoints.stop()
    // Another connection would keep it from that.
    store.sqlite.pragma('journal_mode = DELETE')
    store.sqlite.pragma('journal_mode = WAL')
  }
})

test('a thread that the system has no room for undoes no commit, and is asked for less and less often', async () => {
  const here = opened()
  const { path, store } = here
  const errors: string[] = []
  // As beyond the limit of threads, it is refused when it is to be made.
  const refused = new URL('http://localhost/thread.js')
  const log: Log = (_level, message) => void errors.push(message)
  const checkpoints = new Checkpoints(refused, path, log, () => undefined)
  store.sqlite.pragma('wal_autocheckpoint = 8000')
  store.writeAhead?.watch(() => checkpoints.request())
  for (let round = 0; round < 3; round += 1) await commitMuch(here, round)
  expect(namesIn(path)).toHaveLength(3 * 16 * 50)
  expect([errors.length, checkpoints.isMoving]).toEqual([1, false])
})

test('a failure of the disk that the thread was told of counts for groups, too', async () => {
  const here = opened()
  const { path, store } = here
  const failing = `${path}.mjs`
  writeFileSync(
    failing,
    `import { parentPort } from 'node:worker_threads'
     parentPort.on('message', () => {
       throw Object.assign(new Error('disk I/O error'), { code: 'SQLITE_IOERR_FSYNC' })
     })`,
  )
  const checkpoints = openCheckpoints(store, () => undefined, pathToFileURL(failing))
  onTestFinished(() => checkpoints?.close())
  await commitMuch(here, 0)
  await eventually(() => expect(store.writeAhead?.isUnsure).toBe(true))
  await store.statements.onDisk()
  expect(stateOf(store.sqlite, 'NOOP').log).toBe(0)
})

test('a thread that fails is started again less and less often, and the failure is told once, until it works', async () => {
  const folderOf = join(folder, `${++count}.thread`)
  mkdirSync(folderOf)
  const failing = join(folderOf, 'failing.mjs')
  const starts = join(folderOf, 'starts')
  writeFileSync(
    failing,
    `import { appendFileSync, existsSync } from 'node:fs'
     import { parentPort } from 'node:worker_threads'
     appendFileSync(${JSON.stringify(starts)}, 'x')
     parentPort.on('message', () => {
       if (!existsSync(${JSON.stringify(`${starts}.works`)})) throw new Error('EIO')
       parentPort.postMessage('done')
     })`,
  )
  const errors: string[] = []
  const log: Log = (_level, message) => void errors.push(message)
  const checkpoints = new Checkpoints(pathToFileURL(failing), 'x.db', log, () => undefined)
  onTestFinished(() => checkpoints.close())
  /** Resolves with the requests until a thread has started once more. */
  const requestsUntilStart = async (times: number): Promise<number> => {
    let requests = 0
    for (; requests < 20 && !checkpoints.isMoving; requests += 1) checkpoints.request()
    await eventually(() => expect(readFileSync(starts, 'utf8')).toHaveLength(times))
    await eventually(() => expect(checkpoints.isMoving).toBe(false))
    return requests
  }
  expect([await requestsUntilStart(1), await requestsUntilStart(2)]).toEqual([1, 3])
  expect([await requestsUntilStart(3), errors.length]).toEqual([5, 1])
  writeFileSync(`${starts}.works`, '')
  expect(await requestsUntilStart(4)).toBe(9)
  rmSync(`${starts}.works`)
  checkpoints.request()
  await eventually(() => expect(errors).toHaveLength(2))
})
