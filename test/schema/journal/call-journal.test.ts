import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { EndTerms } from '../../../schema/journal/journal-entries.ts'
import { CallJournal } from '../../../schema/journal/call-journal.ts'
import type { Boot } from '../../../schema/clock.ts'
import type { JournalFile } from '../../../schema/journal/journal-file.ts'
import { checked } from '../../../schema/journal/line-buffer.ts'
import { JournalFiles } from '../../../schema/journal/journal-files.ts'
import { MemoryFile } from '../../../schema/journal/memory-file.ts'
import { recoveredRecord } from '../../../engine/charging/settlement/interrupted-calls.ts'
import { Storage } from '../../../schema/storage/storage.ts'
import { endedCall, openCall, start } from '../../support/books.ts'
import { Disk } from '../../support/journals.ts'
import { ManualTime } from '../../support/manual-time.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'

const terms: EndTerms = { payerId: 1, tariff: null, costMicros: 20_000, isReported: false }

function journalOn<F extends JournalFile>(file: F, boot?: Boot) {
  const time = new ManualTime(start)
  const storage = new Storage()
  const log: string[] = []
  const journal = new CallJournal(file, {
    storage,
    schedule: time.schedule,
    boot,
    log: (level, message) => log.push(`${level} ${message}`),
  })
  /** The calls that a start after a crash now would find. */
  const left = (now = boot) => journalOn(file, now).journal.left()
  return { file, time, storage, log, journal, left }
}

test('an answered call is left open by a crash, up to its last heartbeat', async () => {
  const { time, journal, left } = journalOn(new MemoryFile())
  const answered = journal.answered(openCall('a', start), null, start)
  expect(left()).toEqual([])
  time.advance(1)
  expect(await answered).toBe(true)
  expect(left()).toMatchObject([{ kind: 'cut', call: { callUuid: 'a' }, talkedMs: 0 }])
  journal.alive(['a', 'unknown'], start + 4_200)
  time.advance(10)
  const [entry] = left()
  expect(entry?.kind === 'cut' && recoveredRecord(entry)).toMatchObject({
    callUuid: 'a',
    billsec: 5,
    isRecovered: true,
    hangupCause: 'PROCESS_RESTART',
  })
})

test('one line says that a process runs, and with it its calls; those of the last one only when they were heard', () => {
  const file = new MemoryFile()
  const { time, journal, left } = journalOn(file)
  void journal.answered(openCall('a', start), null, start)
  void journal.answered(openCall('b', start), null, start)
  journal.running(start + 5_000, start - 1_000)
  time.advance(10)
  const talked = (found = left()) =>
    found.map((entry) => [entry.callUuid, entry.kind === 'cut' && entry.talkedMs])
  expect(talked()).toEqual([
    ['a', 5_000],
    ['b', 5_000],
  ])
  // The next process, 40 s later: of its first seconds only `b` is heard.
  file.startNew()
  const next = journalOn(file)
  next.journal.running(start + 46_000, start + 45_000)
  next.time.advance(100)
  const unheard = [
    ['a', 5_000],
    ['b', 5_000],
  ]
  expect(talked(next.left())).toEqual(unheard)
  next.journal.alive(['b'], start + 46_500)
  next.journal.running(start + 47_000, start + 45_000)
  void next.journal.answered(openCall('c', start + 46_000), null, start + 46_000)
  next.time.advance(100)
  const after = [
    ['a', 5_000],
    ['b', 47_000],
    ['c', 1_000],
  ]
  expect(talked(next.left())).toEqual(after)
  // A third one has the same of both.
  file.startNew()
  const third = journalOn(file)
  third.journal.running(start + 90_000, start + 80_000)
  third.time.advance(100)
  expect(talked(third.left())).toEqual(after)
})

test('answers that follow a write are written together, 2 ms after it; the first of them at once', async () => {
  const file = new Disk()
  const { time, journal } = journalOn(file)
  const written: string[] = []
  const answer = (uuid: string) =>
    journal.answered(openCall(uuid, start), null, start).then(() => written.push(uuid))
  const after = async (ms: number) => {
    time.advance(ms)
    await Promise.resolve()
    return written.splice(0)
  }
  const first = answer('a')
  expect(await after(0)).toEqual(['a'])
  const others = [answer('b')]
  expect(await after(1)).toEqual([])
  others.push(answer('c'))
  expect(await after(1)).toEqual(['b', 'c'])
  expect(await after(2)).toEqual([])
  others.push(answer('d'))
  expect(await after(0)).toEqual(['d'])
  await Promise.all([first, ...others])
  // No line that nobody waits for is written sooner because of that, or later.
  journal.ended(endedCall('a', 20), terms, () => void written.push('end'))
  expect(await after(9)).toEqual([])
  expect(await after(1)).toEqual(['end'])
})

test('a full disk takes the ends of calls in the room that is reserved for them, and is told so at once', () => {
  const { file, time, journal, left } = journalOn(new Disk())
  for (const uuid of ['a', 'b', 'c']) void journal.answered(openCall(uuid, start), null, start)
  time.advance(10)
  file.isFull = true
  file.reservedBytes = 3_000
  const told: string[] = []
  const end = (uuid: string): void =>
    journal.ended(endedCall(uuid, 20), terms, () => void told.push(uuid))
  void journal.answered(openCall('refused', start), null, start)
  end('a')
  time.advance(10)
  expect(told).toEqual(['a'])
  end('b')
  time.advance(100)
  expect(told).toEqual(['a', 'b'])
  const kinds = (found = left()) => found.map(({ callUuid, kind }) => `${callUuid} ${kind}`)
  expect(kinds()).toEqual(['a ended', 'b ended', 'c cut'])
  // When it is used up, an end waits for two seconds as before.
  file.reservedBytes = 0
  end('c')
  time.advance(1_000)
  expect(told).toEqual(['a', 'b'])
  time.advance(1_000)
  expect(told).toEqual(['a', 'b', 'c'])
  file.isFull = false
  time.advance(200)
  expect(kinds()).toEqual(['a ended', 'b ended', 'c ended'])
  expect(told).toEqual(['a', 'b', 'c'])
})

test('a call is left with its newest state, and with none once it has ended', () => {
  const { time, journal, left } = journalOn(new MemoryFile())
  const grant = { payerId: 1, maxSeconds: null, grantedSeconds: 60, amountMicros: 5 }
  const first = { text: '{"turn":1}', grant: { ...grant, isLastGrant: false } }
  journal.changed('a', first)
  void journal.answered(openCall('a', start), null, start, first)
  time.advance(1)
  expect(left()).toMatchObject([{ kind: 'cut', state: { ...first, answeredMs: start } }])
  journal.changed('a', { text: '{"turn":2,"name":"☎"}' })
  time.advance(10)
  expect(left()).toMatchObject([{ kind: 'cut', state: { text: '{"turn":2,"name":"☎"}' } }])
  journal.ended(endedCall('a', 20), terms)
  journal.changed('a', first)
  time.advance(10)
  expect(left()).toEqual([{ kind: 'ended', callUuid: 'a', record: endedCall('a', 20), terms }])
})

test('what has changed since the answer is left with the state of the answer, until there is a whole state', () => {
  const { file, time, journal, left } = journalOn(new MemoryFile(), { id: 'one', at: start })
  const grant = { payerId: 1, maxSeconds: null, grantedSeconds: 60, amountMicros: 5 }
  const change = { text: '{"turn":2}', isChange: true } as const
  journal.changed('a', change)
  void journal.answered(openCall('a', start), null, start)
  journal.changed('a', change)
  time.advance(10)
  const state = () => left().map((entry) => entry.kind === 'cut' && entry.state)
  expect(state()).toEqual([undefined])
  void journal.answered(openCall('a', start), null, start, { text: '{"turn":1}' })
  journal.changed('a', { ...change, grant: { ...grant, isLastGrant: false } })
  time.advance(10)
  const changed = {
    text: '{"turn":1}',
    change: '{"turn":2}',
    grant: { ...grant, isLastGrant: false },
  }
  expect(state()).toMatchObject([changed])
  // Both are moved to a new file.
  file.startNew()
  const next = journalOn(file, { id: 'one', at: start + 1_000 })
  next.journal.alive(['a'], start + 2_000)
  next.time.advance(20)
  expect(next.left()).toMatchObject([{ state: { ...changed, shiftMs: 1_000 } }])
  journal.changed('a', { text: '{"turn":3}' })
  time.advance(10)
  expect(state()).toEqual([{ text: '{"turn":3}', grant: undefined, answeredMs: start, shiftMs: 0 }])
  journal.changed('a', change)
  journal.ended(endedCall('a', 20), terms)
  time.advance(10)
  expect(left()).toEqual([{ kind: 'ended', callUuid: 'a', record: endedCall('a', 20), terms }])
})

test('a change whose call is not in the files any more is no call', () => {
  const file = new MemoryFile()
  file.append(checked('{"saved":"a","isChange":true}\t{"turn":2}'), () => undefined)
  expect(journalOn(file).left()).toEqual([])
})

test('a call that was dialled is left until it is answered or ends', () => {
  const { time, journal, left } = journalOn(new MemoryFile())
  const { answeredAt: _, ...call } = openCall('a', start)
  journal.begun(call)
  journal.begun({ ...call, callUuid: 'b' })
  time.advance(10)
  expect(left()).toMatchObject([
    { kind: 'unanswered', callUuid: 'a', call },
    { kind: 'unanswered', callUuid: 'b' },
  ])
  void journal.answered(openCall('a', start), null, start)
  journal.ended(endedCall('b', 0), terms)
  journal.gone('b')
  time.advance(10)
  expect(left()).toMatchObject([{ kind: 'cut', callUuid: 'a' }])
})

test('an end is told to be safe once it is written, or after two seconds', () => {
  const { file, time, journal, left } = journalOn(new Disk())
  const told: string[] = []
  const end = (uuid: string) => journal.ended(endedCall(uuid, 5), terms, () => told.push(uuid))
  end('a')
  expect(told).toEqual([])
  time.advance(10)
  expect(told).toEqual(['a'])
  file.isFull = true
  end('b')
  time.advance(1_999)
  expect(told).toEqual(['a'])
  time.advance(1)
  expect(told).toEqual(['a', 'b'])
  file.isFull = false
  time.advance(5_000)
  expect(told).toEqual(['a', 'b'])
  expect(left()).toHaveLength(2)
})

test('times are translated to the clock of the next process, by the start of the machine', () => {
  const first = journalOn(new MemoryFile(), { id: 'one', at: start - 500_000 })
  void first.journal.answered(openCall('a', start), null, start, { text: '{}' })
  first.journal.alive(['a'], start + 3_000)
  first.time.advance(10)
  // The system clock was set forward by an hour.
  const sameBoot = { id: 'one', at: start - 500_000 + 3_600_000 }
  const shifted = { answeredMs: start + 3_600_000, shiftMs: 3_600_000 }
  expect(first.left(sameBoot)).toMatchObject([{ talkedMs: 3_000, state: shifted }])
  const unshifted = { answeredMs: start, shiftMs: 0 }
  for (const boot of [{ id: 'two', at: start }, undefined])
    expect(first.left(boot)).toMatchObject([{ talkedMs: 3_000, state: unshifted }])
  // Its lines are moved as they are, and its heartbeats are by the clock of the process that goes
  // on with it.
  first.file.startNew()
  const second = journalOn(first.file, sameBoot)
  second.journal.alive(['a'], start + 3_600_000 + 9_000)
  second.time.advance(20)
  expect(second.file.read().lines).toHaveLength(4)
  expect(second.left()).toMatchObject([{ talkedMs: 9_000, state: shifted }])
})

test('a disk that takes nothing: the caller is refused after two seconds, and no crash bills the call', async () => {
  const { file, time, storage, log, journal, left } = journalOn(new Disk())
  file.isFull = true
  const answered = journal.answered(openCall('a', start), null, start)
  time.advance(1_999)
  storage.declare()
  expect(storage.problem?.reason).toContain('ENOSPC')
  time.advance(1)
  expect(await answered).toBe(false)
  const second = journal.answered(openCall('b', start), null, start)
  file.isFull = false
  time.advance(100)
  expect(await second).toBe(true)
  expect(storage.problem).toBeUndefined()
  expect(left()).toMatchObject([{ call: { callUuid: 'b' } }])
  expect(log).toEqual(['error journal: calls cannot be written'])
  journal.gone('b')
  journal.ended(endedCall('refused', 0), terms)
  journal.gone('refused')
  time.advance(10)
  expect([left(), journal.size]).toEqual([[], 0])
})

test('a full file is followed by a new one, which takes over what is open, and the old one goes', () => {
  const { file, time, journal, left } = journalOn(new MemoryFile())
  const long = { callerName: 'x'.repeat(2_000) }
  for (let index = 0; index < 300; index += 1)
    void journal.answered(openCall(`open-${index}`, start, long), null, start)
  journal.alive(['open-7'], start + 9_000)
  journal.ended(endedCall('open-8', 20), terms)
  time.advance(10)
  for (let index = 0; index < 3_000; index += 1) {
    void journal.answered(openCall(`short-${index}`, start, long), null, start)
    journal.gone(`short-${index}`)
    time.advance(1)
  }
  expect(file.size).toBeLessThan(4 * 1024 * 1024)
  expect(JSON.stringify(file.read().lines).length).toBeLessThan(4 * 1024 * 1024)
  const open = left()
  expect(open).toHaveLength(300)
  expect(open.filter((entry) => entry.kind === 'ended')).toHaveLength(1)
  expect(open.find((entry) => entry.kind === 'cut' && entry.talkedMs === 9_000)).toBeDefined()
})

test('a crash while calls are moved to a new file finds each with its newest state', () => {
  const uuids = Array.from({ length: 300 }, (_, index) => `call-${index}`)
  const first = journalOn(new MemoryFile())
  for (const uuid of uuids)
    void first.journal.answered(openCall(uuid, start), null, start, { text: `"1 ${uuid}"` })
  first.time.advance(1)
  for (const uuid of uuids)
    first.journal.changed(uuid, { text: JSON.stringify(uuid.padEnd(3_000)) })
  first.time.advance(10)
  first.file.startNew()
  let [runs, isMoved] = [0, false]
  for (; !isMoved; runs += 1) {
    const next = journalOn(first.file)
    const left = next.journal.left()
    expect(
      left.map((entry) => entry.kind === 'cut' && entry.state?.text.slice(1, 9).trim()),
    ).toEqual(uuids)
    next.journal.alive([], start)
    next.time.advance(10 + runs)
    isMoved = next.file.read().lines.length <= 2 * uuids.length + runs + 1
    if (!isMoved) next.file.startNew()
  }
  expect(runs).toBeGreaterThan(2)
})

test('a file that is removed while it is written to is replaced at the next heartbeat', async () => {
  const database = join(temporaryFolder(), 'tollgate.db')
  const { time, journal, log } = journalOn(new JournalFiles(database, 'id'))
  const written = async (answered: Promise<boolean>) => {
    time.advance(1)
    expect(await answered).toBe(true)
  }
  await written(journal.answered(openCall('a', start), null, start))
  rmSync(`${database}.calls-1`)
  journal.alive(['a'], start + 5_000)
  await written(journal.answered(openCall('b', start), null, start))
  expect(log).toEqual(['error journal: its file is gone; open calls are written to a new one'])
  const next = journalOn(new JournalFiles(database, 'id')).journal.left()
  expect(next).toMatchObject([{ call: { callUuid: 'b' } }, { call: { callUuid: 'a' } }])
})
