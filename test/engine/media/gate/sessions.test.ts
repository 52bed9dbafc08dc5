/** When relays are told that sessions are over. */
import { expect, test } from 'vitest'
import { Sessions } from '../../../../engine/media/gate/sessions.ts'
import type { NgAnswer, NgRequest } from '../../../../engine/media/relay/relays.ts'

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
  const sessions = new Sessions({
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
