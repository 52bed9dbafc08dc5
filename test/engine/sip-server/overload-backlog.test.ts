import { expect, test } from 'vitest'
import { Backlog } from '../../../engine/sip-server/overload.ts'

function open() {
  const clock = { now: 1_000 }
  const backlog = new Backlog(() => clock.now, 'unguessable')
  return { clock, backlog }
}

const bytes = (text: string): Buffer => Buffer.from(text, 'latin1')

test('a socket that cannot reach itself is not taken for a slow one', () => {
  const { clock, backlog } = open()
  for (let i = 0; i < 50; i++) {
    backlog.next()
    clock.now += 100
  }
  expect(backlog.delayMs).toBe(0)
})

test('no other sender can speak for it, and nothing else is kept from the server', () => {
  const { clock, backlog } = open()
  const sent = backlog.next()
  clock.now += 10
  expect(backlog.takes(bytes('INVITE sip:a@b SIP/2.0\r\n'))).toBe(false)
  expect(backlog.takes(bytes('\u0001guessed-1'))).toBe(false)
  expect(backlog.takes(bytes(sent))).toBe(true)
})

test('what is under way is bounded', () => {
  const { clock, backlog } = open()
  const texts = Array.from({ length: 1_000 }, () => {
    clock.now += 100
    return backlog.next()
  })
  // Long forgotten: it is still ours, and says nothing any more.
  expect(backlog.takes(bytes(texts[0] ?? ''))).toBe(true)
  expect(backlog.delayMs).toBe(0)
})
