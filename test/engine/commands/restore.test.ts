import { createHash } from 'node:crypto'
import {
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import Sqlite from 'better-sqlite3'
import { expect, onTestFinished, test } from 'vitest'
import { runCommandLine } from '../../../engine/commands/index.ts'
import { lockForServing } from '../../../engine/serving-lock.ts'
import { JournalMark } from '../../../schema/journal/journal-mark.ts'
import { openDatabase } from '../../../schema/sqlite/open.ts'
import { fakeWorld } from './fake-world.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'

const folder = temporaryFolder()
let count = 0

/** The name of a file in a folder of its own. */
function fileName(): string {
  const own = join(folder, `${++count}-backup`)
  mkdirSync(own)
  return join(own, 'copy.db')
}

async function run(words: string[], path: string) {
  const world = fakeWorld({ DATABASE_PATH: path })
  const code = await runCommandLine(words, world)
  return { code, printed: world.printed, complaints: world.complaints }
}

/** A copy of the database, in a folder of its own. */
async function backupOf(path: string): Promise<string> {
  const file = fileName()
  expect((await run(['backup', file], path)).code).toBe(0)
  return file
}

async function database(): Promise<string> {
  const own = join(folder, String(++count))
  mkdirSync(own)
  const path = join(own, 'tollgate.db')
  await run(['migrate'], path)
  return path
}

function note(path: string, value: string): void {
  const store = openDatabase(path)
  store.sqlite.prepare('INSERT OR REPLACE INTO setting VALUES (?, ?)').run('note', value)
  store.close()
}

function noted(path: string): unknown {
  const store = openDatabase(path)
  try {
    return store.sqlite.prepare("SELECT value FROM setting WHERE name = 'note'").pluck().get()
  } finally {
    store.close()
  }
}

/** As a killed process leaves it: what was written last is in the log only. */
async function crashed(value: string): Promise<string> {
  const path = await database()
  const store = openDatabase(path)
  store.sqlite.prepare('INSERT INTO setting VALUES (?, ?)').run('note', value)
  const left = join(folder, `${++count}-crashed`)
  cpSync(join(path, '..'), left, { recursive: true })
  store.close()
  const copy = join(left, 'tollgate.db')
  expect(existsSync(`${copy}-wal`)).toBe(true)
  return copy
}

const hashes = (path: string) => {
  const place = join(path, '..')
  return readdirSync(place)
    .toSorted()
    .map((name) => [
      name,
      createHash('sha256')
        .update(readFileSync(join(place, name)))
        .digest('hex'),
    ])
}

const keptOf = (path: string): string =>
  join(
    path,
    '..',
    readdirSync(join(path, '..')).find((name) => /before-restore-\w+$/.test(name)) ?? '',
  )

test('restore puts a backup in place, keeps the old database, and what comes next finds it whole', async () => {
  const path = await database()
  note(path, 'backed up')
  const file = await backupOf(path)
  note(path, 'later')
  const before = hashes(file).find(([name]) => file.endsWith(name ?? '?'))
  expect(await run(['restore', file], path)).toMatchObject({ code: 0, complaints: [] })
  expect(noted(path)).toBe('backed up')
  expect(noted(keptOf(path))).toBe('later')
  expect(await run(['check'], path)).toMatchObject({ code: 0 })
  expect(hashes(file)).toContainEqual(before)
})

test('restore over a database of a crashed process: its log undoes nothing, and is kept with it', async () => {
  const path = await crashed('in the log')
  const source = await database()
  note(source, 'backed up')
  const file = await backupOf(source)
  copyFileSync(`${source}.key`, `${file}.key`)
  expect(await run(['restore', file], path)).toMatchObject({ code: 0 })
  expect(existsSync(`${path}-wal`)).toBe(false)
  expect(noted(path)).toBe('backed up')
  expect(noted(keptOf(path))).toBe('in the log')
})

test('a copy that was made with its log is restored with what is in the log', async () => {
  const file = await crashed('in the log')
  const path = await database()
  const before = hashes(file)
  expect((await run(['restore', file], path)).code).toBe(0)
  expect(noted(path)).toBe('in the log')
  expect(hashes(file)).toEqual(before)
})

test('the key beside the backup is taken where the present one does not open it; a missing one is told', async () => {
  const source = await crashed('other key')
  const path = await database()
  expect((await run(['restore', source], path)).printed.join('\n')).toContain(`${path}.key is`)
  expect(readFileSync(`${path}.key`, 'utf8')).toBe(readFileSync(`${source}.key`, 'utf8'))
  const third = await database()
  const file = await backupOf(path)
  const told = await run(['restore', file], third)
  expect(told.printed.join('\n')).toContain('encrypted with another key')
})

const GUARD = 'ledger_entry_no_update'

/** Changes bytes of a file. */
const bytesOf = (harm: (bytes: Buffer) => unknown) => (file: string) => {
  const bytes = readFileSync(file)
  harm(bytes)
  writeFileSync(file, bytes)
}
const sqlIn = (sql: string) => (file: string) => {
  const other = new Sqlite(file)
  other.exec(sql)
  other.close()
}

test.each([
  ['', (file: string) => writeFileSync(file, 'text '.repeat(100))],
  ['', bytesOf((bytes) => bytes.fill(0x5a, 8_192, 40_960))],
  ['version 9999', bytesOf((bytes) => bytes.writeUInt32BE(9_999, 60))],
  [
    'unreleased version',
    (file: string) => {
      writeFileSync(file, '')
      sqlIn('CREATE TABLE schema_migration (version INTEGER); PRAGMA user_version = 49')(file)
    },
  ],
  [
    'trigger generous is not in',
    sqlIn(
      `CREATE TRIGGER generous AFTER INSERT ON ledger_entry BEGIN
         UPDATE wallet SET credit_limit_micros = 0; END`,
    ),
  ],
  [`trigger ${GUARD} is missing`, sqlIn(`DROP TRIGGER ${GUARD}`)],
  [
    `trigger ${GUARD} is not as in`,
    sqlIn(
      `DROP TRIGGER ${GUARD};
       CREATE TRIGGER ${GUARD} BEFORE UPDATE ON ledger_entry BEGIN SELECT 1; END`,
    ),
  ],
  ['table more is not in', sqlIn('CREATE TABLE more (id INTEGER PRIMARY KEY AUTOINCREMENT)')],
  ['view all_of_it is not in', sqlIn('CREATE VIEW all_of_it AS SELECT * FROM wallet')],
  ['index by_name is not in', sqlIn('CREATE INDEX by_name ON setting (value)')],
])(
  'restore of a file that was harmed is refused in one line, changes nothing, and says: %s',
  async (said, harm) => {
    const path = await database()
    note(path, 'present')
    const file = await backupOf(path)
    harm(file)
    const others = () => hashes(path).filter(([name]) => !name?.endsWith('.lock'))
    const before = others()
    const { code, complaints } = await run(['restore', file], path)
    expect(code).not.toBe(0)
    expect(complaints).toEqual([expect.stringContaining(said)])
    expect(others()).toEqual(before)
  },
)

test('a backup of a database that is served misses no journal, and is restored', async () => {
  const path = await database()
  const store = openDatabase(path)
  await new JournalMark(store).set(1)
  store.close()
  expect(await run(['check'], path)).toMatchObject({
    code: 1,
    printed: expect.arrayContaining([expect.stringContaining(`${path}.calls-1 is missing`)]),
  })
  const file = await backupOf(path)
  copyFileSync(`${path}.key`, `${file}.key`)
  expect((await run(['check'], file)).code).toBe(0)
  expect((await run(['restore', file], path)).code).toBe(0)
  expect((await run(['check'], path)).code).toBe(0)
})

test('restore refuses while the database is served', async () => {
  const path = await database()
  const file = await backupOf(path)
  const lock = lockForServing(path)
  onTestFinished(() => lock.release())
  const { code, complaints } = await run(['restore', file], path)
  expect([code, complaints.join()]).toEqual([2, expect.stringContaining('is serving it')])
})

test('check changes no byte of a database, of a crashed process neither, and sees what is in its log', async () => {
  for (const path of [await database(), await crashed('in the log')]) {
    const before = hashes(path)
    expect(await run(['check'], path)).toMatchObject({ code: 0 })
    expect(hashes(path)).toEqual(before)
  }
  const path = await crashed('in the log')
  const store = openDatabase(path)
  store.sqlite.pragma('user_version = 0')
  const older = join(folder, `${++count}-older`)
  cpSync(join(path, '..'), older, { recursive: true })
  store.close()
  const copy = join(older, 'tollgate.db')
  const told = await run(['check'], copy)
  expect([told.code, told.printed.join('\n')]).toEqual([1, expect.stringContaining('run migrate')])
})

test('calls that a killed process left open stay with the database until then', async () => {
  const path = await database()
  const file = await backupOf(path)
  writeFileSync(`${path}.calls-3`, 'lines')
  await run(['restore', file], path)
  const names = readdirSync(join(path, '..')).filter((name) => name.includes('.calls-'))
  expect(names).toEqual([expect.stringMatching(/^tollgate\.db\.before-restore-\w+\.calls-3$/)])
})
