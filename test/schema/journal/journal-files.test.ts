import { mkdirSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { checked } from '../../../schema/journal/line-buffer.ts'
import { JournalFiles } from '../../../schema/journal/journal-files.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'
import { eventually, turnOfEventLoop } from '../../support/waiting.ts'

const folder = temporaryFolder()
let count = 0

function path(): string {
  count += 1
  return join(folder, `${count}.db`)
}

const append = (file: JournalFiles, ...texts: readonly string[]): Promise<unknown> =>
  new Promise((resolve) => file.append(Buffer.concat(texts.map((text) => checked(text))), resolve))

const filesOf = (database: string) =>
  readdirSync(folder)
    .filter((name) => join(folder, name).startsWith(`${database}.`))
    .map((name) => name.slice(name.indexOf('.db') + 3))

test('the next start reads what was appended, in order', async () => {
  const database = path()
  const file = new JournalFiles(database, 'id')
  expect(await append(file, '1', 'zwei ☎')).toBeUndefined()
  await append(file, '3')
  const next = new JournalFiles(database, 'id')
  expect(next.read()).toEqual({ lines: ['1', 'zwei ☎', '3'], foreign: [] })
  await append(next, '4')
  expect(filesOf(database)).toEqual(['.calls-1', '.calls-2'])
  expect(new JournalFiles(database, 'id').read().lines).toEqual(['1', 'zwei ☎', '3', '4'])
  expect(statSync(`${database}.calls-1`).mode & 0o777).toBe(0o600)
})

test('what is reserved stays behind the lines, takes others without a new block, and is an error when it is used up', async () => {
  const database = path()
  const file = new JournalFiles(database, 'id')
  const reserved = (text: string): Promise<unknown> =>
    new Promise((resolve) => file.appendReserved(checked(text), resolve))
  expect(await reserved('1')).toBeInstanceOf(Error)
  const [line, room] = [checked('1'), 256 * 1024]
  await new Promise((resolve) => file.append(line, resolve, room))
  const { size } = statSync(`${database}.calls-1`)
  expect(size - file.size).toBeGreaterThanOrEqual(room)
  expect(await reserved('2')).toBeUndefined()
  expect(await reserved('x'.repeat(2 * room))).toBeInstanceOf(Error)
  expect(statSync(`${database}.calls-1`).size).toBe(size)
  await append(file, '3')
  expect(new JournalFiles(database, 'id').read().lines).toEqual(['1', '2', '3'])
})

test('a file of another database is kept aside', async () => {
  const database = path()
  await append(new JournalFiles(database, 'other'), '1')
  const aside = `${database}.calls-1.of-another-database`
  expect(new JournalFiles(database, 'id').read()).toEqual({ lines: [], foreign: [aside] })
  expect(filesOf(database)).toEqual(['.calls-1.of-another-database'])
})

test('older files are removed when a new one has what is needed; all of them when nothing is', async () => {
  const database = path()
  const file = new JournalFiles(database, 'id')
  await append(file, '1')
  file.startNew()
  await append(file, '2')
  await file.removeOlder()
  await expect.poll(() => filesOf(database)).toEqual(['.calls-2'])
  await file.close('keep')
  expect(new JournalFiles(database, 'id').read().lines).toEqual(['2'])
  await file.close('remove')
  expect(filesOf(database)).toEqual([])
})

test('the next file is there with its room before it is needed, and is none that a start reads lines from', async () => {
  const database = path()
  const file = new JournalFiles(database, 'id')
  await append(file, '1')
  const next = `${database}.calls-2`
  file.prepareNew(600_000)
  file.prepareNew(600_000)
  await eventually(() => expect(file.isPrepared).toBe(true))
  expect(statSync(next).size).toBe(3 * 256 * 1024)
  expect(new JournalFiles(database, 'id').read().lines).toEqual(['1'])
  const { ino } = statSync(next)
  await append(file, '2')
  file.startNew()
  await append(file, '3')
  expect([statSync(next).ino, statSync(next).size, file.size]).toEqual([
    ino,
    3 * 256 * 1024,
    checked('{"database":"id"}').length + checked('3').length,
  ])
  // Its room takes what a new file has none for.
  const long = checked('x'.repeat(400_000))
  expect(await new Promise((resolve) => file.appendReserved(long, resolve))).toBeUndefined()
  expect(statSync(next).size).toBe(3 * 256 * 1024)
  expect(new JournalFiles(database, 'id').read().lines.slice(0, 3)).toEqual(['1', '2', '3'])
  file.prepareNew(1)
  await expect.poll(() => filesOf(database)).toContain('.calls-3')
  await file.close('keep')
  expect(filesOf(database)).toEqual(['.calls-1', '.calls-2'])
})

test('a next file that is not whole is left alone: its path is that of a new one, whose lines stay', async () => {
  const database = path()
  const file = new JournalFiles(database, 'id')
  await append(file, '1')
  for (let number = 2; number < 12; number += 1) {
    file.prepareNew(4 * 1024 * 1024)
    // Each time it has come a little further.
    for (let turn = 0; turn < (number - 2) ** 2; turn += 1) await turnOfEventLoop()
    file.startNew()
    expect(await append(file, String(number))).toBeUndefined()
  }
  await turnOfEventLoop()
  const lines = Array.from({ length: 11 }, (_, index) => String(index + 1))
  expect(new JournalFiles(database, 'id').read().lines).toEqual(lines)
})

test('where no next file can be made, lines go to one that is made when it is needed', async () => {
  const database = path()
  const file = new JournalFiles(database, 'id')
  await append(file, '1')
  writeFileSync(`${database}.calls-2`, '')
  file.prepareNew(1)
  await turnOfEventLoop()
  file.startNew()
  expect(await append(file, '2')).toBeUndefined()
  expect(new JournalFiles(database, 'id').read().lines).toEqual(['1', '2'])
})

test('a next file that cannot be made is not tried again and again: the one after it is', async () => {
  const database = path()
  const file = new JournalFiles(database, 'id')
  await append(file, '1')
  writeFileSync(`${database}.calls-2`, '')
  file.prepareNew(1)
  await append(file, '2')
  await append(file, '3')
  rmSync(`${database}.calls-2`)
  file.prepareNew(1)
  await append(file, '4')
  await append(file, '5')
  expect(filesOf(database)).toEqual(['.calls-1'])
  file.startNew()
  await append(file, '6')
  file.prepareNew(1)
  await expect.poll(() => filesOf(database)).toEqual(['.calls-1', '.calls-2', '.calls-3'])
  await file.close('keep')
})

test('a next file that somebody has removed is not written to', async () => {
  const database = path()
  const file = new JournalFiles(database, 'id')
  await append(file, '1')
  file.prepareNew(1)
  await eventually(() => expect(file.isPrepared).toBe(true))
  await append(file, '2')
  rmSync(`${database}.calls-2`)
  file.startNew()
  await append(file, '3')
  expect(new JournalFiles(database, 'id').read().lines).toEqual(['1', '2', '3'])
})

test('a next file that cannot be removed is not written to, and stops nothing', async () => {
  const database = path()
  const file = new JournalFiles(database, 'id')
  await append(file, '1')
  // A folder is not removed as a file.
  const folders = [2, 4].map((number) => `${database}.calls-${number}`)
  for (const name of folders) mkdirSync(name)
  file.prepareNew(1)
  file.startNew()
  expect(await append(file, '2')).toBeUndefined()
  file.prepareNew(1)
  await file.close('keep')
  for (const name of folders) rmSync(name, { recursive: true })
  expect(filesOf(database)).toEqual(['.calls-1', '.calls-3'])
  expect(new JournalFiles(database, 'id').read().lines).toEqual(['1', '2'])
})

test('a journal that is closed while its next file is made leaves none', async () => {
  for (let turns = 0; turns < 6; turns += 1) {
    const database = path()
    const file = new JournalFiles(database, 'id')
    await append(file, '1')
    file.prepareNew(4 * 1024 * 1024)
    for (let turn = 0; turn < turns; turn += 1) await turnOfEventLoop()
    await file.close('remove')
    // What has begun in another thread ends before this.
    await append(new JournalFiles(path(), 'id'), '1')
    await append(new JournalFiles(path(), 'id'), '1')
    expect(filesOf(database)).toEqual([])
  }
})

test('files of a process that has stopped say so by their name, and are followed by a line that does', async () => {
  const database = path()
  const file = new JournalFiles(database, 'id')
  await append(file, '1')
  await file.close('mark')
  expect(filesOf(database)).toEqual(['.calls-1.stopped'])
  const next = new JournalFiles(database, 'id')
  expect(next.read().lines).toEqual(['1', '{"stopped":true}'])
  await append(next, '2')
  await next.close('mark')
  expect(filesOf(database)).toEqual(['.calls-1.stopped', '.calls-2.stopped'])
})

test('a folder that is gone is an error, and the text can be appended again', async () => {
  const away = join(folder, 'away')
  mkdirSync(away)
  const file = new JournalFiles(join(away, 'calls.db'), 'id')
  rmSync(away, { recursive: true })
  expect(await append(file, '1')).toMatchObject({ code: 'ENOENT' })
  mkdirSync(away)
  expect(await append(file, '1')).toBeUndefined()
  expect(new JournalFiles(join(away, 'calls.db'), 'id').read().lines).toEqual(['1'])
})

/** As a database has it. */
class Mark {
  file: number | undefined
  isAway = false

  async set(number: number): Promise<void> {
    this.file = number
  }

  async clear(): Promise<void> {
    if (this.isAway) throw new Error('away')
    this.file = undefined
  }
}

test('the mark of a journal is there from its first line to its end, and its files outlive it', async () => {
  const database = path()
  const mark = new Mark()
  const file = new JournalFiles(database, 'id', mark)
  expect(mark.file).toBeUndefined()
  await append(file, '1')
  expect(mark.file).toBe(1)
  file.startNew()
  await append(file, '1')
  expect(mark.file).toBe(2)
  mark.isAway = true
  await file.close('remove')
  expect([mark.file, filesOf(database)]).toEqual([2, ['.calls-1', '.calls-2']])
  mark.isAway = false
  await file.close('remove')
  expect([mark.file, filesOf(database)]).toEqual([undefined, []])
})
