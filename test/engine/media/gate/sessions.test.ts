/** When relays are told that sessions are over. */
import { expect, test } from 'vitest'
import { deleteOrphans, MediaSessions } from '../../../../engine/media/gate/sessions.ts'
import type { NgAnswer, NgRequest, Relay } from '../../../../engine/media/relay/relays.ts'
import { ManualTime } from '../../../support/manual-time.ts'
import { turnOfEventLoop } from '../../../support/waiting.ts'

const relay = {
  name: 'relay:22222',
  isAlive: true,
  seenAt: 0,
  ask: () => undefined,
  request: (): Promise<NgAnswer> => Promise.resolve({ kind: 'timeout' }),
}

function start() {
  const asked: NgRequest[] = []
  const timers: { readonly act: () => void; readonly delayMs: number }[] = []
  const sessions = new MediaSessions({
    calls: { call: () => undefined },
    prefix: 'test',
    run: '1',
    ask: (_relay, request, done) => {
      asked.push(request)
      done({ kind: 'ok', values: { result: 'ok' } })
    },
    after: (act, delayMs) => {
      timers.push({ act, delayMs })
      return () => undefined
    },
  })
  const session = (callUuid: string) => sessions.begin(relay, [`${callUuid}.0`, `${callUuid}.1`])
  return { sessions, asked, timers, session }
}

test('sessions that end before the next tick are deleted together, by one timer', () => {
  const { sessions, asked, timers, session } = start()
  const [one, other] = [session('one'), session('other')]
  sessions.close(one)
  sessions.close(other)
  sessions.close(one)
  expect(asked).toEqual([])
  expect(timers.map(({ delayMs }) => delayMs)).toEqual([0])
  timers[0]?.act()
  expect(asked.map((request) => request['call-id'])).toEqual([one.id, other.id])
  expect(sessions.size).toBe(0)
  sessions.close(session('third'))
  timers[1]?.act()
  expect(asked).toHaveLength(3)
})

test('a session of the last process, to which that may have subscribed, is deleted as a whole, too', () => {
  const { sessions, asked } = start()
  const session = sessions.add('test-one-0.a', relay, ['one.0', 'one.1'])
  sessions.connected(session)
  sessions.close(session)
  sessions.deleteClosed()
  const whole = { command: 'delete', 'call-id': session.id, 'delete-delay': 0 }
  expect(asked).toEqual([{ ...whole, 'from-tag': 'one.0' }, whole])
})

const PAGE = 800

/**
 * A relay that lists its first sessions, as rtpengine does, and what a start does about those of a
 * crash.
 */
function open(names: readonly string[]) {
  const left = new Set(names)
  const time = new ManualTime(0)
  const state = { isAway: false, lists: 0, longest: 0 }
  const answerTo = ({ command, ...values }: Readonly<Record<string, unknown>>): NgAnswer => {
    if (state.isAway) return { kind: 'timeout' }
    if (command !== 'list') {
      left.delete(String(values['call-id']))
      return { kind: 'ok', values: {} }
    }
    state.lists += 1
    const calls = [...left].slice(0, Number(values['limit']))
    state.longest = Math.max(state.longest, calls.length)
    return { kind: 'ok', values: { calls } }
  }
  const listing: Relay = {
    name: 'listing',
    isAlive: true,
    seenAt: 0,
    ask: () => undefined,
    request: (request) => Promise.resolve(answerTo(request)),
  }
  const isOrphan = (name: string): boolean => name.startsWith('orphan')
  const after = (act: () => void, delayMs: number) => time.schedule(act, delayMs)
  deleteOrphans([listing], { isOrphan }, after)
  const pass = async (ms: number): Promise<void> => {
    time.advance(ms)
    for (let turn = 0; turn < 5; turn += 1) await turnOfEventLoop()
  }
  return { left, state, pass }
}

const namesOf = (kind: string, count: number): readonly string[] =>
  Array.from({ length: count }, (_, at) => `${kind}-${at}`)

test('all sessions of 10,000 calls are deleted, in pages that fit into a datagram', async () => {
  const { left, state, pass } = open([...namesOf('live', 500), ...namesOf('orphan', 10_000)])
  await pass(0)
  expect(left.size).toBe(500)
  expect([...left].filter((name) => name.startsWith('orphan'))).toEqual([])
  expect(state.longest).toBe(PAGE)
})
