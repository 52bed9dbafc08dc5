/**
 * Files that a crash cut off, or whose bits have changed: what is whole counts, the rest is named.
 */
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import type { JournalEntry } from '../../../schema/journal/journal-entries.ts'
import { checked } from '../../../schema/journal/line-buffer.ts'
import type { JournalFile } from '../../../schema/journal/journal-file.ts'
import { JournalFiles } from '../../../schema/journal/journal-files.ts'
import { MemoryFile } from '../../../schema/journal/memory-file.ts'
import { CallJournal } from '../../../schema/journal/call-journal.ts'
import { Storage } from '../../../schema/storage/storage.ts'
import { endedCall, openCall, start } from '../../support/books.ts'
import { ManualTime } from '../../support/manual-time.ts'
import { seededRandom } from '../../support/seeded-random.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'

const database = join(temporaryFolder(), 'tollgate.db')
const file = `${database}.calls-1`
const terms = { payerId: 1, tariff: null, costMicros: 20_000, isReported: false }
const boot = { id: 'one', at: start }

interface Told {
  readonly level: string
  readonly line: number
  readonly callUuid: string
}

function journalOn(journalFile: JournalFile) {
  const time = new ManualTime(start)
  const told: Told[] = []
  const journal = new CallJournal(journalFile, {
    storage: new Storage(),
    schedule: time.schedule,
    boot,
    log: (level, _, fields) => told.push({ level, ...fields } as Told),
  })
  return { journal, time, told, left: journal.left() }
}

const open = () => journalOn(new JournalFiles(database, 'id'))

const byUuid = (left: readonly JournalEntry[]) =>
  new Map(left.map((entry) => [entry.callUuid, entry]))

const stateOf = (entry: JournalEntry | undefined): string | undefined => {
  const { text, change } = (entry?.kind === 'cut' ? entry.state : undefined) ?? {}
  return change === undefined ? text : `${text} ${change}`
}

/** Begun, answered, changed twice and alive; some have ended, some are stored. */
function wholeFile(): Buffer {
  const written = [checked('{"database":"id"}')]
  const { journal, time } = journalOn(
    new (class extends MemoryFile {
      override append(lines: Buffer, done: (error: unknown) => void): void {
        written.push(Buffer.from(lines))
        done(undefined)
      }
    })(),
  )
  for (let index = 0; index < 12; index += 1) {
    const uuid = `call-${index}`
    const { answeredAt: _, ...call } = openCall(uuid, start)
    journal.begun(call)
    time.advance(20)
    if (index % 4 === 3) continue
    void journal.answered(openCall(uuid, start), null, start, { text: `"1 ${uuid}"` })
    journal.changed(uuid, { text: `"2 ${uuid}"` })
    journal.changed(uuid, { text: `"3 ${uuid} ☎"` })
    if (index % 2 === 0) journal.changed(uuid, { text: `"4 ${uuid}"`, isChange: true })
    if (index % 5 === 4) journal.ended(endedCall(uuid, 20), terms)
    if (index === 9) journal.gone(uuid)
    journal.alive([uuid], start + 1_000 * index)
    time.advance(20)
  }
  void journal.answered(openCall('last', start), null, start)
  time.advance(20)
  return Buffer.concat(written)
}

/** Numbers of lines, from 1, that a change of these bytes may have damaged. */
function linesAt(whole: Buffer, offsets: readonly number[]): Set<number> {
  const touched = new Set<number>()
  for (const offset of offsets) {
    const line = whole.subarray(0, offset).toString('latin1').split('\n').length
    touched.add(line)
    if (whole[offset] === 10) touched.add(line + 1)
  }
  return touched
}

const nameIn = (line: string): string =>
  /"(?:callUuid|gone|saved|alive|begun|answered)":\[?"([^"]*)"/.exec(line)?.slice(1).join('') ?? ''

test('bits that change cost the calls of their lines alone, and each is named', () => {
  const whole = wholeFile()
  const lines = whole.toString().split('\n')
  const before = byUuid(open().left)
  const random = seededRandom(15)
  const below = (bound: number) => Math.floor(random() * bound)
  for (let round = 0; round < 150; round += 1) {
    const bytes = Buffer.from(whole)
    const offsets = Array.from({ length: 1 + below(3) }, () => below(whole.length - 1))
    for (const offset of offsets) bytes[offset] = (bytes[offset] ?? 0) ^ (1 << below(8))
    writeFileSync(file, bytes)
    const { left, told } = open()
    const after = byUuid(left)
    const damaged = linesAt(whole, bytes.equals(whole) ? [] : offsets)
    const hit = new Set([...damaged].map((line) => nameIn(lines[line - 1] ?? '')))
    for (const [uuid, entry] of before)
      if (!hit.has(uuid)) expect(after.get(uuid), `round ${round}`).toEqual(entry)
    for (const [uuid, entry] of after) {
      if (entry.kind === 'ended') expect(entry.record).toEqual(endedCall(uuid, 20))
      else expect(openCall(uuid, start)).toMatchObject(entry.call)
      if (stateOf(entry) !== undefined) expect(stateOf(entry)).toContain(uuid)
    }
    if (damaged.size > 0) expect(told.length, `round ${round}`).toBeGreaterThan(0)
  }
})

test('a call whose newest state is damaged has none, and is named', () => {
  const whole = wholeFile().toString()
  writeFileSync(file, whole.replace('"3 call-1 ☎"', '"3 cell-1 ☎"'))
  const { left, told } = open()
  expect(stateOf(byUuid(left).get('call-1'))).toBeUndefined()
  expect(stateOf(byUuid(left).get('call-2'))).toBe('"3 call-2 ☎" "4 call-2"')
  expect(told).toMatchObject([{ level: 'error', callUuid: 'call-1' }])
  writeFileSync(file, whole.replace('"2 call-1"', '"2 cell-1"'))
  expect(stateOf(byUuid(open().left).get('call-1'))).toBe('"3 call-1 ☎"')
  // A change is worth nothing without the state that it is a change of, and the other way round.
  for (const line of ['"3 call-2 ☎"', '"4 call-2"']) {
    writeFileSync(file, whole.replace(line, line.replace('call', 'cell')))
    expect(stateOf(byUuid(open().left).get('call-2'))).toBeUndefined()
  }
})

test('a file that is cut off anywhere has all that was written before', () => {
  const whole = wholeFile()
  const random = seededRandom(16)
  for (let round = 0; round < 100; round += 1) {
    const end = Math.floor(random() * whole.length)
    const isPadded = round % 2 === 1
    writeFileSync(file, Buffer.concat([whole.subarray(0, end)], end + (isPadded ? 4_096 : 0)))
    const cut = open()
    const isBetween = end === 0 || whole[end - 1] === 10 || (whole[end] === 10 && !isPadded)
    expect(cut.told.length, `round ${round}`).toBe(isBetween ? 0 : 1)
    const lastBreak = isBetween ? end : whole.lastIndexOf(10, end) + 1
    writeFileSync(file, whole.subarray(0, lastBreak))
    expect(cut.left, `round ${round}`).toEqual(open().left)
  }
})

test('a crash that tears the move of a call to the next file costs nothing of its state', () => {
  const whole = wholeFile()
  const lines = whole.toString().split('\n')
  const parts = ['"database"', '"answered":{"callUuid":"call-2"', '"3 call-2 ', '"4 call-2"']
  const moved = parts.map((part) => lines.find((line) => line.includes(part)))
  writeFileSync(file, whole)
  const next = `${database}.calls-2`
  onTestFinished(() => rmSync(next))
  const bytes = Buffer.from(`${moved.join('\n')}\n`)
  for (let end = 0; end <= bytes.length; end += 5) {
    writeFileSync(next, bytes.subarray(0, end))
    expect(stateOf(byUuid(open().left).get('call-2')), `cut off at ${end}`).toBe(
      '"3 call-2 ☎" "4 call-2"',
    )
  }
})
