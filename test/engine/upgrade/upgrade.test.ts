import { expect, test } from 'vitest'
import type { FromNew, FromOld } from '../../../engine/upgrade/messages.ts'
import { Upgrade, type UpgradeDeps } from '../../../engine/upgrade/upgrade.ts'
import { ManualTime } from '../../support/manual-time.ts'
import { turnOfEventLoop } from '../../support/waiting.ts'

function start(changes: Partial<UpgradeDeps> = {}) {
  const time = new ManualTime(0)
  const sent: FromOld[] = []
  const done: string[] = []
  let say: (message: FromNew) => void = () => undefined
  let end: (how: string) => void = () => undefined
  const upgrade = new Upgrade({
    startProgram: () => ({
      pid: 4711,
      send: (message) => void sent.push(message),
      onMessage: (listener) => void (say = listener),
      onEnd: (listener) => void (end = listener),
      end: () => void done.push('killed'),
    }),
    obstacle: () => undefined,
    writeAll: () => {
      done.push('written')
      return Promise.resolve()
    },
    handOver: () => {
      done.push('handed over')
      return { held: [] }
    },
    takeBack: () => void done.push('took back'),
    alone: () => void done.push('alone'),
    leave: () => void done.push('left'),
    receive: () => void done.push('received'),
    receiveDigit: ({ digit }) => void done.push(`digit ${digit.code}`),
    held: () => [],
    schedule: time.schedule,
    log: () => undefined,
    ...changes,
  })
  const outcome = upgrade.run()
  return {
    upgrade,
    outcome,
    time,
    sent,
    done,
    say: (message: FromNew) => say(message),
    end: (how: string) => end(how),
  }
}

const serving = { kind: 'serving', pid: 4711, version: '2.0.0' } as const
const datagram = { listener: 0, address: '192.0.2.1', port: 5060, data: '' }

test('the new process gets what is under way, and when it serves the old one leaves', async () => {
  const { upgrade, outcome, sent, done, say } = start()
  say({ kind: 'loaded' })
  await turnOfEventLoop()
  expect(sent).toEqual([{ kind: 'handed over', held: [] }])
  say({ kind: 'datagram', datagram })
  say(serving)
  expect(await outcome).toEqual({ kind: 'upgraded', pid: 4711, version: '2.0.0' })
  expect((await upgrade.left).pid).toBe(4711)
  expect(done).toEqual(['written', 'handed over', 'received', 'left'])
  expect(sent.map(({ kind }) => kind)).toEqual(['handed over', 'left', 'held'])
  expect(await upgrade.run()).toMatchObject({ kind: 'refused' })
})

test('what the new process complains of is why it is refused', async () => {
  const { outcome, done, say, end } = start()
  say({ kind: 'complaint', line: 'tollgate: the settings listen elsewhere' })
  end('ended with exit code 2')
  expect(await outcome).toEqual({ kind: 'refused', reason: 'the settings listen elsewhere' })
  expect(done).toEqual(['killed', 'alone'])
})

test('a new process that ends when it has got everything and before it serves gives all back', async () => {
  const { upgrade, outcome, done, say, end } = start()
  say({ kind: 'loaded' })
  await turnOfEventLoop()
  end('was ended by SIGKILL')
  const reason = 'the new process was ended by SIGKILL'
  expect(await outcome).toEqual({ kind: 'refused', reason })
  expect(done).toEqual(['written', 'handed over', 'killed', 'took back', 'alone'])
  void upgrade.run()
  say({ kind: 'loaded' })
  await turnOfEventLoop()
  expect(done.at(-1)).toBe('handed over')
})

test('a new process that does not serve within 30 s is killed, and all is taken back', async () => {
  const { outcome, done, say, end, time } = start()
  say({ kind: 'loaded' })
  await turnOfEventLoop()
  time.advance(29_999)
  expect(done).toEqual(['written', 'handed over'])
  time.advance(1)
  const reason = 'the new process did not serve within 30 s'
  expect(await outcome).toEqual({ kind: 'refused', reason })
  expect(done).toEqual(['written', 'handed over', 'killed', 'took back'])
  end('was ended by SIGKILL')
  expect(done.at(-1)).toBe('alone')
})

test('a new process that ends when the next upgrade has begun does not leave this one alone', async () => {
  const ends: ((how: string) => void)[] = []
  const startProgram = () => ({
    pid: 4711,
    send: () => undefined,
    onMessage: () => undefined,
    end: () => undefined,
    onEnd: (listener: (how: string) => void) => void ends.push(listener),
  })
  const { upgrade, done } = start({ startProgram })
  upgrade.cancel()
  void upgrade.run()
  ends[0]?.('was ended by SIGKILL')
  expect(done).toEqual([])
  ends[1]?.('was ended by SIGKILL')
  expect(done).toEqual(['alone'])
})

test('a stop calls an upgrade off until the new process serves, and not later', async () => {
  const early = start()
  early.upgrade.cancel()
  expect(await early.outcome).toEqual({ kind: 'refused', reason: 'the process stops' })
  expect(early.done).toEqual(['killed'])
  const late = start()
  late.say({ kind: 'loaded' })
  await turnOfEventLoop()
  late.say(serving)
  late.upgrade.cancel()
  expect(late.done).toEqual(['written', 'handed over', 'left'])
})

test('an obstacle, and a program that cannot be started, are refused with their reason', async () => {
  const outcome = { kind: 'refused', reason: 'no' }
  expect(await start({ obstacle: () => 'no' }).outcome).toEqual(outcome)
  const startProgram = () => {
    throw new Error('no')
  }
  expect(await start({ startProgram }).outcome).toEqual(outcome)
})

test('the end of a process that serves already is noted: what it had is left undone', async () => {
  const { upgrade, outcome, done, say, end } = start()
  say({ kind: 'loaded' })
  await turnOfEventLoop()
  say(serving)
  await outcome
  expect(upgrade.isAbandoned).toBe(false)
  end('was ended by SIGKILL')
  expect(upgrade.isAbandoned).toBe(true)
  expect(done).toEqual(['written', 'handed over', 'left'])
})

test('what is under way and does not end refuses the upgrade after ten seconds, and a later one is not begun by it', async () => {
  const ends: (() => void)[] = []
  const started: string[] = []
  const { upgrade, outcome, time, done } = start({
    quiet: () => new Promise((resolve) => ends.push(resolve)),
    startProgram: () => {
      started.push('started')
      throw new Error('not in this test')
    },
  })
  time.advance(9_999)
  expect(done).toEqual([])
  time.advance(1)
  expect(await outcome).toEqual({
    kind: 'refused',
    reason: 'what is under way with the database did not end within 10 s: try again',
  })
  expect(done).toEqual(['alone'])
  const second = upgrade.run()
  ends[0]?.()
  await turnOfEventLoop()
  expect(started).toEqual([])
  ends[1]?.()
  expect(await second).toMatchObject({ kind: 'refused', reason: 'not in this test' })
  expect(started).toEqual(['started'])
})
